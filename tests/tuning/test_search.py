"""Hyperparameter search: what is tried, what is stopped early, and that it goes on where it stopped."""

import io
import json

import pytest
from helpers.engine import DIED, FAILED, PretendEngine, finish
from helpers.summaries import made_up_summary
from rich.console import Console

from alma.launch import launcher
from alma.launch.launcher import Launcher
from alma.launch.overview import Overview
from alma.training.preset_file import find_preset
from alma.tuning.search import STARTUP_TRIALS, Search, Trials, check_same, open_study
from alma.tuning.spaces import Choices, Range

pytest.importorskip("optuna", reason="optuna is not installed: pip install 'alma-marl[tune]'")

SPACE = {"actors.gamma": Range(0.5, 0.99), "actors.n_step": Range(1, 4), "allocator.period": Choices((2, 5))}
SEARCH = Search("save-the-city", {"agents": 2}, "alma", "tiny", (0, 1), "success_rate", SPACE, steps=2_048)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch):
    monkeypatch.setattr(launcher, "POLL_SECONDS", 0.0)


def by_gamma(job):
    """A run is as good as its discount is high."""
    finish(job, round(job.config.options.actors.gamma, 2))


def search(out, trials, engine=None, what=SEARCH, stop_early=True):
    """Run a search; returns its study, and the failures."""
    out.mkdir(exist_ok=True)
    study = open_study(out, what, stop_early)
    overview = Overview(Console(file=io.StringIO()))
    failed = Launcher(Trials(what, study, trials, out), engine or PretendEngine(finish=by_gamma), overview).run()
    return study, failed


def states(study):
    return [trial.state.name for trial in study.trials]


def test_a_trial_is_the_mean_over_its_seeds(tmp_path):
    def by_seed(job):
        finish(job, 0.2 + 0.4 * job.config.seed)

    engine = PretendEngine(finish=by_seed)
    study, _ = search(tmp_path, 3, engine)
    assert sorted(engine.begun) == [f"trial-000{trial}-{seed}" for trial in range(3) for seed in range(2)]
    assert [trial.value for trial in study.trials] == 3 * [pytest.approx(0.4)]


def test_runs_have_the_values_of_their_trial(tmp_path):
    study, _ = search(tmp_path, 2)
    for trial in study.trials:
        written = json.loads((tmp_path / "runs" / f"trial-{trial.number:04d}-1" / "config.json").read_text())
        assert set(trial.params) == set(SPACE)
        assert written["options"]["actors"]["gamma"] == trial.params["actors.gamma"]
        assert written["options"]["actors"]["n_step"] == trial.params["actors.n_step"]
        assert written["options"]["allocator"]["period"] == trial.params["allocator.period"]
        assert (written["seed"], written["options"]["steps"]) == (1, 2_048)


def test_a_search_goes_on_where_it_stopped(tmp_path):
    engine = PretendEngine(finish=by_gamma)
    search(tmp_path, 2, engine)
    study, _ = search(tmp_path, 5, engine)
    assert len(study.trials) == 5
    assert len(engine.begun) == len(set(engine.begun)) == 10, "nothing is trained twice"
    search(tmp_path, 5, engine)
    assert len(engine.begun) == 10, "there is nothing left"


def test_a_trial_that_was_under_way_is_finished_by_the_next_call(tmp_path):
    study = open_study(tmp_path, SEARCH, stop_early=True)
    begun = Trials(SEARCH, study, 2, tmp_path)
    first = begun.next()
    first.folder.create(first.config)
    study, _ = search(tmp_path, 2)
    assert states(study) == ["COMPLETE", "COMPLETE"]
    assert study.trials[0].params["actors.gamma"] == first.config.options.actors.gamma


def test_trials_with_a_poor_learning_curve_are_stopped(tmp_path):
    """Each run evaluates once in the middle of its training, and goes on until it is stopped or told to finish."""
    engine = PretendEngine()
    study = open_study(tmp_path, SEARCH, stop_early=True)
    source = Trials(SEARCH, study, STARTUP_TRIALS + 2, tmp_path)

    def train_half(rate):
        jobs = [source.next() for _ in SEARCH.seeds]
        for job in jobs:
            job.folder.create(job.config)
            evaluation = made_up_summary(round(100 * rate), 100)
            line = {
                "step": 1_024,
                "minutes": 0.1,
                **{f"evaluation/{name}": value for name, value in evaluation.items()},
            }
            job.folder.metrics.write_text(json.dumps(line) + "\n")
        stopped = [source.stops(job) for job in jobs]
        for job in jobs:
            if not all(stopped):
                engine.finish(job)
            source.ended(job, "")
        return all(stopped)

    assert not any(train_half(0.5) for _ in range(STARTUP_TRIALS))
    assert train_half(0.1)
    assert not train_half(0.6)
    assert states(study) == [*STARTUP_TRIALS * ["COMPLETE"], "PRUNED", "COMPLETE"]
    assert study.trials[-1].intermediate_values == {1_024: pytest.approx(0.6)}


def test_a_trial_fails_with_its_run_and_the_others_go_on(tmp_path):
    engine = PretendEngine(finish=by_gamma, fates={"trial-0001-0": [FAILED], "trial-0002-1": [DIED]})
    study, failed = search(tmp_path, 4, engine)
    assert states(study) == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert [line.partition(":")[0] for line in failed] == ["trial-0001-0"]
    assert study.trials[1].user_attrs["failure"].startswith("the reason")


def test_draws_that_do_not_go_together_are_drawn_anew(tmp_path):
    space = {"allocator.proposals": Choices((1, 8)), "allocator.variations": Choices((0, 4))}
    what = Search("save-the-city", {}, "alma", "tiny", (0,), "success_rate", space)
    study, _ = search(tmp_path, 6, PretendEngine(), what)
    fits = [trial for trial in study.trials if trial.state.name == "COMPLETE"]
    assert len(fits) == 6
    assert all(trial.params["allocator.variations"] <= trial.params["allocator.proposals"] for trial in fits)


def test_a_search_cannot_be_continued_as_another(tmp_path):
    file = tmp_path / "search.json"
    check_same(SEARCH, file)
    check_same(SEARCH, file)
    other = Search(**{**vars(SEARCH), "seeds": (0, 1, 2), "steps": 4_096})
    with pytest.raises(ValueError, match="holds a search with another seeds, steps: choose another --out"):
        check_same(other, file)


def test_the_best_values_are_a_preset_file(tmp_path):
    values = {"actors.gamma": 0.75, "allocator.period": 2}
    file = tmp_path / "best.json"
    file.write_text(json.dumps(SEARCH.as_preset(values, "the best")))
    base, options = find_preset(str(file), "save-the-city")
    assert (base, options.actors.gamma, options.allocator.period) == ("tiny", 0.75, 2)
    further = Search(**{**vars(SEARCH), "preset": str(file)})
    assert further.config({"actors.n_step": 4}, 0).options.actors.gamma == 0.75
    assert further.as_preset({"actors.gamma": 0.6}, "")["options"] == {**values, "actors.gamma": 0.6}
