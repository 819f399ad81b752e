"""The state of a city and how one step changes it."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int8, Int16, PRNGKeyArray

from alma.task.outcome import Outcome
from alma.task.view import Actions
from alma.tasks.save_the_city.rules import ABSENT, Action, AgentType, Rules

DIRECTIONS = np.array([(0, 1), (1, 0), (0, -1), (-1, 0)])
"""North, east, south, west, as (x, y): north is up."""

MOVES = np.concatenate([[(0, 0)], DIRECTIONS, 2 * DIRECTIONS, np.zeros((3, 2), int)]).astype(np.int8)
"""The displacement of each action, actions x 2."""

STRIDES = MOVES[Action.NORTH : Action.FIGHT]
"""The displacements of the eight moves."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """The state of a city: A agent slots, B building slots. Unused slots have type `ABSENT` and are otherwise zero."""

    agent_type: Int8[Array, "A"]
    agent_position: Int8[Array, "A 2"]
    """Cell (x, y), x to the east and y to the north."""
    building_type: Int8[Array, "B"]
    building_position: Int8[Array, "B 2"]
    health: Float32[Array, "B"]
    """From 0 (burned down) to 1 (complete); both are final."""
    fire: Float32[Array, "B"]
    """Strength of the fire, from 0 (none) to 1."""
    fire_interval: Int16[Array, "B"]
    """Steps between two fires."""
    fire_timer: Int16[Array, "B"]
    """Steps until the next fire breaks out."""
    time: Int16[Array, ""]
    """Steps so far."""

    @property
    def agent_present(self) -> Bool[Array, "A"]:
        return self.agent_type != ABSENT

    @property
    def building_present(self) -> Bool[Array, "B"]:
        return self.building_type != ABSENT

    @property
    def burning(self) -> Bool[Array, "B"]:
        return self.fire > 0

    @property
    def complete(self) -> Bool[Array, "B"]:
        return self.building_present & (self.health >= 1)

    @property
    def burned_down(self) -> Bool[Array, "B"]:
        return self.building_present & (self.health <= 0)

    @property
    def unfinished(self) -> Bool[Array, "B"]:
        """Buildings that are neither complete nor burned down: the active subtasks."""
        return self.building_present & (self.health > 0) & (self.health < 1)

    @property
    def position(self) -> Int8[Array, "E 2"]:
        """The cells of all entities: agents, then buildings."""
        return jnp.concatenate([self.agent_position, self.building_position])

    @property
    def present(self) -> Bool[Array, "E"]:
        return jnp.concatenate([self.agent_present, self.building_present])


def offsets(state: State) -> Int8[Array, "A E 2"]:
    """The offset from each agent to each entity, in cells."""
    return state.position[None, :, :] - state.agent_position[:, None, :]


def next_to_building(state: State) -> Bool[Array, "A B"]:
    """Which building each agent is orthogonally adjacent to; at most one."""
    offset = state.building_position[None, :, :] - state.agent_position[:, None, :]
    adjacent = jnp.sum(jnp.abs(offset), axis=-1) == 1
    return adjacent & state.agent_present[:, None] & state.building_present[None, :]


def available_actions(rules: Rules, state: State) -> Bool[Array, "A 12"]:
    """The available actions of each agent; none for absent agents."""
    is_generalist = (state.agent_type == AgentType.GENERALIST)[:, None]
    beside = next_to_building(state)
    beside_fire = jnp.any(beside & state.burning, axis=1, keepdims=True)
    beside_work = jnp.any(beside & state.unfinished & ~state.burning, axis=1, keepdims=True)
    moves = _free_moves(rules, state)
    actions = jnp.concatenate(
        [
            jnp.ones_like(is_generalist),
            moves[:, :4],
            moves[:, 4:] & is_generalist,
            beside_fire,
            beside_work,
            beside_fire & is_generalist,
        ],
        axis=1,
    )
    return actions & state.agent_present[:, None]


def _free_moves(rules: Rules, state: State) -> Bool[Array, "A 8"]:
    """Moves whose destination is on the map and empty; the cells in between do not matter."""
    destination = state.agent_position[:, None, :] + STRIDES
    on_map = jnp.all((destination >= 0) & (destination < rules.grid_size), axis=-1)
    # Each offset as a single number, which halves the cost of comparisons.
    hits = _code(offsets(state))[:, None, :] == _code(STRIDES)[None, :, None]
    return on_map & ~jnp.any(hits & state.present, axis=-1)


def _code(offset: Int8[Array | np.ndarray, "*n 2"]) -> Int16[Array | np.ndarray, "*n"]:
    return offset[..., 0].astype(np.int16) * np.int16(256) + offset[..., 1]


def step(rules: Rules, key: PRNGKeyArray, state: State, actions: Actions) -> tuple[State, Outcome]:
    """One step of the city. An unavailable action has the effect of staying."""
    available = available_actions(rules, state)
    chosen = actions[:, None] == np.arange(len(Action))
    actions = jnp.where(jnp.any(chosen & available, axis=1), actions, Action.STAY)

    fire, health = _burn_and_build(rules, state, actions)
    extinguished = state.burning & (fire <= 0)
    after = replace(
        state,
        agent_position=_move(key, state, actions),
        fire=fire,
        health=health,
        time=state.time + jnp.int16(1),
    )
    after = _light_fires(after)
    return after, _outcome(rules, state, after, extinguished)


def _move(key: PRNGKeyArray, state: State, actions: Actions) -> Int8[Array, "A 2"]:
    """The cells of agents after their moves. If several agents move to the same cell, one gets it, the others go back.

    Going back never causes a new conflict, since no agent can move to a cell that was occupied before.
    """
    destination = state.agent_position + jnp.asarray(MOVES)[actions]
    heads = jax.random.bits(key, state.agent_type.shape, np.uint8) % 2 == 1
    goes_back = loses_cell(destination, state.agent_present, heads)
    return jnp.where(goes_back[:, None], state.agent_position, destination)


def loses_cell(destination: Int8[Array, "A 2"], present: Bool[Array, "A"], heads: Bool[Array, "A"]) -> Bool[Array, "A"]:
    """Which agents lose their destination to another one and have to go back, given a fair coin for each.

    Conflicts are resolved two agents at a time, in the order of agents: whoever has the cell so far competes with the
    next agent that moves there, which wins if its coin shows heads. Of three agents, the last one therefore gets the
    cell half of the time, the first two a quarter each.
    """
    order = np.arange(len(destination))
    later, earlier = order[None, :] > order[:, None], order[None, :] < order[:, None]
    same_cell = jnp.all(destination[:, None, :] == destination[None, :, :], axis=-1) & present[None, :]
    return jnp.any(same_cell & ((later & heads[None, :]) | (earlier & ~heads[:, None])), axis=1)


def _burn_and_build(rules: Rules, state: State, actions: Actions) -> tuple[Float[Array, "B"], Float[Array, "B"]]:
    """Fire and health of the buildings after the work of all agents and the damage of fires."""
    beside = next_to_building(state)
    fighting = beside & (actions == Action.FIGHT)[:, None]
    building = beside & (actions == Action.BUILD)[:, None]
    frozen = jnp.any(beside & (actions == Action.FREEZE)[:, None], axis=0)

    effect = rules.fight_power * _joint_speed(state, fighting, rules.fight_speed, rules.help_speed, AgentType.BUILDER)
    fire = jnp.where(effect > 0, state.fire - effect, state.fire * rules.fire_growth)
    fire = jnp.clip(fire, 0, 1)

    work = rules.build_power * _joint_speed(state, building, rules.build_speed, rules.help_speed, AgentType.FIREFIGHTER)
    burn_rate = jnp.asarray(rules.burn_rate, jnp.float32)[state.building_type]
    damage = jnp.where(frozen, 0, rules.fire_damage * burn_rate * fire)
    health = jnp.clip(state.health + work - damage, 0, 1)
    return jnp.where(health > 0, fire, 0), health


def _joint_speed(
    state: State,
    working: Bool[Array, "A B"],
    speed: tuple[float, float, float],
    help_speed: float,
    helped: AgentType,
) -> Float[Array, "B"]:
    """Sums of agents' speeds per building, plus (once) the help of a generalist that works with the `helped` type."""
    own = jnp.asarray(speed, jnp.float32)[state.agent_type]
    helper = jnp.any(working & (state.agent_type == AgentType.GENERALIST)[:, None], axis=0)
    receiver = jnp.any(working & (state.agent_type == helped)[:, None], axis=0)
    return jnp.sum(jnp.where(working, own[:, None], 0), axis=0) + help_speed * (helper & receiver)


def _light_fires(state: State) -> State:
    """Decrement the fire timers of unfinished buildings, which catch fire at zero."""
    timer = state.fire_timer - state.unfinished.astype(jnp.int16)
    ignites = state.unfinished & (timer <= 0)
    return replace(
        state,
        fire=jnp.where(ignites, 1, state.fire),
        fire_timer=jnp.where(ignites, state.fire_interval, timer),
    )


def _outcome(rules: Rules, before: State, after: State, extinguished: Bool[Array, "B"]) -> Outcome:
    completed = after.complete & ~before.complete
    burned = after.burned_down & ~before.burned_down
    extinguished = extinguished & ~burned
    terminated = ~jnp.any(after.unfinished)
    solved = terminated & ~jnp.any(after.burned_down)

    shared = (
        rules.health_reward * (after.health - before.health)
        + rules.extinguish_reward * extinguished
        + rules.burn_down_reward * burned
    )
    subtask_rewards = shared + rules.complete_subtask_reward * completed
    reward = jnp.sum(shared + rules.complete_reward * completed) + rules.solve_reward * solved
    return Outcome(
        reward=reward * rules.reward_scale,
        subtask_rewards=subtask_rewards * rules.reward_scale,
        terminated=terminated,
        truncated=~terminated & (after.time >= rules.max_steps),
        finished=after.complete | after.burned_down,
        success=solved,
        metrics={
            "completed": jnp.sum(completed) / jnp.sum(after.building_present),
            "burned_down": _count(burned),
            "extinguished": _count(extinguished),
        },
    )


def _count(mask: Bool[Array, "B"]) -> Float[Array, ""]:
    return jnp.sum(mask).astype(jnp.float32)
