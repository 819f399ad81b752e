"""A figure on the smallest task, with a run of every kind."""

from alma.reproduce.figures import Arm, Figure, Play, Setting

DOORS = Setting("doors", "Doors", "doors:Doors")
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
