"""Shortcuts to set up states of SaveTheCity, step and inspect them."""

from functools import partial

import jax
import jax.numpy as jnp

from alma.task.outcome import Outcome
from alma.tasks.save_the_city import dynamics
from alma.tasks.save_the_city.dynamics import State
from alma.tasks.save_the_city.rules import Action, AgentType, BuildingType, Rules
from alma.tasks.save_the_city.scenarios import Agent, Building, place

RULES = Rules()
FIREFIGHTER, BUILDER, GENERALIST = AgentType
FAST, SLOW = BuildingType
SCALE = 20 / 56

_step = jax.jit(partial(dynamics.step, RULES))
_available = jax.jit(partial(dynamics.available_actions, RULES))


def city(agents: list[tuple[AgentType, tuple[int, int]]], *buildings: Building, time: int = 0) -> State:
    return place(RULES, [Agent(*agent) for agent in agents], buildings, time)


def act(state: State, *actions: Action, seed: int = 0) -> tuple[State, Outcome]:
    padded = list(actions) + [Action.STAY] * (RULES.max_agents - len(actions))
    return _step(jax.random.key(seed), state, jnp.asarray(padded))


def can(state: State, agent: int = 0) -> set[Action]:
    return {Action(i) for i in jnp.flatnonzero(_available(state)[agent]).tolist()}


def position(state: State, agent: int = 0) -> tuple[int, int]:
    x, y = state.agent_position[agent].tolist()
    return x, y
