"""An upper bound of the fraction of cities that a team of two can save.

    .venv/bin/python studies/planner.py

A search over everything two agents could do, in a relaxation of the real game: agents do not block each other, are on
all sides of a building at once, generalists may turn in the middle of a stride, and fires are known in advance. A city
that cannot be saved in the relaxation cannot be saved in the real game; the converse does not hold. The search may be
cut off, above all where a generalist can contain fires for long; then the result is not known.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax
import numpy as np
import tyro
from jaxtyping import Bool, Float
from rich.console import Console
from rich.progress import track

import alma
from alma.play.episodes import episode_keys, play_episodes
from alma.tasks.save_the_city import Rules, SaveTheCity, State
from alma.tasks.save_the_city.rules import AgentType

ROUNDING = 1e-5
"""Tolerance for rounding errors, so that they lose no building."""

FIREFIGHTER, BUILDER, GENERALIST = AgentType

Verdict = Literal["can be saved", "cannot be saved", "not known"]


class Where(NamedTuple):
    """The building that an agent is at or on its way to."""

    building: int
    steps: int
    """Steps until it arrives."""


Places = tuple[Where, ...]
Situations = Float[np.ndarray, "n 2 B"]
"""Fire and missing health of all buildings; both are 0 for complete ones. Lower is better in every component."""


@dataclass(frozen=True)
class City:
    """A city of the relaxed game, in which agents are at buildings or on their way from one to another."""

    rules: Rules
    team: tuple[AgentType, ...]
    start: Situations
    damage: tuple[float, ...]
    """Damage per step of a fire of strength 1, for each building."""
    intervals: tuple[int, ...]
    """Steps between fires, for each building."""
    first_ways: tuple[tuple[int, ...], ...]
    """Steps of each agent from its starting cell to each building."""
    ways: tuple[tuple[tuple[int, ...], ...], ...]
    """Steps of each agent from each building to each other one."""

    @staticmethod
    def of(rules: Rules, state: State) -> "City":
        """The city of an initial state."""
        team = tuple(AgentType(kind) for kind in state.agent_type.tolist())
        agents, places = np.asarray(state.agent_position, int), np.asarray(state.building_position, int)

        def ways(starts: np.ndarray, speed: int, beside: int) -> list[list[int]]:
            """Steps from each start to next to each building: the distance is `beside` cells less than between both."""
            cells = np.abs(starts[:, None] - places).sum(-1) - beside
            return (-(-np.maximum(cells, 0) // speed)).tolist()

        speeds = [2 if kind == GENERALIST else 1 for kind in team]
        return City(
            rules,
            team,
            np.array([[state.fire, 1 - np.asarray(state.health)]], np.float64),
            tuple(rules.fire_damage * rules.burn_rate[kind] for kind in state.building_type.tolist()),
            tuple(state.fire_interval.tolist()),
            tuple(tuple(ways(agents, speed, 1)[agent]) for agent, speed in enumerate(speeds)),
            tuple(tuple(map(tuple, ways(places, speed, 2))) for speed in speeds),
        )

    def verdict(self, width: int) -> Verdict:
        """Whether all buildings can be saved. Narrow searches come first: if they find a plan, they find it sooner."""
        verdicts = (self.search(narrow) for narrow in (width // 64, width // 8, width))
        return next((verdict for verdict in verdicts if verdict != "not known"), "not known")

    def search(self, width: int) -> Verdict:
        """Beam search over all courses of action, step by step.

        Dropped without loss: situations that are dominated by another one, those in which a building will be lost
        before anybody can be there, and detours by way of complete buildings (the direct way is never longer). If more
        than `width` are left, those with the most left to do are dropped too; if the rest fails, nothing is known.
        """
        choices = [[Where(building, steps) for building, steps in enumerate(ways)] for ways in self.first_ways]
        reached = dict.fromkeys(itertools.product(*choices), self.start)
        complete = True
        for time in range(self.rules.max_steps):
            following = defaultdict(list)
            for places, now in reached.items():
                then = self.work(time, places, now)
                if np.any(np.all(then == 0, axis=(1, 2))):
                    return "can be saved"
                for onwards in self.ways_on(places):
                    sensible = then[worth_going(places, onwards, then) & self.in_time(onwards, then)]
                    if len(sensible):
                        following[onwards].append(sensible)
            reached, all_kept = best_of({places: np.concatenate(rows) for places, rows in following.items()}, width)
            complete &= all_kept
            if not reached:
                break
        return "cannot be saved" if complete else "not known"

    def work(self, time: int, places: Places, now: Situations) -> Situations:
        """The situations after one step in which all agents at buildings work; those with a lost building are dropped.

        There is one choice: a generalist beside a builder can help to fight a fire, or freeze it.
        """
        choices = (True, False) if self.team == (BUILDER, GENERALIST) and places[0] == places[1] else (True,)
        then = np.concatenate([self.step(time, places, now, freezes) for freezes in choices])
        return then[np.all(then[:, 1] < 1 + ROUNDING, axis=1)]

    def step(self, time: int, places: Places, now: Situations, freezes: bool) -> Situations:
        """All buildings after one step."""
        rules, then = self.rules, np.zeros_like(now)
        for number, (damage, interval) in enumerate(zip(self.damage, self.intervals, strict=True)):
            here = [kind for kind, where in zip(self.team, places, strict=True) if where == (number, 0)]
            frozen = GENERALIST in here and freezes
            effect = sum(rules.fight_speed[kind] for kind in here)
            effect += rules.help_speed * (GENERALIST in here and BUILDER in here and not freezes)
            effect *= rules.fight_power
            speed = sum(rules.build_speed[kind] for kind in here)
            speed += rules.help_speed * (GENERALIST in here and FIREFIGHTER in here)

            fire, missing = now[:, 0, number], now[:, 1, number]
            left = np.clip(fire - effect if effect else fire * rules.fire_growth, 0, 1)
            left[left < ROUNDING] = 0
            burnt = missing + (0 if frozen else damage * left)
            missing = np.where(fire > 0, burnt, missing - rules.build_power * speed)
            missing[missing < ROUNDING] = 0
            breaks_out = (time + 1) % interval == 0
            then[:, 0, number] = np.where(missing > 0, 1 if breaks_out else left, 0)
            then[:, 1, number] = missing
        return then

    def in_time(self, places: Places, now: Situations) -> Bool[np.ndarray, "n"]:
        """Mask of the situations in which an agent can reach every fire before it has destroyed its building."""
        saved = np.ones(len(now), bool)
        for number, damage in enumerate(self.damage):
            arrives = min(
                where.steps + (ways[where.building][number] if where.building != number else 0)
                for where, ways in zip(places, self.ways, strict=True)
            )
            fire, missing = now[:, 0, number], now[:, 1, number]
            for _ in range(arrives):
                fire = np.minimum(fire * self.rules.fire_growth, 1)
                missing = missing + damage * fire
            saved &= missing < 1 + ROUNDING
        return saved

    def ways_on(self, places: Places) -> Iterator[Places]:
        """All places of agents a step later: on their way, still at the building, or setting off for another."""
        choices = []
        for where, ways in zip(places, self.ways, strict=True):
            if where.steps:
                choices.append([Where(where.building, where.steps - 1)])
            else:
                choices.append([Where(building, steps) for building, steps in enumerate(ways[where.building])])
        return itertools.product(*choices)


def worth_going(places: Places, onwards: Places, now: Situations) -> Bool[np.ndarray, "n"]:
    """Mask of the situations in which no agent sets off for a complete building."""
    sets_off = [there.building for here, there in zip(places, onwards, strict=True) if here.building != there.building]
    return np.all(now[:, 1, sets_off] > 0, axis=1)


def best_of(reached: dict[Places, Situations], width: int) -> tuple[dict[Places, Situations], bool]:
    """The situations to follow, and whether only dominated ones were dropped.

    Situations in which agents go to the same buildings are comparable: fewer steps left are better.
    """
    by_target = defaultdict(list)
    for places, now in reached.items():
        steps = np.broadcast_to([where.steps for where in places], (len(now), len(places)))
        rows = np.concatenate([steps, now.reshape(len(now), -1)], axis=1)
        by_target[tuple(where.building for where in places)].append(rows)
    groups = [(targets, undominated(np.concatenate(rows))) for targets, rows in by_target.items()]
    left = np.concatenate([rows @ LEFT_TO_DO for _, rows in groups]) if groups else np.zeros(0)
    limit = np.partition(left, width)[width] if len(left) > width else np.inf
    following = {}
    for targets, rows in groups:
        rows = rows[rows @ LEFT_TO_DO < limit]
        agents = len(targets)
        for steps in np.unique(rows[:, :agents], axis=0):
            now = rows[np.all(rows[:, :agents] == steps, axis=1), agents:]
            places = tuple(Where(target, int(step)) for target, step in zip(targets, steps, strict=True))
            following[places] = now.reshape(len(now), 2, -1)
    return following, limit == np.inf


LEFT_TO_DO = np.array([0.5] * 2 + [8.0] * 3 + [8.0] * 3)
"""Weights of the steps of 2 agents, and of fires and missing health of 3 buildings."""


def undominated(rows: Float[np.ndarray, "n c"]) -> Float[np.ndarray, "m c"]:
    """The rows that are not dominated: no other row is at most as large in every column."""
    rows, kept = rows[np.argsort(rows.sum(axis=1), kind="stable")], []
    while len(rows):
        kept.append(rows[0])
        rows = rows[1:][np.any(rows[1:] < rows[0], axis=1)]
    return np.stack(kept)


@dataclass(frozen=True)
class Planner:
    """Find the cities that nobody can save, and compare with those that a trained policy saves."""

    cities: int = 192
    """Number of cities; the first ones of `alma evaluate --seed 0 --set agents=2`."""
    width: int = 2_500
    """Maximum width of the beam search."""
    run_or_weights: str = "pretrained:save-the-city"
    """The trained policy."""
    search_all: bool = False
    """Also search the cities that the policy saves, to check the search: it must find that they can be saved."""

    def run(self) -> None:
        task, console = SaveTheCity(Rules(agents=2)), Console()
        begin = jax.jit(jax.vmap(lambda key: task.reset(jax.random.split(key)[0])))  # as evaluation does
        states = jax.device_get(begin(episode_keys(0, self.cities)))
        policy = alma.load(self.run_or_weights)
        saved = np.asarray(play_episodes(task, policy.team, policy.params, self.cities).success)
        verdicts = defaultdict(list)
        for number in track(range(self.cities), "searching", console=Console(stderr=True)):
            city = City.of(task.rules, jax.tree.map(lambda leaf, number=number: leaf[number], states))
            verdict = city.verdict(self.width) if self.search_all or not saved[number] else "saved by the policy"
            if saved[number] and verdict == "cannot be saved":
                raise SystemExit(f"city {number} was saved by the policy, and cannot be: the search is wrong")
            for team in (" and ".join(kind.name.lower() for kind in city.team), "all"):
                verdicts[team].append(verdict)
        for team, found in sorted(verdicts.items(), reverse=True):
            shares = {kind: found.count(kind) / len(found) for kind in sorted(set(found), reverse=True)}
            told = ", ".join(f"{share:.3f} {kind}" for kind, share in shares.items())
            console.print(f"{team}, {len(found)} cities: {told}", soft_wrap=True)


if __name__ == "__main__":
    tyro.cli(Planner).run()
