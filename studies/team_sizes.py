"""Where a policy fails in teams larger than those it was trained with: parts are swapped, and teams told apart.

    .venv/bin/python studies/team_sizes.py --agents 8 16 24

A trained policy plays SaveTheCity with teams of several sizes: as it is, with scripted actors, with the heuristic, and
with the allocation that its critic values most. Large teams may consist of one type nearly alone, small ones cannot:
results are told apart by the share of the type with the fewest agents. Everything is kept, episode by episode, in a CSV
file; combinations that are there already are not played again.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import tyro
from jaxtyping import Int
from rich.console import Console

import alma
from alma.files import atomic_write
from alma.play.episodes import episode_keys, play_episodes
from alma.reproduce.writing import write_csv
from alma.tasks.save_the_city.rules import AgentType, Rules

TASK = "save-the-city"
GROUPS = ((0.0, 0.1), (0.1, 0.2), (0.2, 1.0))
"""Shares in the team of the type with the fewest agents, from and below. In teams of 5 it is always 20 %, in those of 3
and 4 it is more; teams of 2 lack a type."""


class Pairing(NamedTuple):
    """Who acts and who allocates; None: the policy's own."""

    actors: str | None
    allocator: str | None

    @property
    def label(self) -> str:
        return f"{self.actors or 'learned'} actors, {self.allocator or 'learned'} allocator"


PAIRINGS = (
    Pairing(None, None),
    Pairing("scripted", None),
    Pairing(None, "heuristic"),
    Pairing("scripted", "heuristic"),
    Pairing(None, "search"),
    Pairing("scripted", "search"),
)


class Episode(NamedTuple):
    """The result of one episode, a row of the CSV file."""

    agents: int
    pairing: str
    number: int
    firefighters: int
    builders: int
    generalists: int
    solved: int
    length: int
    burned_down: float
    switches: float
    """How often an agent was moved to another building while its own was not finished, per agent and step."""

    @property
    def fewest(self) -> float:
        """The share in the team of the type with the fewest agents."""
        return min(self.firefighters, self.builders, self.generalists) / self.agents


def play(policy: alma.Policy, agents: int, pairing: Pairing, episodes: int, seed: int, max_steps: int) -> list[Episode]:
    """Play the first episodes of a seed: the same cities for every pairing."""
    task = policy.task_with({"agents": agents, "max_steps": max_steps})
    team, params = policy.team_with(pairing.actors, pairing.allocator, task)
    results = play_episodes(task, team, params, episodes, seed)
    kinds = count_types(task, seed, episodes)
    return [
        Episode(
            agents,
            pairing.label,
            number,
            *kinds[number].tolist(),
            int(results.success[number]),
            int(results.length[number]),
            float(results.metrics["burned_down"][number]),
            round(float(results.switches[number] / results.length[number] / results.team_size[number]), 4),
        )
        for number in range(episodes)
    ]


def count_types(task: Any, seed: int, episodes: int) -> Int[np.ndarray, "episodes 3"]:
    """The number of agents of each type in the first episodes of a seed."""
    # An episode's first key is split as in `alma.play.episodes.begin`.
    reset_keys = jax.vmap(jax.random.split)(episode_keys(seed, episodes))[:, 0]
    types = np.asarray(jax.jit(jax.vmap(task.reset))(reset_keys).agent_type)
    return np.stack([(types == kind).sum(axis=1) for kind in AgentType], axis=1)


def read(file: Path) -> list[Episode]:
    """The episodes of an earlier call."""
    if not file.exists():
        return []
    kinds = Episode.__annotations__
    with file.open(newline="") as lines:
        return [Episode(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(lines)]


def table(found: Iterable[Episode]) -> str:
    """Success of every pairing at every size, of all teams and of those that have few agents of a type."""
    groups = [f"fewest below {high:.0%}" if high < 1 else f"{low:.0%} and more" for low, high in GROUPS]
    lines = [
        f"| agents | actors, allocator | episodes | solved | standard error | {' | '.join(groups)} | burned down "
        "| switches per agent and step |",
        "|" + "---|" * (7 + len(GROUPS)),
    ]
    rows: dict[tuple[int, str], list[Episode]] = {}
    for episode in found:
        rows.setdefault((episode.agents, episode.pairing), []).append(episode)
    for (agents, pairing), episodes in sorted(rows.items(), key=lambda row: row[0][0]):
        parts = [[one.solved for one in episodes if low <= one.fewest < high] for low, high in GROUPS]
        rate = mean([one.solved for one in episodes])
        columns = [
            str(agents),
            pairing,
            str(len(episodes)),
            f"{rate:.3f}",
            f"{(rate * (1 - rate) / len(episodes)) ** 0.5:.3f}",
            *(f"{mean(part):.2f} of {len(part)}" if part else "" for part in parts),
            f"{mean([one.burned_down for one in episodes]):.2f}",
            f"{mean([one.switches for one in episodes]):.3f}",
        ]
        lines.append(f"| {' | '.join(columns)} |")
    return "\n".join(lines)


def mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


@dataclass(frozen=True)
class TeamSizes:
    """Play teams of several sizes with parts swapped, and print success by the composition of teams."""

    run_or_weights: str = "pretrained:save-the-city"
    """The trained policy."""
    agents: tuple[int, ...] = (2, 3, 4, 5, 8, 16, 24)
    """Team sizes."""
    pairings: tuple[int, ...] = tuple(range(len(PAIRINGS)))
    """What is played, by number: 0 as it is, 1 scripted actors, 2 heuristic, 3 both, 4 search, 5 scripts and search."""
    episodes: int = 256
    """Episodes for each size and pairing."""
    seed: int = 0
    """Random seed of the episodes."""
    max_steps: int = Rules.max_steps
    """Time limit of episodes; write results with another one into another folder."""
    out: Path = Path("results/team-sizes")
    """The folder of the files that are written."""

    def run(self) -> None:
        policy, console = alma.load(self.run_or_weights), Console()
        file = self.out / "episodes.csv"
        self.out.mkdir(parents=True, exist_ok=True)
        found = read(file)
        for agents in self.agents:
            for pairing in (PAIRINGS[number] for number in self.pairings):
                if (agents, pairing.label) in {(one.agents, one.pairing) for one in found}:
                    continue
                found += play(policy, agents, pairing, self.episodes, self.seed, self.max_steps)
                write_csv(file, [one._asdict() for one in found])
                console.print(f"{agents} agents, {pairing.label}: done")
        with atomic_write(self.out / "success.md") as unfinished:
            unfinished.write_text(table(found) + "\n")
        console.print(table(found), soft_wrap=True)


if __name__ == "__main__":
    tyro.cli(TeamSizes).run()
