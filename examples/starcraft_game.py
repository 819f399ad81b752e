"""StarCraft II itself, through the interface of SMAC: several armies attack a base, and every army is a subtask.

What SMAC tells of the game's units is put into a state of the task `starcraft`, which then says what agents see, what
is paid and who has won. So agents that were trained there can play in the game, and the other way round. This has been
tested against a stand-in for the game alone, never against the game.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

import jax
import jax.numpy as jnp
import numpy as np

import alma
from alma.task.importing import import_by_name
from alma.task.view import Allocation
from alma.tasks.starcraft import Rules, StarCraft, State
from alma.tasks.starcraft.combat import NOTHING, Units
from alma.tasks.starcraft.dynamics import battle_status, outcome_of_step, switch_armies
from alma.tasks.starcraft.view import RELATIONS
from examples.rules import nearest, together

THEIR_TYPES = {48: "marine", 51: "marauder", 54: "medivac", 73: "zealot", 74: "stalker", 4: "colossus", 105: "zergling"}
"""The game's numbers of unit types. Agents have other numbers, since SMAC's maps define their own units for them."""
NO_OP, FIRST_ORDER, FIRST_TARGET = 0, 1, 6
"""SMAC's actions: nothing (the dead), then ours in the same order: stop, four moves, targets."""
SAME_ARMY = 5.0
"""Enemies that start nearer than this to each other, in cells, belong to the same army."""
DISTANCE = RELATIONS.index("distance")

_view = jax.jit(lambda task, state: task.view(state), static_argnums=0)
_switch = jax.jit(switch_armies, static_argnums=0)


@partial(jax.jit, static_argnums=0)
def _outcome(rules: Rules, before: State, after: State) -> alma.Outcome:
    return outcome_of_step(rules, before, after, battle_status(rules, before), battle_status(rules, after))


class Game(Protocol):
    """What is needed of `smac.env.StarCraft2Env`.

    A game may have a method `order_army(enemies, to, attack)` besides. It is called when an army turns, with the keys
    of its units in `enemies`, the point (x, y) on the map where they have to go, and whether they fight on the way.
    Without it, armies do what the map's own triggers tell them.
    """

    n_agents: int
    n_enemies: int
    map_x: float
    map_y: float
    agents: Mapping[int, Any]
    """Our units, with `unit_type`, `pos.x`, `pos.y`, `health`, `shield`, `energy` and `weapon_cooldown`."""
    enemies: Mapping[int, Any]

    def reset(self) -> Any: ...

    def step(self, actions: Sequence[int]) -> tuple[float, bool, Mapping[str, Any]]: ...

    def get_avail_actions(self) -> Sequence[Sequence[int]]: ...

    def close(self) -> None: ...


@dataclass(eq=False)
class StarCraftGame(alma.Simulator):
    """The multi-army base defence in StarCraft II. The base is the middle of the map."""

    game: str = "smac.env:StarCraft2Env"
    """Class with SMAC's interface, as module:Class. It is made at the first reset."""
    map_name: str = "2s3z"
    """Map that the game is made with."""
    units: str = "sz"
    """Unit pool, as in the task `starcraft`: `sz`, `mmm`, or types joined by `+`."""
    balance: Literal["symmetric", "disadvantage"] = "symmetric"
    """Whether there can be as many enemies as agents (symmetric), or one more (disadvantage)."""
    fighters: int | tuple[int, int] | None = None
    """Number of our units with a weapon, as in the task `starcraft`."""

    metrics = ("kills", "deaths", "breached", "timed_out")

    def __post_init__(self) -> None:
        if isinstance(self.fighters, list):  # JSON and the command line turn tuples into lists
            self.fighters = tuple(self.fighters)
        self.task = StarCraft(Rules(units=self.units, balance=self.balance, fighters=self.fighters))
        self.played: Game | None = None
        self.state: State | None = None

    @property
    def spec(self) -> alma.TaskSpec:
        return self.task.spec

    @property
    def rules(self) -> Mapping[str, Callable[[alma.View], Allocation]]:
        return {"nearest": partial(nearest, distance=DISTANCE), "together": partial(together, distance=DISTANCE)}

    # ---- episodes

    def reset(self, seed: int) -> alma.View:
        """Begin a battle. SMAC draws its random numbers itself: `seed` decides when armies attack, and nothing else."""
        if self.played is None:
            self.played = import_by_name("game", self.game)(map_name=self.map_name)
        self.played.reset()
        self.key = jax.random.key(seed)
        self.state = self._turned(self._first_state())
        return self._look()

    def step(self, actions: np.ndarray) -> tuple[alma.View, alma.Outcome]:
        before = self.state
        alive = np.asarray(before.units.alive)
        chosen = [int(action) + FIRST_ORDER if alive[i] else NO_OP for i, action in enumerate(actions)]
        _, over, _ = self.played.step(chosen[: self.played.n_agents])
        units = self._units()
        went = jnp.where(units.alive[:, None], units.position - before.units.position, 0)
        since_switch = jnp.minimum(before.since_switch + 1, 100)
        after = replace(before, units=units, moved=went, since_switch=since_switch, time=before.time + 1)
        outcome = jax.device_get(_outcome(self.task.rules, before, after))
        self.state = self._turned(after)
        if over and not outcome.terminated:  # SMAC's own limit of time, or the game had to be started anew
            outcome = replace(outcome, truncated=np.asarray(True))
        if outcome.terminated and not over:
            self._note_end()
        return self._look(), outcome

    def close(self) -> None:
        if self.played is not None:
            self.played.close()

    def _note_end(self) -> None:
        """Tell SMAC that the battle is over, although there are units left on both sides.

        It counts the battles that it has ended itself, and starts the game anew while there are none.
        """
        if getattr(self.played, "_episode_count", None) == 0:
            self.played._episode_count = 1

    # ---- armies

    def _turned(self, state: State) -> State:
        """The state after armies may have turned: by our orders, or by themselves in a game that takes none."""
        if not hasattr(self.played, "order_army"):
            return self._facing(state)
        self.key, key = jax.random.split(self.key)
        now = _switch(self.task.rules, key, state, battle_status(self.task.rules, state))
        self._order(state, now)
        return now

    def _order(self, before: State, now: State) -> None:
        """Pass on the orders of armies that turn."""
        for army in np.flatnonzero(np.asarray(now.attacking != before.attacking)):
            attack = bool(now.attacking[army])
            to = np.asarray(self._middle() if attack else now.start[army] + self._corner())
            self.played.order_army(
                [key for key in self.played.enemies if now.army[key] == army], (float(to[0]), float(to[1])), attack
            )

    def _facing(self, state: State) -> State:
        """The state with armies attacking if they come nearer to the base."""
        agents, half = self.task.rules.max_agents, self.task.rules.map_size / 2
        place, went = state.units.position[agents:] - half, state.moved[agents:]
        nearer = jnp.sum(place * went, axis=1) < 0
        attacking = jnp.any(state.of_army & nearer, axis=1)
        turned = attacking != state.attacking
        return replace(state, attacking=attacking, since_switch=jnp.where(turned, 0, state.since_switch))

    def _first_state(self) -> State:
        rules, units = self.task.rules, self._units()
        place, there = np.asarray(units.position)[rules.max_agents :], np.asarray(units.alive)[rules.max_agents :]
        army = armies_of(place, there)
        sizes = np.bincount(army[there], minlength=1)
        if len(sizes) > rules.max_armies or sizes.max() > rules.max_army_size:
            raise ValueError(
                f"{self.map_name} has armies of {sizes.tolist()} enemies, told apart by where they start: at most "
                f"{rules.max_armies} armies of {rules.max_army_size} are possible"
            )
        start = [place[army == i].mean(axis=0) if i in army else np.zeros(2) for i in range(rules.max_armies)]
        timer = jax.random.randint(self.key, (rules.max_armies,), 0, rules.first_attack)
        return State(
            units=units,
            army=jnp.asarray(army),
            start=jnp.asarray(np.stack(start), jnp.float32),
            attacking=jnp.zeros(rules.max_armies, bool),
            timer=timer - jnp.min(timer[: len(sizes)]),
            since_switch=jnp.zeros(rules.max_armies, jnp.int32),
            settled=jnp.asarray(there),
            moved=jnp.zeros((len(units.kind), 2)),
            order=jnp.arange(rules.max_agents),
            time=jnp.int32(0),
        )

    # ---- units

    def _units(self) -> Units:
        """The units of both sides in the slots of the task, the rest of which stay empty."""
        rules = self.task.rules
        self._check_sizes()
        count = rules.max_agents + rules.max_enemies
        kind = np.full(count, -1, np.int32)
        numbers = np.zeros((count, 6), np.float32)
        ours = {getattr(self.played, f"{name}_id", 0): name for name in rules.types}
        for slot, unit in [
            *self.played.agents.items(),
            *((key + rules.max_agents, unit) for key, unit in self.played.enemies.items()),
        ]:
            names = {**THEIR_TYPES, **ours} if slot < rules.max_agents else THEIR_TYPES
            name = names.get(unit.unit_type)
            if name not in rules.types:
                raise ValueError(f"{self.map_name} has units of type {name or unit.unit_type}, not in {rules.types}")
            kind[slot] = rules.types.index(name)
            x, y = unit.pos.x - self._corner()[0], unit.pos.y - self._corner()[1]
            numbers[slot] = (x, y, unit.health, unit.shield, unit.energy, unit.weapon_cooldown)
        numbers[numbers[:, 2] <= 0] = 0
        nothing = jnp.full(count, NOTHING)
        x, y, health, shield, energy, cooldown = jnp.asarray(numbers.T)
        zero = jnp.zeros(count)
        return Units(
            jnp.asarray(kind), x, y, health, shield, energy, zero, cooldown, nothing, zero, nothing, since_damage=zero
        )

    def _check_sizes(self) -> None:
        rules, ours, theirs = self.task.rules, self.played.n_agents, self.played.n_enemies
        if ours > rules.max_agents or theirs > rules.max_enemies:
            raise ValueError(
                f"{self.map_name} has {ours} agents and {theirs} enemies, more than the {rules.max_agents} and "
                f"{rules.max_enemies} of units={rules.units!r}, balance={rules.balance!r}"
            )

    def _middle(self) -> np.ndarray:
        return np.array([self.played.map_x / 2, self.played.map_y / 2])

    def _corner(self) -> np.ndarray:
        """The point of the game's map that is (0, 0) in the state, whose base is in the middle."""
        return self._middle() - self.task.rules.map_size / 2

    # ---- what is seen

    def _look(self) -> alma.View:
        view = jax.device_get(_view(self.task, self.state))
        return replace(view, available=view.available & self._game_allows(view.available.shape))

    def _game_allows(self, shape: tuple[int, int]) -> np.ndarray:
        """SMAC's available actions in our order; an order that it refuses would end the game."""
        allowed = np.zeros(shape, bool)
        theirs = np.asarray(self.played.get_avail_actions(), bool)[:, FIRST_ORDER:]
        allowed[: len(theirs), : theirs.shape[1]] = theirs
        return allowed

    def scene(self, view: alma.View) -> None:
        """The game draws itself."""
        return None


def armies_of(place: np.ndarray, there: np.ndarray) -> np.ndarray:
    """The army of every enemy, by where they start: those that are near to each other belong together; -1: no enemy."""
    army = np.full(len(place), -1)
    for number in range(len(place)):
        alone = np.flatnonzero(there & (army < 0))
        if not len(alone):
            break
        members, size = alone[:1], 0
        while len(members) > size:
            size = len(members)
            apart = np.linalg.norm(place[alone][:, None] - place[members][None], axis=-1).min(axis=1)
            members = alone[apart < SAME_ARMY]
        army[members] = number
    return army
