import json
import re
from importlib.resources import files

import pytest
from helpers.recordings import Crowd, Digging, crowd, side

from alma.viewer.page import as_script_data, bundle, make_page, write_page
from alma.viewer.page_data import Side, page_data


@pytest.fixture(scope="module")
def story():
    return page_data(Digging(), [side("<b>one</b>"), side("two")], seed=3)


@pytest.fixture(scope="module")
def page(story):
    return make_page(story)


def test_the_data_is_in_the_page_whatever_it_says(page, story):
    """The task's name would end the script."""
    assert "</script>ging" not in page
    data = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(data) == json.loads(json.dumps(story))
    assert "<title>dig&lt;/script&gt;ging: &lt;b&gt;one&lt;/b&gt; and two</title>" in page


def test_nothing_is_loaded_from_elsewhere(page):
    assert not re.findall(r"https?://|@import|\bsrc=|\bfetch\(", page)
    assert re.findall(r"<link[^>]*>", page) == ['<link rel="icon" href="data:,">']


def test_nothing_is_left_to_be_filled_in(page):
    assert "{{" not in page


def test_modules_follow_what_they_import():
    script = bundle("main.js")
    assert not re.findall(r"^(import|export)\b", script, re.MULTILINE)
    names = re.findall(r"^// (\w+\.js)$", script, re.MULTILINE)
    assert sorted(names) == sorted(f.name for f in files("alma.viewer").joinpath("web").iterdir() if f.suffix == ".js")
    assert names[0] == "data.js"
    assert names[-1] == "main.js"


def test_names_of_modules_do_not_clash():
    """They share one scope in the page."""
    names = re.findall(r"^(?:function|const|let|class) (\w+)", bundle("main.js"), re.MULTILINE)
    assert len(names) == len(set(names))


def test_numbers_that_json_does_not_know_are_refused():
    with pytest.raises(ValueError, match="Out of range float"):
        as_script_data({"value": float("nan")})


def test_a_page_replaces_the_one_before(tmp_path, story, page):
    out = tmp_path / "replay.html"
    out.write_text("old")
    assert write_page(out, story) == out
    assert out.read_text(encoding="utf-8") == page
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("task", [Crowd(), Crowd(agents=24, things=25, actions=12)], ids=["battle", "large city"])
def test_three_of_the_longest_episodes_are_less_than_three_megabytes(task):
    many = Side(side().labels, [crowd(task, seed) for seed in range(3)])
    assert len(make_page(page_data(task, [many], seed=0)).encode()) < 3_000_000
