import io

from rich.console import Console

from alma.runs.progress import LineDisplay, LiveDisplay, Progress, duration, make_display, spark_line, time_left


def progress(step, rates=()):
    evaluations = [{"success_rate": rate} for rate in rates]
    return Progress(step, 1000, 20.0, 50.0, {"actor_loss": 0.25, "episodes": 7.0}, evaluations)


def test_spark_lines():
    assert spark_line([0.0, 0.5, 1.0]) == "▁▅█"
    assert len(spark_line([0.1] * 100, width=12)) == 12


def test_times():
    assert duration(59.6) == "1:00"
    assert duration(3725) == "1:02:05"
    assert time_left(progress(250)) == 60
    assert time_left(progress(1010)) == 0, "the last chunk may go a little beyond"


def test_lines_are_few_and_tell_what_matters():
    out = io.StringIO()
    display = LineDisplay(Console(file=out), every=1000.0)
    with display:
        for step in range(100, 600, 100):
            display.show(progress(step))
        display.show(progress(600, [0.125]))
    first, second = out.getvalue().splitlines()
    assert first.startswith("100/1,000 steps, 0:20 trained, 3:00 left, 50/s, not evaluated yet, actor_loss 0.25")
    assert "solved 12.5%" in second


def test_the_live_display_shows_success_losses_and_time():
    out = io.StringIO()
    with LiveDisplay(Console(file=out, force_terminal=True, width=120)) as display:
        display.say("compiled")
        display.show(progress(500, [0.0, 0.4, 0.9]))
    printed = out.getvalue()
    for text in ("compiled", "500/1000", "50/s", "0:20 left", "90.0%", "▁▄█", "actor loss 0.25"):
        assert text in printed


def test_which_display():
    assert isinstance(make_display(Console(file=io.StringIO())), LineDisplay)
    assert isinstance(make_display(Console(file=io.StringIO(), force_terminal=True)), LiveDisplay)
    assert isinstance(make_display(Console(file=io.StringIO(), force_terminal=True), quiet=True), LineDisplay)
