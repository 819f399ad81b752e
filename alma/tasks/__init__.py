"""The tasks that come with the package; importing this module registers them."""

from alma.task.registry import register
from alma.tasks import save_the_city, starcraft

register("save-the-city", save_the_city.Rules, save_the_city.SaveTheCity)
register("starcraft", starcraft.Rules, starcraft.StarCraft, starcraft.PRESET_OVERRIDES)
