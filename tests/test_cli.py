import json
import re
from dataclasses import replace

import jax
import pytest
from doors import SMALL

from alma.cli import main
from alma.commands import bench, train, watch
from alma.commands.arguments import parse_seeds
from alma.commands.train import Train, preset_of
from alma.configuration import RunConfig
from alma.methods import METHODS
from alma.policy import LearnedPolicy
from alma.presets import FAST, PAPER, preset
from alma.reproduce.running import MINUTES_PER_MILLION
from alma.run import RunFolder


def run(*arguments):
    main([str(argument) for argument in arguments])


def test_play_prints_one_json_object(capsys):
    run("play", "save-the-city", "--episodes", 12, "--json", "--set", "agents=2,3", "--set", "max_steps=20")
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 12
    assert 0 <= result["interval"][0] <= result["success_rate"] <= result["interval"][1] <= 1
    assert set(result["by_team_size"]) <= {"2", "3"}
    assert sum(row["episodes"] for row in result["by_team_size"].values()) == 12


def test_play_prints_a_table_and_draws(capsys, tmp_path):
    out = tmp_path / "new" / "episode.gif"
    run("play", "save-the-city", "--set", "max_steps=5", "--out", out)
    assert "solved" in capsys.readouterr().out
    assert out.stat().st_size > 0


def test_from_the_demo_to_a_longer_run(capsys, tmp_path):
    """The demo trains and draws; what it saved is evaluated, and goes on for longer: one run, since compiling it takes
    most of the time."""
    run("demo", "--preset", "tiny", "--steps", 2048, "--episodes", 8, "--out", tmp_path)
    printed = capsys.readouterr()
    assert "solved 0.0% before" in printed.out.replace("\n", "")
    assert "steps, 0:0" in printed.err, "lines, since this is no terminal"
    assert (tmp_path / "save-the-city.gif").stat().st_size > 0
    out = tmp_path / "run"
    assert (out / "result.json").exists()

    run("evaluate", out, "--episodes", 8, "--json", "--set", "agents=2,3")
    result = json.loads(capsys.readouterr().out)
    assert result["episodes"] == 8
    assert result["method"] == "alma"
    assert 0 <= result["switches_per_step"] <= 1
    assert "unattended_subtasks" in result
    assert set(result["by_team_size"]) <= {"2", "3"}

    run("evaluate", out, "--episodes", 4, "--json", "--actors", out, "--allocator", "search", "--set", "agents=2")
    result = json.loads(capsys.readouterr().out)
    assert (result["actors"], result["allocator"]) == (str(out), "search")
    assert result["task_options"] == {"agents": 2}
    with pytest.raises(SystemExit, match="there is no run 'nowhere' to allocate: name a run folder"):
        run("evaluate", out, "--allocator", "nowhere")
    with pytest.raises(SystemExit, match="for each of 2 agents, as in fixed:0,1, not"):
        run("evaluate", out, "--allocator", "fixed:0,1,2,3,4", "--set", "agents=2")

    run("train", "--resume", out, "--steps", 3072)
    assert "3,072 steps in" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="a resumed run keeps its configuration"):
        run("train", "--resume", out, "--actors.gamma", 0.5)
    with pytest.raises(SystemExit, match="exists already"):
        run("train", "save-the-city", "--out", out)


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """What an untrained run would save, on a task whose compiling takes seconds."""
    config = RunConfig("doors:Doors", options=SMALL)
    trainer = config.make_trainer()
    policy = LearnedPolicy(config, trainer.learned(trainer.init(jax.random.key(0))))
    return policy.save(tmp_path_factory.mktemp("weights") / "doors.safetensors")


def test_watching_writes_a_page_and_opens_it(weights, tmp_path, monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(watch.webbrowser, "open", lambda url: opened.append(url) or True)
    out = tmp_path / "new" / "replay.html"
    run("watch", weights, "--episodes", 2, "--seed", 5, "--against", "heuristic", "--out", out)
    assert opened == [out.as_uri()]
    assert str(out) in capsys.readouterr().out
    story = json.loads(re.search(r'id="story">(.*?)</script>', out.read_text(), re.DOTALL)[1])
    assert (story["task"], story["seed"]) == ("doors", 5)
    assert [side["allocator"] for side in story["sides"]] == ["", "heuristic"]
    assert [len(side["episodes"]) for side in story["sides"]] == [2, 2]
    assert "options" in story["sides"][0]["episodes"][0]["decisions"][0]
    before = out.read_text()
    run("watch", weights, "--episodes", 2, "--seed", 5, "--out", out, "--no-open")
    assert out.read_text() != before, "a page that exists is replaced"
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "nowhere"], "there is no run 'nowhere' to watch against: name a run folder or weights, or"),
        (["--allocator", "nowhere"], "there is no run 'nowhere' to allocate"),
        (["--against", "heuristic:magic"], "has no heuristic 'magic'"),
        (["--task", "save-the-city"], "the tasks have different name"),
        (["--set", "doors=9"], "no option doors"),
        (["--episodes", "0"], "episodes must be at least 1, not 0"),
        (["--out", "replay.gif"], "the task 'doors' does not say what it looks like"),
    ],
)
def test_mistakes_of_watching_are_told_before_any_work(weights, arguments, message, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch, "record", None)
    with pytest.raises(SystemExit) as error:
        run("watch", weights, "--no-open", *arguments)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_several_seeds_get_a_folder_each(monkeypatch, tmp_path):
    trained = []
    monkeypatch.setattr(Train, "_train", lambda self, folder, config: trained.append((folder.path.name, config.seed)))
    run("train", "save-the-city", "--seeds", "2..4", "--out", tmp_path / "many")
    assert trained == [("many-2", 2), ("many-3", 3), ("many-4", 4)]
    assert (tmp_path / "many-3" / "config.json").exists()


def test_presets_are_where_flags_start_from(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(Train, "_train", lambda self, folder, config: seen.append(config))
    run("train", "save-the-city", "--preset", "paper", "--actors.gamma", 0.9, "--out", tmp_path / "p")
    assert seen[0].preset == "paper"
    assert seen[0].options == replace(PAPER, actors=replace(PAPER.actors, gamma=0.9))


def test_actors_are_chosen_by_name(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(Train, "_train", lambda self, folder, config: seen.append((folder.path, config)))
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
        (["--quiet", "starcraft", "--preset", "paper"], preset("paper", "starcraft")),
        (["--preset=tiny", "starcraft"], preset("tiny", "starcraft")),
        (["save-the-city", "--out", "starcraft"], preset("fast")),
        (["--preset", "unheard-of", "save-the-city"], preset("fast")),
    ],
)
def test_flags_start_from_the_preset_of_the_task(arguments, expected):
    assert preset_of(["train", *arguments]) == expected


def test_a_run_may_go_on_for_any_number_of_steps(monkeypatch, tmp_path):
    """Also for as many as the preset has, and in a folder that is called like a task."""
    asked = []
    monkeypatch.setattr(train, "extend", lambda folder, config, steps: asked.append((folder.path.name, steps)))
    monkeypatch.setattr(RunFolder, "read_config", lambda folder: None)
    monkeypatch.setattr(Train, "_train", lambda *_: None)
    run("train", "--resume", tmp_path / "starcraft", "--steps", FAST.steps)
    run("train", "--resume", tmp_path / "starcraft", "--quiet")
    assert asked == [("starcraft", FAST.steps)]


def test_help_shows_every_hyperparameter(capsys):
    with pytest.raises(SystemExit):
        run("train", "--preset", "paper", "--help")
    printed = capsys.readouterr().out
    for flag in ("--actors.n-step", "--allocator.proposals", "--exploration.action.over", "--report.episodes"):
        assert flag in printed
    assert "2000000" in printed, "values of the preset"


def test_benchmarks_print_one_json_object(capsys, monkeypatch):
    monkeypatch.setattr(bench, "benchmark_environment", lambda task, report: {"task": task.spec.name})
    run("bench", "env", "save-the-city", "--json")
    assert json.loads(capsys.readouterr().out) == {"task": "save-the-city"}
    monkeypatch.setattr(bench, "benchmark_training", lambda trainer, report: {"method": trainer.method})
    run("bench", "train", "save-the-city", "--preset", "paper", "--method", "heuristic", "--json")
    assert json.loads(capsys.readouterr().out) == {"preset": "paper", "method": "heuristic"}


def test_reproduce_says_what_it_would_run(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(MINUTES_PER_MILLION, ("starcraft", "fast"), 10.0)
    run("reproduce", "spread", "--seeds", "0", "--dry-run", "--out", tmp_path)
    printed = capsys.readouterr().out
    assert "sz-disadvantage_alma_fast_0" in printed
    assert "sz-disadvantage_flat_fast_0" in printed
    # Two million steps, and a minute and a half besides: 21.5 minutes for ALMA, 17.5 for flat.
    assert "about 39 min on 2 cores" in " ".join(printed.split())
    assert not any(tmp_path.iterdir())


def test_reproduce_shows_what_is_there(capsys, tmp_path):
    run("reproduce", "spread", "--no-train", "--out", tmp_path)
    assert "20 points are missing" in capsys.readouterr().out.replace("\n", " ")
    assert len(json.loads((tmp_path / "spread" / "summary.json").read_text())["missing"]) == 20


def test_methods_are_listed(capsys):
    run("methods")
    printed = capsys.readouterr().out
    assert all(name in printed for name in METHODS)


def test_tasks_are_listed_with_their_options(capsys):
    run("tasks")
    printed = capsys.readouterr().out
    assert "save-the-city" in printed
    assert "fire_growth" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["play", "chess"], "unknown task 'chess': choose from save-the-city"),
        (["play", "save-the-city", "--set", "agents"], "write options as name=value, not 'agents'"),
        (["play", "save-the-city", "--set", "agents=many"], "agents must be a team size"),
        (["play", "save-the-city", "--set", "size=3"], "no option size"),
        (["play", "save-the-city", "--policy", "clever"], "unknown policy"),
        (["play", "save-the-city", "--allocation", "fair"], "unknown allocation"),
        (["play", "save-the-city", "--out", "x.avi"], "its ending must be one of .gif, .mp4, .png"),
        (["play", "save-the-city", "--episodes", "0"], "episodes must be at least 1"),
        (["play", "save-the-city", "--period", "0"], "at least 1 step"),
        (["play", "save-the-city", "--seed", "99999999999999999999"], "a seed must lie between 0 and"),
        (["play", "save-the-city", "--set", "start_on_fire=lots"], "finite numbers"),
        (["play", "save-the-city", "--out", "/proc/nowhere/episode.gif"], "nowhere"),
        (["train"], "name a task"),
        (["train", "chess"], "unknown task"),
        (["train", "save-the-city", "--method", "magic"], "unknown method 'magic': choose from alma"),
        (["train", "save-the-city", "--method", "heuristic:magic"], "no heuristic 'magic'"),
        (["train", "save-the-city", "--seeds", "3..1"], "write seeds as"),
        (["train", "save-the-city", "--seed", "-1"], "a seed must lie between"),
        (["train", "--resume", "nowhere"], "is no run folder"),
        (["evaluate", "nowhere"], "no such file"),
        (["watch", "nowhere"], "no such file"),
        (["watch", "nowhere", "--out", "replay.pdf"], "its ending must be one of .html, .gif, .mp4, .png"),
        (["watch", "nowhere", "--seed", "-1"], "a seed must lie between"),
        (["evaluate", "pretrained:nothing"], "no pretrained weights 'nothing': choose from"),
        (["reproduce", "figure-3"], "unknown figure 'figure-3': choose from save-the-city"),
        (["reproduce", "spread", "--methods", "copa"], "has no methods copa: choose from alma, flat"),
        (["reproduce", "spread", "--seeds", "few"], "write seeds as"),
        (["reproduce", "spread", "--jobs", "0"], "jobs must be at least 1"),
    ],
)
def test_mistakes_are_told_in_one_line(arguments, message):
    with pytest.raises(SystemExit) as error:
        run(*arguments)
    assert str(error.value).startswith("alma: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_seeds():
    assert parse_seeds("0..3") == [0, 1, 2, 3]
    assert parse_seeds("5,1") == [5, 1]


@pytest.mark.parametrize("text", ["", "x", "1,1", "3..2", "1,,2"])
def test_seeds_that_make_no_sense(text):
    with pytest.raises(ValueError, match="write seeds as"):
        parse_seeds(text)
