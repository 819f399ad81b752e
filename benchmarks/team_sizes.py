"""How time and memory grow with the team: one decision, one choice of actions, one step of the environment.

    .venv/bin/python benchmarks/team_sizes.py

For teams of SaveTheCity of 5 to 100 agents, with one building more than agents, on one core and in one environment.
Writes a table, a CSV file and a picture. Parameters are those that training begins with, since time does not depend on
what was learned. Memory is what XLA plans for arguments, results and intermediate arrays of the compiled program.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console

import alma
from alma.files import atomic_write
from alma.play.situation import Situation
from alma.reproduce.writing import write_csv
from alma.task.view import NOBODY
from alma.training.methods import make_team
from alma.training.presets import preset

TASK = "save-the-city"
LARGEST = 100
PARTS = {"decide": "a decision", "act": "a choice of actions", "step": "a step of the environment with its view"}


class Measured(NamedTuple):
    """One program at one size."""

    preset: str
    part: str
    agents: int
    subtasks: int
    milliseconds: float
    """Median time of a call."""
    megabytes: float
    compile_seconds: float


def grid_for(agents: int) -> int:
    """The side of a map with enough building sites: 16 as usual, larger ones for more than 24 agents."""
    grid = 16
    while ((grid - 2 + 2) // 3) ** 2 < agents + 1:
        grid += 2
    return grid


def programs(name: str, agents: int) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """The parts of a step of play, with their arguments. The environment is the same for all presets."""
    task = alma.make(TASK, agents=agents, grid_size=grid_for(agents))
    options = preset(name, TASK)
    team, key = make_team(task, options, "alma"), jax.random.key(0)
    state = task.reset(key)
    view, nobody = task.view(state), jnp.full(agents, NOBODY)
    situation = Situation(None, view, nobody, nobody)
    batch = jax.tree.map(lambda leaf: leaf[None], (view, nobody))
    params = {
        "decide": jax.jit(lambda: team.allocator.init(key, *batch).params)(),
        "act": jax.jit(lambda: team.actors.init(key, *batch).params)(),
    }
    allocation = jax.jit(team.allocator.greedy)(params["decide"], key, situation)
    yield "decide", team.allocator.greedy, (params["decide"], key, situation._replace(allocation=allocation))
    yield "act", team.actors.greedy, (params["act"], key, situation._replace(allocation=allocation))
    yield "step", partial(step_and_look, task), (key, state, jnp.zeros(agents, jnp.int32))


def step_and_look(task: alma.Task, key: Any, state: Any, actions: Any) -> Any:
    """A step of the environment, and the view of the state that it leads to."""
    after, outcome = task.step(key, state, actions)
    return after, outcome, task.view(after)


def measure(function: Callable[..., Any], arguments: tuple[Any, ...], seconds: float) -> tuple[float, float, float]:
    """Median milliseconds of a call, megabytes of memory, and seconds of compilation."""
    began = time.perf_counter()
    compiled = jax.jit(function).lower(*arguments).compile()
    compiling = time.perf_counter() - began
    plan = compiled.memory_analysis()
    planned = plan.argument_size_in_bytes + plan.output_size_in_bytes + plan.temp_size_in_bytes
    jax.block_until_ready(compiled(*arguments))
    times, until = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < until:
        began = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times), planned / 2**20, compiling


def growth(found: list[Measured]) -> float:
    """The exponent of agents x subtasks that time grows with from 20 agents on; above 1 it is more than linear."""
    large = [one for one in found if one.agents >= 20]
    work = np.log([one.agents * one.subtasks for one in large])
    return float(np.polyfit(work, np.log([one.milliseconds for one in large]), 1)[0]) if len(large) > 1 else np.nan


def table(found: list[Measured]) -> str:
    """Time and memory of every part at every size, as Markdown."""
    lines = []
    for part, what in PARTS.items():
        for name in dict.fromkeys(one.preset for one in found):
            mine = [one for one in found if (one.part, one.preset) == (part, name)]
            if not mine:
                continue
            networks = "" if part == "step" else f", networks of preset `{name}`"
            lines += [
                f"{what.capitalize()}{networks}; from 20 agents on, time grows with (agents x subtasks) to the power "
                f"of {growth(mine):.2f}:",
                "",
                "| agents | subtasks | ms | MB | s to compile |",
                "|---|---|---|---|---|",
                *(
                    f"| {one.agents} | {one.subtasks} | {one.milliseconds:.2f} | {one.megabytes:.1f} | "
                    f"{one.compile_seconds:.1f} |"
                    for one in mine
                ),
                "",
            ]
    return "\n".join(lines)


def draw(found: list[Measured], folder: Path) -> None:
    """Time and memory over agents x subtasks, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    picture, axes = pyplot.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for axis, field, unit in zip(axes, ("milliseconds", "megabytes"), ("ms, one core", "MB"), strict=True):
        for part, name in dict.fromkeys((one.part, one.preset) for one in found):
            mine = [one for one in found if (one.part, one.preset) == (part, name)]
            label = PARTS[part] + ("" if part == "step" else f", {name}")
            axis.loglog([one.agents for one in mine], [getattr(one, field) for one in mine], "o-", label=label)
        axis.set(xlabel="agents (one subtask more than agents)", ylabel=unit)
        axis.set_xticks(sizes := sorted({one.agents for one in found}), [str(size) for size in sizes])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False, fontsize=8)
    picture.savefig(folder / "cost.png", dpi=130)
    pyplot.close(picture)


@dataclass(frozen=True)
class TeamSizes:
    """Measure time and memory of every part of a step of play, for teams of several sizes."""

    agents: tuple[int, ...] = (5, 10, 20, 50, LARGEST)
    """Team sizes."""
    presets: tuple[str, ...] = ("long", "faithful")
    """Presets whose networks are measured: `long` is `fast` with more candidates; `faithful` has those of the paper."""
    seconds: float = 1.0
    """Duration of each timing."""
    out: Path = Path("results/team-sizes")
    """The folder of the files that are written."""

    def run(self) -> None:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core; JAX looks at this at the first computation
        found: list[Measured] = []
        for name in self.presets:
            for agents in self.agents:
                for part, function, arguments in programs(name, agents):
                    if part != "step" or name == self.presets[0]:
                        timed = measure(function, arguments, self.seconds)
                        found.append(Measured(name, part, agents, agents + 1, *timed))
            self._write(found)
        Console().print(table(found), soft_wrap=True)

    def _write(self, found: list[Measured]) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        write_csv(self.out / "cost.csv", [one._asdict() for one in found])
        with atomic_write(self.out / "cost.md") as unfinished:
            unfinished.write_text(table(found))
        draw(found, self.out)


if __name__ == "__main__":
    tyro.cli(TeamSizes).run()
