import sys

import pytest
from PIL import Image

from alma.viewer.animation import check_out, write_animation

FRAMES = [Image.new("RGB", (40, 30), (40 * i, 20, 90)) for i in range(5)]


def test_gif(tmp_path):
    out = tmp_path / "episode.gif"
    assert write_animation(out, FRAMES) == str(out)
    with Image.open(out) as picture:
        assert picture.n_frames == 5
        assert picture.size == (40, 30)


def test_mp4(tmp_path):
    pytest.importorskip("imageio_ffmpeg")
    out = tmp_path / "episode.mp4"
    write_animation(out, FRAMES)
    assert b"ftyp" in out.read_bytes()[:16]


def test_png_frames_are_numbered(tmp_path):
    said = write_animation(tmp_path / "episode.png", FRAMES)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"episode-{i:03d}.png" for i in range(5)]
    assert "episode-000.png" in said
    assert Image.open(tmp_path / names[2]).getpixel((0, 0)) == (80, 20, 90)


def test_other_endings_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be one of .gif, .mp4, .png"):
        check_out(tmp_path / "episode.webm")


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(ValueError, match=r"alma-marl\[video\]"):
        check_out(tmp_path / "episode.mp4")
