import pytest

from alma.files import UNFINISHED, atomic_write, read_json, read_json_lines, write_json


def test_a_line_cut_short_is_left_out(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"step": 2')
    assert read_json_lines(path) == [{"step": 1}]
    assert read_json_lines(tmp_path / "nothing") == []


def test_a_line_damaged_in_the_middle_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(ValueError, match=r"metrics.jsonl is damaged in line 2: .*; delete that line"):
        read_json_lines(path)


def test_a_file_is_replaced_at_once_or_not_at_all(tmp_path):
    path = tmp_path / "data.json"
    write_json(path, {"a": 1})

    def fail_halfway():
        with atomic_write(path) as unfinished:
            unfinished.write_text("half of it")
            assert read_json(path) == {"a": 1}
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert read_json(path) == {"a": 1}
    write_json(path, {"a": 2})
    assert read_json(path) == {"a": 2}
    assert list(tmp_path.glob(f"*{UNFINISHED}")) == []


def test_links_are_not_followed_when_writing(tmp_path):
    """A folder from somebody else may have one where we write."""
    mine = tmp_path / "mine.txt"
    mine.write_text("precious")
    for name in ("data.json", f"data{UNFINISHED}"):
        (tmp_path / name).symlink_to(mine)
    write_json(tmp_path / "data.json", {"a": 1})
    assert mine.read_text() == "precious"
    assert read_json(tmp_path / "data.json") == {"a": 1}


def test_what_never_ends_is_not_read(tmp_path):
    (tmp_path / "data.json").symlink_to("/dev/zero")
    with pytest.raises(ValueError, match=r"data\.json cannot be read: it is no file"):
        read_json(tmp_path / "data.json")


@pytest.mark.parametrize("text", ["[1]", "{", "\udc80"])
def test_what_is_no_json_object_is_named(tmp_path, text):
    path = tmp_path / "data.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(ValueError, match=r"data\.json cannot be read"):
        read_json(path)
