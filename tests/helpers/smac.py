"""A stand-in for StarCraft II: speaks the interface of SMAC's `StarCraft2Env`, and plays the task `starcraft`."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

from alma.tasks.starcraft import Rules, StarCraft

TASK = StarCraft(Rules(fighters=(3, 4)))
CORNER = 4.0
"""The game's map is larger than the task's: this is where (0, 0) of the task lies on it."""
THEIRS = {"zealot": 73, "stalker": 74}
RESET, STEP, VIEW = jax.jit(TASK.reset), jax.jit(TASK.step), jax.jit(TASK.view)


class StandIn:
    """Battles of Stalkers and Zealots. `order_army` is what the game itself would need for armies that turn."""

    map_x = map_y = TASK.rules.map_size + 2 * CORNER
    stalker_id, zealot_id = 2005, 2006
    n_agents, n_enemies = TASK.rules.max_agents, TASK.rules.max_enemies

    def __init__(self, map_name):
        self.map_name, self.battles, self.closed, self.orders = map_name, 0, False, []
        self._episode_count = 0

    def reset(self):
        self.state = self._begin(RESET(jax.random.key(self.battles)))
        self.battles += 1
        self.key = jax.random.key(7)
        self.agents, self.enemies = {}, {}
        self._show()

    def step(self, actions):
        available = self.get_avail_actions()
        assert all(available[agent][action] for agent, action in enumerate(actions))
        ours = jnp.asarray([max(action - 1, 0) for action in actions])
        self.key, key = jax.random.split(self.key)
        self.state, outcome = STEP(key, self._waiting(), ours)
        self._show()
        # The game knows of no base.
        units = np.asarray(self.state.units.alive)
        over = not (units[: self.n_agents].any() and units[self.n_agents :].any())
        self._episode_count += over
        return float(outcome.reward), over, {}

    def get_avail_actions(self):
        view = jax.device_get(VIEW(self.state))
        alive = view.present[: self.n_agents, None]
        return np.concatenate([~alive, view.available], axis=1).astype(int).tolist()

    def order_army(self, enemies, to, attack):
        army = int(self.state.army[enemies[0]])
        assert all(int(self.state.army[enemy]) == army for enemy in enemies)
        self.orders.append((army, to, attack))
        state = self.state
        self.state = replace(
            state,
            attacking=state.attacking.at[army].set(attack),
            since_switch=state.since_switch.at[army].set(0),
            settled=state.settled & (state.army != army),
        )

    def close(self):
        self.closed = True

    def _begin(self, state):
        """Armies stay where they start until they are told to attack."""
        return replace(state, attacking=jnp.zeros_like(state.attacking), settled=state.army >= 0)

    def _waiting(self):
        """Armies do not turn unless they are told to."""
        return replace(self.state, timer=jnp.full_like(self.state.timer, 100))

    def _show(self):
        """Put the units into dictionaries, as SMAC does; those that have died stay there without health."""
        state, agents = jax.device_get(self.state), self.n_agents
        for slot in np.flatnonzero(state.units.kind >= 0).tolist():
            mine, units = slot < agents, state.units
            name = TASK.rules.types[units.kind[slot]]
            unit = SimpleNamespace(
                unit_type=getattr(self, f"{name}_id") if mine else THEIRS[name],
                pos=SimpleNamespace(x=float(units.x[slot]) + CORNER, y=float(units.y[slot]) + CORNER),
                health=float(units.health[slot]),
                shield=float(units.shield[slot]),
                energy=float(units.energy[slot]),
                weapon_cooldown=float(units.cooldown[slot]),
            )
            (self.agents if mine else self.enemies)[slot if mine else slot - agents] = unit


class SilentStandIn(StandIn):
    """A game whose armies cannot be ordered from outside: they turn by themselves."""

    order_army = property()  # there is none

    def _begin(self, state):
        return state

    def _waiting(self):
        return self.state
