"""The page in a real browser, on an episode that is known by heart."""

import io
import re
import shutil

import pytest
from helpers.recordings import ACTIONS, DECISIONS, LENGTH, RUNNER_UP, TAKEN, Digging, side
from PIL import Image

from alma.viewer.page import write_page
from alma.viewer.page_data import page_data

sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright: make test-browser")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PHONE, DESK = {"width": 360, "height": 740}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: make test-browser installs it")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Opens a story. In the end, nothing must have been complained about, and nothing loaded."""
    complaints, requests, contexts = [], [], []

    def open_story(*sides, task=None, viewport=DESK, scheme="light"):
        path = write_page(tmp_path / "replay.html", page_data(task or Digging(), sides, seed=3))
        context = browser.new_context(viewport=viewport, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri())
        return page

    yield open_story
    for context in contexts:
        context.close()
    assert complaints == []
    assert len(requests) == len(contexts), "the page itself, and nothing else"


def clock(page):
    return page.locator("#clock").inner_text()


def details(page):
    return page.locator("#inspector").inner_text()


def click_on_map(page, x, y, side=0):
    """Click a point of the map, in its own units."""
    canvas = page.locator("canvas").nth(side)
    box = canvas.bounding_box()
    canvas.click(position={"x": x / 10 * box["width"], "y": (1 - y / 8) * box["height"]})


def colour_on_map(page, x, y):
    """The colour of a point of the map, in its own units."""
    box = page.locator("canvas").bounding_box()
    at = {"x": box["x"] + x / 10 * box["width"], "y": box["y"] + (1 - y / 8) * box["height"], "width": 1, "height": 1}
    with Image.open(io.BytesIO(page.screenshot(clip=at))) as pixel:
        return pixel.convert("RGB").getpixel((0, 0))


def test_it_plays_to_the_end_and_stops(visit):
    page = visit(side())
    assert clock(page) == f"0 / {LENGTH}"
    assert "✓ solved, 12 steps, return 6.0" in page.locator(".result").inner_text()
    page.select_option("#speed", "32")
    page.locator("#play").click()
    assert page.get_by_label("Pause", exact=True).is_visible()
    page.wait_for_function(f"document.getElementById('clock').textContent === '{LENGTH} / {LENGTH}'")
    assert page.get_by_label("Play", exact=True).is_visible()


def test_keys_and_the_scrub_bar_move_in_time(visit):
    page = visit(side())
    before = colour_on_map(page, 1.25, 4.25)
    for key, shown in (("ArrowRight", 1), ("Shift+ArrowRight", 11), ("ArrowLeft", 10), ("End", 12), ("Home", 0)):
        page.keyboard.press(key)
        assert clock(page) == f"{shown} / {LENGTH}"
    page.locator("#scrub").fill("7")
    assert clock(page) == f"7 / {LENGTH}"
    assert colour_on_map(page, 1.25, 4.25) != before, "the digger has gone on"
    page.keyboard.press("Space")
    page.wait_for_function("!document.getElementById('clock').textContent.startsWith('7 ')")
    page.keyboard.press("Space")
    stopped = clock(page)
    page.wait_for_timeout(300)
    assert clock(page) == stopped


def test_dragging_over_the_timeline_scrubs(visit):
    page = visit(side())
    box = page.locator(".rows").bounding_box()
    middle, low = box["x"] + box["width"] / 2, box["y"] + box["height"] - 10
    page.mouse.move(middle, low)
    page.mouse.down()
    assert clock(page) == f"6 / {LENGTH}"
    page.mouse.move(box["x"] + box["width"] - 8, low)
    page.mouse.up()
    assert clock(page) == f"12 / {LENGTH}"


def test_clicking_an_agent_shows_what_it_thinks(visit):
    page = visit(side())
    click_on_map(page, 1.0, 4.0)
    shown = details(page)
    assert "digger 1" in shown
    assert re.search(r"allocated to\s+0 hole 0, begun", shown)
    assert re.search(r"together with\s+digger 0", shown)
    assert re.search(r"health\s+75 %", shown)
    rows = page.locator(".values li").all_inner_texts()
    assert [row.split("\n")[-1] for row in rows] == ["2.500", "−1.250"], "the best first, and north is not available"
    assert rows[0].startswith("dig → hole 1")
    assert "chosen" in rows[0]
    assert "chosen" not in rows[1]
    assert page.locator(".values li").first.get_attribute("data-action") == str(ACTIONS.index("dig"))


def test_an_agent_can_be_chosen_in_the_timeline_and_followed(visit):
    page = visit(side())
    page.get_by_role("button", name="digger 2").click()
    assert "allocated to" in details(page)
    page.keyboard.press("End")
    assert "It is gone." in details(page)
    page.keyboard.press("Escape")
    assert "Click an agent" in details(page)


def test_what_an_agent_does_not_see_fades(visit):
    page = visit(side())
    page.get_by_role("button", name="digger 1").click()
    hidden, seen = (7.7, 2.3), (7.7, 6.3)
    before = colour_on_map(page, *hidden), colour_on_map(page, *seen)
    page.get_by_label("only what it sees").check()
    assert colour_on_map(page, *hidden) != before[0]
    assert colour_on_map(page, *seen) == before[1]
    page.keyboard.press("s")
    assert colour_on_map(page, *hidden) == before[0]


def test_clicking_a_decision_shows_what_was_considered(visit):
    page = visit(side())
    page.locator(f".decision[data-step='{DECISIONS[1]}']").click()
    assert clock(page) == f"5 / {LENGTH}"
    shown = details(page)
    assert "Decision at step 5" in shown
    assert "5 steps have passed." in shown
    assert "3 different allocations among 4 candidates" in shown
    options = page.locator(".options li")
    assert [option.get_attribute("class") for option in options.all()] == ["taken", "runner-up", ""]
    assert options.locator("b").all_inner_texts() == ["3.500", "3.250", "1.000"]
    given = [list(map(int, option.get_attribute("data-option").split(","))) for option in options.all()]
    assert given[:2] == [TAKEN[5], RUNNER_UP]
    assert options.nth(1).locator(".chip").all_inner_texts() == ["D01", "D10", "D20"]
    assert options.nth(1).locator(".often").inner_text() == "2×"


def test_pointing_at_a_proposal_shows_it_on_the_map(visit):
    page = visit(side())
    page.locator(".decision").first.click()
    on_agent = (0.8, 2.0)
    before = colour_on_map(page, *on_agent)
    page.locator(".options li").nth(1).hover()
    assert colour_on_map(page, *on_agent) != before, "agent 0 would be sent to the other hole"
    page.locator("h1").hover()
    assert colour_on_map(page, *on_agent) == before


def test_decisions_are_reached_by_keys(visit):
    page = visit(side())
    for key, step in (("]", 0), ("]", 5), ("]", 8), ("]", 8), ("[", 5)):
        page.keyboard.press(key)
        assert f"Decision at step {step}" in details(page)


def test_the_timeline_tells_what_happened(visit):
    page = visit(side())
    titles = page.locator(".rows title").evaluate_all("titles => titles.map((title) => title.textContent)")
    assert "hole 0, steps 0 to 8" in titles, "agent 0, until the third decision"
    assert "gone after step 7" in titles
    assert "hole 0: dug, step 8" in titles
    assert [title for title in titles if title.startswith("decision")] == [
        "decision at step 0: the episode begins",
        "decision at step 5: 5 steps have passed",
        "decision at step 8: a subtask has finished",
    ]


def test_charts_tell_rewards_so_far(visit):
    page = visit(side())
    page.locator("#scrub").fill("8")
    assert page.locator("figcaption span").all_inner_texts() == ["4.0", "0: 2.0   1: −1.0"]


def test_episodes_are_tabs(visit):
    page = visit(side(episodes=3))
    page.keyboard.press("End")
    page.get_by_role("tab", name="Episode 2").click()
    assert clock(page) == f"0 / {LENGTH}"
    assert page.get_by_role("tab", selected=True).inner_text() == "Episode 2"
    page.get_by_role("tab", name="Episode 2").focus()
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", selected=True).inner_text() == "Episode 0"


@pytest.mark.parametrize("clicked", ["Episode 1", "digger 1", "Dark or light"])
def test_keys_mean_the_same_after_a_click(visit, clicked):
    page = visit(side(episodes=2))
    page.get_by_label(clicked).or_(page.get_by_text(clicked, exact=True)).first.click()
    page.keyboard.press("ArrowRight")
    assert clock(page) == f"1 / {LENGTH}"
    page.keyboard.press("Space")
    assert page.get_by_label("Pause", exact=True).is_visible()


def test_arrows_move_in_time_after_the_speed_was_set(visit):
    page = visit(side())
    page.select_option("#speed", "32")
    page.keyboard.press("ArrowRight")
    assert clock(page) == f"1 / {LENGTH}"
    assert page.locator("#speed").input_value() == "32"


def test_pausing_and_playing_again_does_not_play_faster(visit):
    page = visit(side())
    pending = page.evaluate(
        """() => {
            const pending = new Set();
            window.requestAnimationFrame = () => { pending.add(pending.size + 1); return pending.size; };
            window.cancelAnimationFrame = (frame) => pending.delete(frame);
            const press = () => document.body.dispatchEvent(new KeyboardEvent("keydown", { key: " ", bubbles: true }));
            for (let times = 0; times < 5; times++) press();
            return pending.size;
        }"""
    )
    assert pending == 1, "however often it was stopped and started before the next frame"


def test_a_decision_need_not_be_hit_exactly_nor_with_a_steady_hand(visit):
    page = visit(side())
    for step in DECISIONS:
        mark = page.locator(f".decision[data-step='{step}'] path").bounding_box()
        middle, high = mark["x"] + mark["width"] / 2, mark["y"] + 4
        page.mouse.move(middle + 8, high)
        page.mouse.down()
        page.mouse.move(middle + 30, high)
        page.mouse.up()
        assert f"Decision at step {step}" in details(page)
        assert clock(page) == f"{step} / {LENGTH}"


def test_of_decisions_that_stand_close_the_nearest_is_meant(visit):
    page = visit(side(), viewport={"width": 120, "height": 740})
    marks = page.locator(".decision path").evaluate_all("marks => marks.map((mark) => mark.getBoundingClientRect().x)")
    assert marks[2] - marks[1] < 24, "so close that both are within reach"
    for step in DECISIONS:
        page.evaluate("scrollTo(0, 0)")
        page.locator(f".decision[data-step='{step}'] path").dispatch_event(
            "pointerdown",
            page.locator(f".decision[data-step='{step}'] path").evaluate(
                """mark => {
                    const box = mark.getBoundingClientRect();
                    return { clientX: box.x + box.width / 2, clientY: box.y + 4, bubbles: true };
                }"""
            ),
        )
        assert f"Decision at step {step}" in details(page)


def test_decisions_are_buttons_without_a_pointer_too(visit):
    page = visit(side())
    page.locator(f".decision[data-step='{DECISIONS[1]}']").focus()
    page.keyboard.press("Enter")
    assert f"Decision at step {DECISIONS[1]}" in details(page)
    page.locator(f".decision[data-step='{DECISIONS[2]}']").dispatch_event("click")
    assert f"Decision at step {DECISIONS[2]}" in details(page)


def test_choosing_an_agent_leaves_the_timeline_where_it_is(visit):
    page = visit(side())
    before = page.locator(".rows").bounding_box()
    page.get_by_role("button", name="digger 1").click()
    assert page.locator(".rows").bounding_box() == before


def test_names_can_hold_anything(visit):
    name = 'dig" onmouseover="window.hit=1" <b>ger'
    page = visit(side(), task=Digging(digger=name))
    button = page.get_by_role("button", name=name).first
    button.hover()
    assert page.evaluate("window.hit") is None
    assert button.inner_text().startswith(name)


def test_two_sides_go_in_step(visit):
    page = visit(side("runs/one"), side("runs/two", learned=False))
    assert page.locator(".side h2").all_inner_texts()[1].startswith("2: runs/two")
    assert "has no critic" in page.locator(".side").nth(1).inner_text()
    page.keyboard.press("End")
    ends = page.locator(".rows .playhead").evaluate_all("lines => lines.map((line) => line.getAttribute('x1'))")
    assert ends[0] == ends[1]
    page.keyboard.press("Home")
    click_on_map(page, 1.0, 4.0, side=1)
    assert "2: runs/two" in details(page)
    assert "Utilities" not in details(page), "who only follows a script has none"
    page.locator(".side").nth(1).locator(".decision").first.click()
    assert page.locator(".options li").count() == 1


def test_a_task_without_a_scene_has_everything_but_a_map(visit):
    page = visit(side(), task=Digging(drawn=False))
    assert page.get_by_text("This task does not say what it looks like").is_visible()
    assert not page.locator("canvas").is_visible()
    page.get_by_role("button", name="agent 1").click()
    assert page.locator(".values b").all_inner_texts() == ["2.500", "−1.250"]
    page.locator(".decision").first.click()
    assert "runner-up" in details(page)


def test_two_maps_are_level(visit):
    page = visit(side("short"), side("runs/a/rather/long/path/of/a/run/that/does/not/fit/into/a/line/of/the/page"))
    assert len({canvas.bounding_box()["y"] for canvas in page.locator("canvas").all()}) == 1


@pytest.mark.parametrize("sides", [1, 2])
def test_a_phone_needs_no_scrolling_sideways(visit, sides):
    page = visit(*[side(f"runs/a/rather/long/path/of/a/run/number/{i}") for i in range(sides)], viewport=PHONE)
    page.locator(".decision").first.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("button", name="digger 1").first.click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_dark_and_light(visit):
    page = visit(side(), scheme="dark")

    def looks():
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", paper))), sum(colour_on_map(page, 5, 7.5))

    dark = looks()
    page.locator("#theme").click()
    light = looks()
    assert max(dark) < 200
    assert min(light) > 600
    page.locator("#theme").click()
    assert looks() == dark
