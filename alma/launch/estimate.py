"""Estimates of how long runs take."""

from alma.runs.config import RunConfig

MINUTES_PER_MILLION = {
    ("save-the-city", "fast"): 0.8,
    ("save-the-city", "long"): 0.8,
    ("save-the-city", "faithful"): 7.0,
    ("save-the-city", "paper"): 65.0,
    ("starcraft", "fast"): 1.3,
    ("starcraft", "long"): 1.3,
    ("starcraft", "faithful"): 20.0,
    ("starcraft", "paper"): 270.0,
}
"""Training time of ALMA per million steps, on 2 otherwise idle cores. `paper` and `faithful` on starcraft are guesses.
"""
RELATIVE_COST = {"alma": 1.0, "alma-no-mask": 1.4, "copa": 2.0, "flat": 0.7, "heuristic": 0.5, "random": 0.5}
"""Training time of each method relative to ALMA."""
OVERHEAD_MINUTES = 1.5
"""Time for compilation and evaluation, per run."""
SPEEDUP = 1.1
"""Throughput of two parallel runs with a core each, relative to one run with two cores (ALMA on StarCraft)."""


def training_minutes(config: RunConfig) -> float:
    """Estimated minutes that a whole run takes on 2 cores."""
    kind = config.method.partition(":")[0]
    per_million = MINUTES_PER_MILLION.get((config.task, config.preset), 3.0)
    return config.options.steps / 1e6 * per_million * RELATIVE_COST.get(kind, 1.0) + OVERHEAD_MINUTES


def clock(minutes: float) -> str:
    """Minutes formatted as hours and minutes."""
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02d} min" if hours else f"{rest} min"
