"""Writes frames as a GIF, an MP4 or numbered PNG files, depending on the file extension."""

import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from PIL import Image

ENDINGS = (".gif", ".mp4", ".png")

HOLD_LAST = 12
"""Number of frames for which the last picture is shown."""


def check_out(path: Path, endings: Sequence[str] = ENDINGS) -> None:
    """Raise a ValueError if the file could not be written: called before episodes are played."""
    if path.suffix.lower() not in endings:
        raise ValueError(f"cannot write {path.name!r}: its ending must be one of {', '.join(endings)}")
    if path.is_dir():
        raise ValueError(f"cannot write {path}: it is a folder")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir():
        raise ValueError(f"cannot write {path}: {above} is not a folder")
    if not os.access(above, os.W_OK):
        raise ValueError(f"cannot write {path}: {above} may not be written to")
    if path.suffix.lower() == ".mp4":
        _video_writer()


def write_animation(path: Path, frames: Sequence[Image.Image], frames_per_second: int = 8) -> str:
    """Write the frames; returns the names of the files for a message."""
    path.parent.mkdir(parents=True, exist_ok=True)
    writers: dict[str, Callable[[Path, Sequence[Image.Image], int], str]] = {
        ".gif": _write_gif,
        ".mp4": _write_mp4,
        ".png": _write_png,
    }
    return writers[path.suffix.lower()](path, frames, frames_per_second)


def _write_gif(path: Path, frames: Sequence[Image.Image], frames_per_second: int) -> str:
    # A common palette for all frames keeps colours from flickering; an octree keeps rare colours.
    samples = frames[:: max(1, len(frames) // 8)]
    strip = Image.new("RGB", (samples[0].width * len(samples), samples[0].height))
    for i, sample in enumerate(samples):
        strip.paste(sample, (i * sample.width, 0))
    palette = strip.quantize(128, method=Image.Quantize.FASTOCTREE)
    pictures = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
    duration = 1000 // frames_per_second
    durations = [duration] * (len(pictures) - 1) + [duration * HOLD_LAST]
    pictures[0].save(path, save_all=True, append_images=pictures[1:], duration=durations, loop=0, optimize=True)
    return str(path)


def _write_mp4(path: Path, frames: Sequence[Image.Image], frames_per_second: int) -> str:
    writer = _video_writer()(str(path), frames[0].size, fps=frames_per_second, macro_block_size=2)
    with warnings.catch_warnings():
        # JAX warns about forks, but this one is followed by an exec, which is safe.
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
        writer.send(None)
    for frame in [*frames, *[frames[-1]] * HOLD_LAST]:
        writer.send(frame.tobytes())
    writer.close()
    return str(path)


def _video_writer() -> Callable:
    try:
        from imageio_ffmpeg import write_frames
    except ImportError:
        raise ValueError("MP4 needs the extra `video`: pip install 'alma-marl[video]', or write a .gif") from None
    return write_frames


def _write_png(path: Path, frames: Sequence[Image.Image], frames_per_second: int) -> str:
    """Write one numbered file per frame."""
    names = [path.with_stem(f"{path.stem}-{i:03d}") for i in range(len(frames))]
    for name, frame in zip(names, frames, strict=True):
        frame.save(name)
    return f"{names[0]} ... {names[-1].name}"
