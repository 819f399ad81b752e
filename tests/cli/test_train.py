"""`alma train`: what its flags mean."""

from dataclasses import replace

import pytest
from helpers.commandline import run
from hypothesis import given, settings
from hypothesis import strategies as st

from alma.cli import train
from alma.cli.parsing import flags
from alma.cli.train import ADVANCED, Train, read_train
from alma.cli.training import steps_note
from alma.launch.job import Resources
from alma.launch.local import Local
from alma.training.options import with_overrides
from alma.training.presets import PAPER, PRESETS, TINY, preset

WITHOUT_POPART = with_overrides(preset("paper", "starcraft"), {"actors.popart": False})


@pytest.fixture
def launched(monkeypatch):
    """The jobs and the engine of every call of the launcher, which trains nothing."""
    calls = []
    monkeypatch.setattr(train, "train_all", lambda jobs, engine, console: calls.append((jobs, engine)) or [])
    return calls


def test_several_seeds_get_a_folder_each(launched, tmp_path):
    run("train", "save-the-city", "--seeds", "2..4", "--jobs", 2, "--out", tmp_path / "many")
    [(jobs, engine)] = launched
    assert [(job.name, job.config.seed) for job in jobs] == [("many-2", 2), ("many-3", 3), ("many-4", 4)]
    assert isinstance(engine, Local)
    assert engine.jobs == 2


def test_several_seeds_are_continued_or_started_over(launched, tmp_path):
    arguments = ("train", "save-the-city", "--seeds", "0..1", "--out", tmp_path / "many")
    run(*arguments)
    [jobs, _] = launched[-1]
    jobs[0].folder.create(jobs[0].config)
    metrics = jobs[0].folder.metrics
    metrics.write_text("")
    run(*arguments)
    assert metrics.exists()
    run(*arguments, "--force")
    assert not metrics.exists()
    assert [job.folder.config.exists() for job in jobs] == [True, True]


def test_a_single_run_can_be_trained_elsewhere_too(launched, tmp_path):
    run(
        "train",
        "save-the-city",
        "--engine",
        "slurm",
        "--slurm",
        "partition=gpu",
        "--gpus",
        1,
        "--out",
        tmp_path / "one",
    )
    [([job], engine)] = launched
    assert job.name == "one"
    assert (engine.options, engine.resources) == ({"partition": "gpu"}, Resources(1, None, 1))


def test_failures_are_told_at_the_end(monkeypatch, tmp_path):
    monkeypatch.setattr(train, "train_all", lambda *_: ["one: the reason", "two: another"])
    with pytest.raises(SystemExit, match="one: the reason; two: another"):
        run("train", "save-the-city", "--seeds", "0..1", "--out", tmp_path / "many")


def test_a_preset_file_is_where_flags_start_from(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(train, "train_in", lambda folder, config, *_: seen.append((folder.path.name, config)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('preset = "tiny"\n[options]\nactors.n_step = 3\nactors.gamma = 0.5\n')
    run("train", "starcraft", "--preset", "mine.toml", "--actors.gamma", 0.9)
    [(name, config)] = seen
    assert name == "starcraft-alma-mine-0"
    assert config.preset == "tiny"
    expected = with_overrides(preset("tiny", "starcraft"), {"actors.n_step": 3, "actors.gamma": 0.9})
    assert config.options == expected
    (tmp_path / "mine.toml").write_text('options.actors.n_step = "x"')
    with pytest.raises(SystemExit, match=r"mine\.toml: actors\.n_step must be a whole number, not 'x'"):
        run("train", "starcraft", "--preset", "mine.toml")


def test_the_seed_is_0_if_not_given():
    assert [config.seed for config in read_train(["save-the-city"]).configs()] == [0]
    assert [config.seed for config in read_train(["save-the-city", "--seed", "3"]).configs()] == [3]


@pytest.mark.parametrize(
    ("steps", "note"),
    [
        (1, "trains 1,024 steps: whole chunks of 1,024"),
        (1_025, "trains 2,048 steps: whole chunks of 1,024"),
        (2_048, ""),
    ],
)
def test_runs_are_made_of_whole_chunks(steps, note):
    assert steps_note(replace(TINY, steps=steps)) == note


def test_presets_are_where_flags_start_from(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(train, "train_in", lambda folder, config, *_: seen.append(config))
    run("train", "save-the-city", "--preset", "paper", "--actors.gamma", 0.9, "--out", tmp_path / "p")
    assert seen[0].preset == "paper"
    assert seen[0].options == replace(PAPER, actors=replace(PAPER.actors, gamma=0.9))


def test_actors_are_chosen_by_name(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(train, "train_in", lambda folder, config, *_: seen.append((folder.path, config)))
    monkeypatch.chdir(tmp_path)
    run("train", "save-the-city", "--actors", "refil")
    run("train", "starcraft", "--method", "copa")
    run("train", "starcraft", "--actors.imagination", 0)
    assert [path.name for path, _ in seen] == [
        "save-the-city-alma-refil-fast-0",
        "starcraft-copa-fast-0",
        "starcraft-alma-fast-0",
    ]
    assert [config.options.actors.imagination for _, config in seen] == [0.5, 0.5, 0]
    assert [config.options.allocator.period for _, config in seen] == [5, 3, 3]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["starcraft"], preset("fast", "starcraft")),
        (["--no-quiet", "starcraft"], preset("fast", "starcraft")),
        (["--quiet", "starcraft", "--preset", "paper"], preset("paper", "starcraft")),
        (["save-the-city", "--out", "starcraft"], preset("fast")),
        (["--actors.n-step", "3", "starcraft"], with_overrides(preset("fast", "starcraft"), {"actors.n_step": 3})),
        (["--actors.popart", "starcraft"], with_overrides(preset("fast", "starcraft"), {"actors.popart": True})),
        (["--actors.no-popart", "starcraft", "--preset", "paper"], WITHOUT_POPART),
    ],
)
def test_flags_start_from_the_preset_of_the_task(arguments, expected):
    assert read_train(arguments).options == expected


PARTS = [
    ["starcraft"],
    ["--preset", "paper"],
    ["--no-quiet"],
    ["--force"],
    ["--actors", "refil"],
    ["--method=heuristic"],
    ["--set", "units=mmm"],
    ["--set=balance=disadvantage"],
    ["--out", "save-the-city"],
    ["--actors.no-popart"],
    ["--allocator.networks.relations"],
    ["--actors.networks.mixer", "sum"],
    ["--exploration.action.end=0.01"],
    ["--collection.warmup", "640000"],
    ["--steps", "5"],
]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from(PARTS[1:]), unique_by=tuple), st.randoms(use_true_random=False))
def test_the_order_of_arguments_changes_nothing(chosen, chance):
    """Of the task among the flags either: whatever follows it or stands before it."""
    parts = [PARTS[0], *chosen]
    expected = read_train([word for part in parts for word in part])
    chance.shuffle(parts)
    found = read_train([word for part in parts for word in part])
    assert found.configs() == expected.configs()
    assert replace(found, set=expected.set) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["save-the-city", "--actors.gamma", "2"],
            "alma: --actors.gamma must lie between 0 and 1, not 2.0 (see alma train --help)",
        ),
        (
            ["--collection.warmup", "0", "starcraft"],
            "alma: --collection.warmup must be at least the number of environments",
        ),
        (
            ["--collection.environments", "3", "starcraft"],
            "alma: --collection.steps-per-update must be a multiple of the 3 environments",
        ),
        (["starcraft", "--exploration.action.over=0"], "alma: --exploration.action.over must be at least 1 step"),
        (["starcraft", "--exploration.action.end=2"], "alma: --exploration.action must start and end between 0 and 1"),
        (["starcraft", "--steps", "1e6"], "alma: --steps must be a whole number, not '1e6' (see alma train --help)"),
        (
            ["starcraft", "--preset", "best"],
            "alma: unknown preset 'best': choose from fast, long, faithful, paper, tiny, or name a file",
        ),
        (["starcraft", "--set"], "alma: --set needs a value (see alma train --help)"),
        (["starcraft", "--actors.gama=1"], "did you mean --actors.gamma or --allocator.gamma? (see alma train --help)"),
        (["starcraft", "save-the-city"], "'save-the-city' is one argument too many (see alma train --help)"),
        (["starcraft", "--seed", "0", "--seeds", "0..1"], "give either --seed or --seeds, not both (see alma train"),
        (["starcraft", "--seeds", "1..0"], "not '1..0' (see alma train --help)"),
        (["starcraft", "--set", "balance"], "not 'balance' (see alma train --help)"),
        (["--actors.popart"], "name a task, for example: alma train save-the-city (see alma train --help)"),
    ],
)
def test_mistakes_in_options_are_told_in_one_line(arguments, message):
    with pytest.raises(SystemExit) as error:
        run("train", *arguments)
    assert str(error.value).startswith("alma: ")
    assert message in str(error.value)


def test_options_that_do_not_fit_the_first_look_may_fit_the_preset():
    """Windows of `paper` need more warmup than other presets have: what fits is decided when the preset is known."""
    options = read_train(["--actors.window=60", "save-the-city", "--preset", "paper"]).options
    assert options == with_overrides(PAPER, {"actors.window": 60})


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        run("train", *arguments)
    assert not stopped.value.code
    return capsys.readouterr().out


def known(name, options):
    """Whether the options have this path of fields."""
    first, _, rest = name.partition(".")
    return hasattr(options, first) and (not rest or known(rest, getattr(options, first)))


@pytest.mark.parametrize("name", PRESETS)
def test_help_fits_on_two_screens(capsys, monkeypatch, name):
    monkeypatch.setenv("COLUMNS", "120")
    printed = help_of(capsys, "--preset", name, "--help")
    assert len(printed.splitlines()) <= 100
    assert "--help-all" in printed
    assert f"(default: {PRESETS[name].steps})" in printed, "values of the preset"
    assert all(f"--{hidden.replace('_', '-')}" not in printed for hidden in ADVANCED)
    assert all(known(hidden, TINY) for hidden in ADVANCED)


def test_help_all_shows_every_hyperparameter(capsys):
    printed = help_of(capsys, "--preset", "paper", "--help-all", "--actors.clip", "3")
    assert [flag for flag, _ in flags(Train) if f"{flag} " not in printed and f"{flag}," not in printed] == []
    assert "2000000" in printed, "values of the preset"
    assert "high level" not in printed


@pytest.mark.parametrize("arguments", [["-h"], ["--actors.popart", "-h"], ["--bogus", "--help"]])
def test_help_comes_before_complaints(capsys, arguments):
    assert "usage: alma train" in help_of(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices", "0"], "--devices must be at least 1, not 0"),
        (["--process", "0"], "--coordinator, --processes and --process are for --distributed"),
        (["--together"], "--together is for several --seeds"),
        (["--together", "--seeds", "0..1", "--devices", "2"], "--together trains in one process on one device"),
        (["--distributed", "--seeds", "0..1"], "--distributed trains one run"),
    ],
)
def test_devices_and_processes_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(SystemExit, match=message):
        run("train", "save-the-city", *arguments)


def test_the_number_of_devices_goes_with_launched_runs(launched, tmp_path):
    run("train", "save-the-city", "--seeds", "0..1", "--devices", 2, "--out", tmp_path / "many")
    [(jobs, _)] = launched
    assert [job.resume_arguments for job in jobs] == [("--devices", "2")] * 2
