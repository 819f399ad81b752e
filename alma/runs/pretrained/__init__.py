"""Pretrained weights that come with the package; `pretrained:NAME` can be used in place of a run folder."""

from pathlib import Path

PREFIX = "pretrained:"

DEFAULT = f"{PREFIX}save-the-city"

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The names of all pretrained weights: a task, or one of its settings."""
    return sorted(file.stem for file in FOLDER.glob("*.safetensors"))


def locate(policy: str | Path) -> Path:
    """The path of `pretrained:NAME`; anything else is returned as a path."""
    text = str(policy)
    if not text.startswith(PREFIX):
        return Path(policy)
    name = text.removeprefix(PREFIX)
    if name not in names():
        raise ValueError(f"there are no pretrained weights {name!r}: choose from {', '.join(names())}")
    return FOLDER / f"{name}.safetensors"
