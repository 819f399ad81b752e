"""How many cities a team of two can save at the most, whatever it does.

    .venv/bin/python benchmarks/planner.py

A search through everything two agents could do, in a game that is a little easier than the real one: nothing stands in
anybody's way, agents are on all sides of a building at once, generalists may turn within a stride, and when fires will
break out is known. A city that cannot be saved in this game cannot be saved in the real one; one that can may still be
lost, for want of foresight or of room. Cities in which a generalist can hold fires for long may be too many to follow:
of those nothing is known.
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
"""Must cost nobody a building."""

FIREFIGHTER, BUILDER, GENERALIST = AgentType

Verdict = Literal["can be saved", "cannot be saved", "not known"]


class Where(NamedTuple):
    """Which building an agent is at, or going to."""

    building: int
    steps: int
    """Until it is there."""


Places = tuple[Where, ...]
Situations = Float[np.ndarray, "n 2 B"]
"""Fires of all buildings, and what their health lacks; 0 and 0 for those that are complete. Less of everything is
better."""


@dataclass(frozen=True)
class City:
    """A city in which agents are at buildings, or on their way from one to another."""

    rules: Rules
    team: tuple[AgentType, ...]
    start: Situations
    damage: tuple[float, ...]
    """By a fire of strength 1, in a step."""
    intervals: tuple[int, ...]
    """Steps between fires."""
    first_ways: tuple[tuple[int, ...], ...]
    """Steps of each agent to each building."""
    ways: tuple[tuple[tuple[int, ...], ...], ...]
    """Steps of each agent from one building to another."""

    @staticmethod
    def of(rules: Rules, state: State) -> "City":
        """The city as it is in a first state."""
        team = tuple(AgentType(kind) for kind in state.agent_type.tolist())
        agents, places = np.asarray(state.agent_position, int), np.asarray(state.building_position, int)

        def ways(starts: np.ndarray, speed: int, beside: int) -> list[list[int]]:
            """From next to a start to next to a building: `beside` cells less than from one to the other."""
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

    def judge(self, width: int) -> Verdict:
        """Whether some course of action saves every building. A narrow search finds one sooner, if it finds one."""
        verdicts = (self.search(narrow) for narrow in (width // 64, width // 8, width))
        return next((verdict for verdict in verdicts if verdict != "not known"), "not known")

    def search(self, width: int) -> Verdict:
        """Follow all courses of action step by step.

        Those that are no better than another one in any respect are dropped, and so are those that will lose a building
        before anybody can be there, and ways to complete buildings: no way of the real game is shorter than the direct
        one of this game. If more than `width` are left, the ones with the most left to do are dropped too, and then
        nothing is known if the others fail.
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
        """What a step can make of buildings, if everybody who is at one does what they can; lost cities are left out.

        There is one choice: whether a generalist beside a builder helps to fight a fire, or freezes it.
        """
        choices = (True, False) if self.team == (BUILDER, GENERALIST) and places[0] == places[1] else (True,)
        then = np.concatenate([self.step(time, places, now, freezes) for freezes in choices])
        return then[np.all(then[:, 1] < 1 + ROUNDING, axis=1)]

    def step(self, time: int, places: Places, now: Situations, freezes: bool) -> Situations:
        """All buildings, one step later."""
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
        """Where somebody can be at every fire before it has destroyed its building."""
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
        """Where agents can be a step later: further on their way, still there, or about to go somewhere else."""
        choices = []
        for where, ways in zip(places, self.ways, strict=True):
            if where.steps:
                choices.append([Where(where.building, where.steps - 1)])
            else:
                choices.append([Where(building, steps) for building, steps in enumerate(ways[where.building])])
        return itertools.product(*choices)


def worth_going(places: Places, onwards: Places, now: Situations) -> Bool[np.ndarray, "n"]:
    """Where nobody sets off for a building that is complete."""
    sets_off = [there.building for here, there in zip(places, onwards, strict=True) if here.building != there.building]
    return np.all(now[:, 1, sets_off] > 0, axis=1)


def best_of(reached: dict[Places, Situations], width: int) -> tuple[dict[Places, Situations], bool]:
    """What is worth following, and whether anything else was dropped than what is no better than another one.

    Of agents on their way to the same building, the nearer one is better off.
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
    """Those that no other one is as good as in every respect."""
    rows, kept = rows[np.argsort(rows.sum(axis=1), kind="stable")], []
    while len(rows):
        kept.append(rows[0])
        rows = rows[1:][np.any(rows[1:] < rows[0], axis=1)]
    return np.stack(kept)


@dataclass(frozen=True)
class Planner:
    """Look for cities that nobody can save, and compare with those that a trained policy saves."""

    cities: int = 192
    """How many; the first of `alma evaluate --seed 0 --set agents=2`."""
    width: int = 2_500
    """Courses of action followed at the same time."""
    run_or_weights: str = "pretrained:save-the-city"
    """Whose policy."""
    search_all: bool = False
    """Search also what the policy saves, to check the search: none of it may be found impossible."""

    def run(self) -> None:
        task, console = SaveTheCity(Rules(agents=2)), Console()
        begin = jax.jit(jax.vmap(lambda key: task.reset(jax.random.split(key)[0])))  # as evaluation does
        states = jax.device_get(begin(episode_keys(0, self.cities)))
        policy = alma.load(self.run_or_weights)
        saved = np.asarray(play_episodes(task, policy.team, policy.params, self.cities).success)
        verdicts = defaultdict(list)
        for number in track(range(self.cities), "searching", console=Console(stderr=True)):
            city = City.of(task.rules, jax.tree.map(lambda leaf, number=number: leaf[number], states))
            verdict = city.judge(self.width) if self.search_all or not saved[number] else "saved by the policy"
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
