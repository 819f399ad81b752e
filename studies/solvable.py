"""A lower bound of the fraction of cities that can be saved, from many attempts.

    .venv/bin/python studies/solvable.py --agents 2

A trained policy attempts every city many times, with increasing noise in actions and allocations. A city that no
attempt has saved may still be solvable, but not by a policy near to this one.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jaxtyping import Array, Bool, Int, Key, PRNGKeyArray
from rich.console import Console

import alma
from alma.allocators.proposal import allowed_subtasks
from alma.allocators.rules import RuleAllocator
from alma.play.episodes import begin, episode_keys, play_step
from alma.play.scripts import ScriptedActors
from alma.play.situation import Situation
from alma.play.team import Team, TeamParams
from alma.task.choice import choose_uniformly
from alma.task.task import Task

NOISE = ((0.0, 0.0), (0.03, 0.05), (0.05, 0.1), (0.1, 0.1), (0.05, 0.25))
"""Probabilities of random actions and of random subtasks."""
CITIES_AT_ONCE = 32


def noisy(policy: alma.Policy) -> Team:
    """The policy's team with noise. The parameters of each level become (its own parameters, probability of noise)."""
    actors, allocator = policy.team.actors, policy.team.allocator

    def act(params: Any, key: PRNGKeyArray, situation: Situation) -> Int[Array, "A"]:
        return mix(key, params[1], actors.greedy(params[0], key, situation), situation.view.available)

    def allocate(params: Any, key: PRNGKeyArray, situation: Situation) -> Int[Array, "A"]:
        chosen = allocator.greedy(params[0], key, situation)
        return mix(key, params[1], chosen, allowed_subtasks(situation.view, len(chosen)))

    def mix(key: PRNGKeyArray, share: Any, chosen: Any, allowed: Bool[Array, "A n"]) -> Int[Array, "A"]:
        whether, which = jax.random.split(jax.random.fold_in(key, 1))
        return jnp.where(jax.random.uniform(whether, chosen.shape) < share, choose_uniformly(which, allowed), chosen)

    return Team(ScriptedActors(act), RuleAllocator(allocate), policy.period)


@partial(jax.jit, static_argnums=(0, 1, 5))
def attempts(
    task: Task, team: Team, params: TeamParams, cities: Key[Array, "n"], key: PRNGKeyArray, count: int
) -> Bool[Array, "n {count}"]:
    """Success of each of `count` attempts at each city."""
    episodes = begin(task, team, params, jnp.repeat(cities, count))
    episodes = replace(episodes, key=jax.random.split(key, len(cities) * count))  # the same cities, other noise
    ended = jax.lax.while_loop(
        lambda now: ~jnp.all(now.done), lambda now: play_step(task, team, params, now)[0], episodes
    )
    return ended.success.reshape(len(cities), count)


@dataclass(frozen=True)
class Solvable:
    """Attempt every city many times, with increasing noise."""

    run_or_weights: str = "pretrained:save-the-city"
    """The trained policy; methods with a coach are not supported."""
    agents: int = 2
    """Team size."""
    cities: int = 192
    """Number of cities; the first ones of `alma evaluate --seed 0 --set agents=N`."""
    attempts: int = 128
    """Attempts per city and level of noise."""

    def run(self) -> None:
        policy = alma.load(self.run_or_weights)
        task = alma.make("save-the-city", agents=self.agents)
        team, console = noisy(policy), Console()
        keys = episode_keys(0, self.cities)
        ever = np.zeros(self.cities, bool)
        for number, (actions, subtasks) in enumerate(NOISE):
            shares = {"actors": jnp.float32(actions), "allocator": jnp.float32(subtasks)}
            params = {part: (policy.params[part], share) for part, share in shares.items()}
            found = [
                np.asarray(
                    attempts(
                        task,
                        team,
                        params,
                        keys[first : first + CITIES_AT_ONCE],
                        jax.random.key(number * self.cities + first),
                        self.attempts,
                    )
                )
                for first in range(0, self.cities, CITIES_AT_ONCE)
            ]
            solved = np.concatenate(found)
            ever |= solved.any(axis=1)
            console.print(
                f"{actions:.2f} random actions, {subtasks:.2f} random subtasks: {solved.mean():.3f} of attempts, "
                f"{ever.mean():.3f} of cities saved at least once so far"
            )


if __name__ == "__main__":
    tyro.cli(Solvable).run()
