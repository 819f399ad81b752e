"""Weights that come with the package, named as `pretrained:NAME` where a run is asked for."""

from pathlib import Path

PREFIX = "pretrained:"

DEFAULT = f"{PREFIX}save-the-city"

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """What there is: a task, or one of its settings."""
    return sorted(file.stem for file in FOLDER.glob("*.safetensors"))


def locate(policy: str | Path) -> Path:
    """The file of `pretrained:NAME`; anything else is a path already."""
    text = str(policy)
    if not text.startswith(PREFIX):
        return Path(policy)
    name = text.removeprefix(PREFIX)
    if name not in names():
        raise ValueError(f"there are no pretrained weights {name!r}: choose from {', '.join(names())}")
    return FOLDER / f"{name}.safetensors"
