"""Figures as data: every run can be built, and none is mistaken for another."""

from dataclasses import replace

import pytest

import alma
from alma.reproduce.figures import FIGURES, SZ_DISADVANTAGE, Arm, Case, Figure, find_figures, with_steps


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_every_run_of_a_figure_can_be_configured(figure):
    for name in figure.presets:
        for arm in figure.arms:
            config = arm.config(name, 0)
            assert config.task == arm.setting.task
            assert config.method == arm.method


def test_no_two_different_runs_share_a_folder():
    arms = [arm for figure in FIGURES.values() for arm in figure.arms]
    folders = {}
    for arm in arms:
        config = folders.setdefault(arm.run_name("fast", 0), arm.config("fast", 0))
        assert config == arm.config("fast", 0)


def test_figures_share_the_runs_that_they_have_in_common():
    usual = Arm(SZ_DISADVANTAGE, "alma", "ALMA").run_name("fast", 0)
    for name in ("starcraft", "spread", "spread-each", "transplant", "robustness"):
        assert usual in {arm.run_name("fast", 0) for arm in FIGURES[name].arms}
    cities = [
        {arm.run_name("fast", 4) for arm in FIGURES[name].arms}
        for name in ("save-the-city", "transplant-save-the-city")
    ]
    assert cities[1] < cities[0]
    assert FIGURES["save-the-city"].seeds == FIGURES["transplant-save-the-city"].seeds


def test_runs_with_the_papers_networks_are_told_from_those_with_ours():
    """They have a preset of their own, but a first look at the figure takes that for first looks."""
    arms = {arm.run_name("fast", 0): arm.config("fast", 0) for arm in FIGURES["architecture"].arms}
    faithful = {name: config for name, config in arms.items() if config.preset == "faithful"}
    assert set(faithful) == {name for name in arms if "_faithful_" in name}
    assert {config.method for config in faithful.values()} == {"alma", "heuristic", "flat", "alma-no-mask", "copa"}
    others = [config.options.actors.networks for name, config in arms.items() if name not in faithful]
    assert {(looks.trunk, looks.mixer) for looks in others} == {
        ("pooling", "sum"),
        ("attention", "sum"),
        ("attention", "qmix"),
    }
    assert {arm.config("tiny", 0).preset for arm in FIGURES["architecture"].arms} == {"tiny"}


@pytest.mark.parametrize("name", ["save-the-city", "starcraft"])
def test_over_minutes_only_steps_differ_and_of_what_learns_no_allocator(name):
    usual = {(arm.setting.name, arm.method): arm for arm in FIGURES[name].arms}
    for arm in FIGURES[f"{name}-minutes"].arms:
        config, same = arm.config("fast", 3), usual[arm.setting.name, arm.method].config("fast", 3)
        more = config.options.steps > same.options.steps
        assert more == arm.method.startswith(("heuristic", "flat"))
        assert replace(config, options=replace(config.options, steps=same.options.steps)) == same


def test_the_spread_of_one_army_is_swept_where_the_others_are_drawn():
    each, alike = FIGURES["spread-each"], FIGURES["spread"]
    assert [(case.arm, case.at) for case in each.cases] == [(case.arm, case.at) for case in alike.cases]
    for case in each.cases:
        rules = alma.make(case.arm.setting.task, **case.arm.setting.options, **case.task_options).rules
        assert (rules.spread, rules.one_spread) == ((0, 1), case.at)


def test_team_sizes_are_swept_with_runs_of_the_usual_sizes():
    """The runs of `save-the-city` serve, and every size is one that the task has, with that many agents."""
    figure, usual = FIGURES["sizes"], {arm.run_name("fast", 0) for arm in FIGURES["save-the-city"].arms}
    assert {arm.run_name("fast", 0) for arm in figure.arms} < usual
    assert {case.arm.method for case in figure.cases} == {"alma", "heuristic", "alma-no-mask", "flat", "copa"}
    for case in figure.cases:
        assert alma.make(case.arm.setting.task, **case.task_options).spec.agents == case.at
    assert {case.at for case in figure.cases} >= {2, 5, 8, 16, 24}


def test_steps_of_their_own_do_not_replace_other_changes():
    (arm,) = with_steps((Arm(SZ_DISADVANTAGE, "flat", "flat", {"actors.gamma": 0.9}),), {"flat": 7})
    assert (arm.config("fast", 0).options.steps, arm.config("fast", 0).options.actors.gamma) == (7, 0.9)


def test_who_only_allocates_is_trained_too():
    actors, allocator = FIGURES["transplant-save-the-city"].arms
    figure = Figure("one", "One", "bars", (Case("city", "both", actors, allocator=allocator),), seeds=1)
    assert figure.arms == (actors, allocator)


@pytest.mark.parametrize("name", ["transplant", "transplant-save-the-city"])
def test_the_control_of_transplants_needs_no_runs_of_its_own(name):
    figure = FIGURES[name]
    (control,) = [case for case in figure.cases if case.other_seed]
    assert control.label == "ALMA's allocator on actors of another ALMA seed"
    assert control.arm == control.allocator == figure.cases[0].arm
    assert figure.arms == replace(figure, cases=tuple(case for case in figure.cases if case != control)).arms


def test_a_part_of_a_figure_keeps_what_was_asked_for():
    part = FIGURES["starcraft"].only(("alma", "flat"), ("mmm-symmetric",))
    assert {(arm.method, arm.setting.name) for arm in part.arms} == {
        ("alma", "mmm-symmetric"),
        ("flat", "mmm-symmetric"),
    }
    alone = FIGURES["transplant"].only(("heuristic:matching",), ())
    assert [case.label for case in alone.cases] == ["matching, trained together"]  # no allocator of ALMA's without ALMA


@pytest.mark.parametrize(
    ("methods", "settings", "message"),
    [
        (("qmix",), (), "no methods qmix in starcraft: choose from alma"),
        ((), ("sz",), "no settings sz in starcraft: choose from .*sz-symmetric"),
    ],
)
def test_unknown_parts_are_named(methods, settings, message):
    with pytest.raises(ValueError, match=message):
        find_figures("starcraft", methods, settings)


def test_parts_of_all_figures_leave_out_those_without():
    figures = find_figures("all", ("heuristic:matching",), ("sz-disadvantage",))
    assert [figure.name for figure in figures] == ["starcraft", "starcraft-minutes", "transplant", "robustness"]
    with pytest.raises(ValueError, match="nothing in all has both the methods random and sz-symmetric"):
        find_figures("all", ("random",), ("sz-symmetric",))


@pytest.mark.parametrize("figure", FIGURES.values(), ids=FIGURES)
def test_figures_compare_with_something_that_they_show(figure):
    for panel in {case.panel for case in figure.cases}:
        assert figure.reference in {case.label for case in figure.cases if case.panel == panel}


def test_figures_are_found_by_name():
    assert [figure.name for figure in find_figures("spread")] == ["spread"]
    assert len(find_figures("all")) == len(FIGURES)
    with pytest.raises(ValueError, match="unknown figure 'figure-3': choose from save-the-city"):
        find_figures("figure-3")
