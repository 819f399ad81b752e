"""A figure on the task of two doors, with a case of every kind."""

from dataclasses import replace

from alma.reproduce.figures import Arm, Case, Figure, Setting
from alma.reproduce.scores import EPISODES, Score

DOORS = Setting("doors", "Doors", "helpers.doors:Doors")
LEARNED = Arm(DOORS, "alma", "ALMA", {"allocator.proposals": 4})
OWNER = Arm(DOORS, "heuristic:owner", "heuristic")
FIGURE = Figure(
    "doors",
    "Two doors",
    "bars",
    (
        Case("Doors", "ALMA", LEARNED),
        Case("Doors", "heuristic", OWNER),
        Case("Doors", "ALMA on the heuristic's actors", OWNER, allocator=LEARNED),
        Case("Doors", "ALMA, one step", LEARNED, task_options={"limit": 1}),
    ),
    seeds=2,
)


def made_up(label, seed, rate, at=None):
    """An invented score with a success rate."""
    case = replace(next(case for case in FIGURE.cases if case.label == label), at=at)
    run = {"step": 1_000_000, "training_minutes": 2.0 + seed}
    successes = "1" * round(10 * rate) + "0" * round(10 * (1 - rate))
    summary = {"success_rate": rate, "mean_return": 2 * rate, "episodes": EPISODES, "successes": successes}
    return Score(case, seed, run, summary)
