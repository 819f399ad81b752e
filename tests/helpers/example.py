"""A figure on the smallest task, with a run of every kind."""

from dataclasses import replace

from alma.reproduce.figures import Arm, Figure, Play, Setting
from alma.reproduce.scores import EPISODES, Score

DOORS = Setting("doors", "Doors", "helpers.doors:Doors")
LEARNED = Arm(DOORS, "alma", "ALMA", {"allocator.proposals": 4})
OWNER = Arm(DOORS, "heuristic:owner", "heuristic")
FIGURE = Figure(
    "doors",
    "Two doors",
    "bars",
    (
        Play("Doors", "ALMA", LEARNED),
        Play("Doors", "heuristic", OWNER),
        Play("Doors", "ALMA on the heuristic's actors", OWNER, allocator=LEARNED),
        Play("Doors", "ALMA, one step", LEARNED, task_options={"limit": 1}),
    ),
    seeds=2,
)


def made_up(label, seed, rate, at=None):
    """A score of a run that never was."""
    play = replace(next(play for play in FIGURE.plays if play.label == label), at=at)
    run = {"step": 1_000_000, "training_minutes": 2.0 + seed}
    successes = "1" * round(10 * rate) + "0" * round(10 * (1 - rate))
    summary = {"success_rate": rate, "mean_return": 2 * rate, "episodes": EPISODES, "successes": successes}
    return Score(play, seed, run, summary)
