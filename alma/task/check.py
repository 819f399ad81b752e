"""`check_task`: tests a task against the contract of `alma.task` and reports every breach."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, PRNGKeyArray

from alma.task.callbacks import raises_plainly
from alma.task.choice import choose_uniformly
from alma.task.keys import keys_as_integers
from alma.task.outcome import Outcome
from alma.task.own_code import describe_error
from alma.task.spec import TaskSpec
from alma.task.task import Task
from alma.task.view import NOBODY, View

REPEATED_STEPS = 20
"""Steps of an episode that are repeated without vmap and scan, to check that the results are the same."""


MOST_STEPS = 10_000
"""Steps of an episode that are checked by default; everything about them is kept in memory."""


class TaskError(ValueError):
    """A task breaks the contract. The message lists every breach that was found."""


class CheckedStep(NamedTuple):
    """One step of random play, with everything that is checked. NumPy arrays after the episode has been played."""

    state: Any
    view: View
    actions: Any
    outcome: Outcome
    next_view: View
    absent_matter: Any
    """Whether other actions of absent agents would have changed the result; only known of pure tasks."""
    allocations: dict[str, Any]
    """The allocation of each heuristic, by name."""
    scripted: dict[str, Any]
    """The actions of each scripted policy, by name."""


@raises_plainly
def check_task(task: Task, *, episodes: int = 8, steps: int | None = None, seed: int = 0) -> None:
    """Check a task against the whole contract with random play; raise a `TaskError` that lists every breach.

    `steps` is the most steps of each episode that are checked; by default whole episodes are, up to 10,000 steps.
    """
    if not isinstance(task.spec, TaskSpec):
        raise TaskError(f"spec must be a TaskSpec, not a {type(task.spec).__name__}")
    steps = min(task.spec.max_steps, MOST_STEPS) if steps is None else steps
    if episodes < 1 or steps < 1:
        raise ValueError(f"check_task needs at least 1 episode and 1 step, not {episodes} and {steps}")
    # Everything below relies on shapes and dtypes, so these breaches are raised first.
    _raise_if_any(_check_declared(task, seed))
    _raise_if_any(_check_extras(task, seed))
    keys = jax.random.split(jax.random.key(seed), episodes)
    faults = task.faults
    played = _play(task, keys, steps)
    if task.faults > faults:
        raise TaskError(f"the simulator failed in {task.faults - faults} of {episodes} random episodes: see above")
    spec, complete = task.spec, steps >= task.spec.max_steps
    breaches = [breach for episode in played for checked in episode for breach in _check_step(spec, checked)]
    breaches += [breach for episode in played for breach in _check_episode(spec, episode, complete)]
    breaches += [breach for episode in played for breach in _check_scenes(task, [episode[0], episode[-1]])]
    if task.is_pure:
        breaches += _check_purity(task, keys[0], steps, played[0])
    else:
        breaches += _check_repeatable(task, keys, steps, played)
    _raise_if_any(breaches)


def _raise_if_any(breaches: list[str]) -> None:
    if breaches:
        listed = list(dict.fromkeys(breaches))  # the same breach occurs at many steps: list it once
        ways = "1 way" if len(listed) == 1 else f"{len(listed)} ways"
        raise TaskError(f"the task breaks its contract in {ways}:\n- " + "\n- ".join(listed))


# ---- shapes and dtypes, found by tracing


def _expected_view(spec: TaskSpec) -> dict[str, tuple[tuple[int, ...], Any]]:
    a, e, m, u = spec.agents, spec.entities, spec.subtasks, len(spec.actions)
    return {
        "entities": ((e, len(spec.features)), jnp.floating),
        "present": ((e,), jnp.bool_),
        "visible": ((a, e), jnp.bool_),
        "subtask": ((e,), jnp.integer),
        "active": ((m,), jnp.bool_),
        "available": ((a, u), jnp.bool_),
        "target": ((a, u), jnp.integer),
        "relations": ((a, e, len(spec.relations)), jnp.floating),
    }


def _expected_outcome(spec: TaskSpec) -> dict[str, tuple[tuple[int, ...], Any]]:
    return {
        "reward": ((), jnp.floating),
        "subtask_rewards": ((spec.subtasks,), jnp.floating),
        "terminated": ((), jnp.bool_),
        "truncated": ((), jnp.bool_),
        "finished": ((spec.subtasks,), jnp.bool_),
        "success": ((), jnp.bool_),
    }


def _trace(name: str, function: Callable, *arguments: Any) -> Any:
    """`jax.eval_shape`; an exception in the task's own code is reported as a breach."""
    try:
        return jax.eval_shape(function, *arguments)
    except Exception as error:
        raise TaskError(f"{name} must be traceable by jax.jit: {describe_error(error)}") from error


def _check_declared(task: Task, seed: int) -> list[str]:
    spec = task.spec
    key = jax.random.key(seed)
    state = _trace("reset", task.reset, key)
    view = _trace("view", task.view, state)
    actions = jax.ShapeDtypeStruct((spec.agents,), jnp.int32)
    result = _trace("step", task.step, key, state, actions)
    if not isinstance(result, tuple) or len(result) != 2:
        return ["step must return a pair: the next state and an Outcome"]
    after, outcome = result
    breaches = list(_mismatches("View", view, View, _expected_view(spec)))
    breaches += _mismatches("Outcome", outcome, Outcome, _expected_outcome(spec))
    if isinstance(outcome, Outcome):
        breaches += _check_metrics(outcome.metrics)
    return breaches + _check_same_state(state, after)


def _check_metrics(metrics: Any) -> list[str]:
    if not isinstance(metrics, Mapping):
        return [f"Outcome.metrics must be a mapping of names to numbers, not a {type(metrics).__name__}"]
    return [
        f"Outcome.metrics[{name!r}] must be one floating number, not {_describe(value)}"
        for name, value in metrics.items()
        if not _fits(value, (), jnp.floating)
    ]


def _check_same_state(state: Any, after: Any) -> list[str]:
    structures: list[Any] = [jax.tree.structure(state), jax.tree.structure(after)]
    if structures[0] != structures[1]:
        return ["step must return a state of the same structure as reset does"]
    pairs = zip(jax.tree.leaves_with_path(state), jax.tree.leaves(after), strict=True)
    return [
        f"step changes the state's {jax.tree_util.keystr(path)} from {_describe(old)} to {_describe(new)}"
        for (path, old), new in pairs
        if (old.shape, old.dtype) != (new.shape, new.dtype)
    ]


def _mismatches(name: str, value: Any, kind: type, expected: dict[str, tuple[tuple[int, ...], Any]]) -> Iterator[str]:
    if not isinstance(value, kind):
        yield f"expected a {name}, not a {type(value).__name__}"
        return
    for field, (shape, dtype) in expected.items():
        array = getattr(value, field)
        if not _fits(array, shape, dtype):
            yield f"{name}.{field} must be {dtype.__name__} of shape {shape}, not {_describe(array)}"


def _fits(array: Any, shape: tuple[int, ...], dtype: Any) -> bool:
    return getattr(array, "shape", None) == shape and bool(jnp.issubdtype(array.dtype, dtype))


def _describe(array: Any) -> str:
    return f"{array.dtype} of shape {array.shape}" if hasattr(array, "shape") else f"a {type(array).__name__}"


def _check_extras(task: Task, seed: int) -> list[str]:
    """Heuristics and scripted policies must return one integer per agent."""
    agents = task.spec.agents
    key = jax.random.key(seed)
    state = jax.eval_shape(task.reset, key)
    nobody = jax.ShapeDtypeStruct((agents,), jnp.int32)
    results = {
        f"the heuristic {name!r}": _trace(f"the heuristic {name!r}", rule, state)
        for name, rule in task.heuristics.items()
    } | {
        f"the policy {name!r}": _trace(f"the policy {name!r}", script, key, state, nobody)
        for name, script in task.policies.items()
    }
    return [
        f"{name} must return {agents} integers, one for each agent, not {_describe(result)}"
        for name, result in results.items()
        if not _fits(result, (agents,), jnp.integer)
    ]


# ---- random play


def _play(task: Task, keys: Array, steps: int) -> list[list[CheckedStep]]:
    """Play random episodes, jitted and vmapped; returns the steps of each as NumPy arrays."""

    def episode(key: PRNGKeyArray) -> CheckedStep:
        reset_key, step_keys = _episode_keys(key, steps)
        return jax.lax.scan(lambda state, key: _random_step(task, state, key), task.reset(reset_key), step_keys)[1]

    played = jax.device_get(jax.jit(jax.vmap(episode))(keys))
    done = played.outcome.terminated | played.outcome.truncated
    lengths = np.where(done.any(axis=1), np.argmax(done, axis=1) + 1, steps)
    return [
        [jax.tree.map(itemgetter((number, t)), played) for t in range(length)]
        for number, length in enumerate(lengths.tolist())
    ]


def _episode_keys(key: PRNGKeyArray, steps: int) -> tuple[PRNGKeyArray, Array]:
    reset_key, key = jax.random.split(key)
    return reset_key, jax.random.split(key, steps)


def _random_step(task: Task, state: Any, key: PRNGKeyArray) -> tuple[Any, CheckedStep]:
    """One step of random play, with everything that is checked."""
    action_key, absent_key, step_key = jax.random.split(key, 3)
    spec, view = task.spec, task.view(state)
    actions = jnp.maximum(choose_uniformly(action_key, view.available), 0)
    after, outcome = task.step(step_key, state, actions)

    present = view.present[: spec.agents]
    noise = jax.random.randint(absent_key, actions.shape, 0, len(spec.actions))
    other = task.step(step_key, state, jnp.where(present, actions, noise)) if task.is_pure else (after, outcome)
    allocations = {name: rule(state) for name, rule in task.heuristics.items()}
    usual = next(iter(allocations.values()), jnp.where(present, jnp.argmax(view.active), NOBODY))
    scripted = {name: script(action_key, state, usual) for name, script in task.policies.items()}
    next_view = task.view(after)
    matter = ~_same((after, outcome), other)
    return after, CheckedStep(state, view, actions, outcome, next_view, matter, allocations, scripted)


def _same(one: Any, other: Any) -> Bool[Array, ""]:
    one, other = keys_as_integers((one, other))
    equal = jax.tree.map(lambda a, b: jnp.all((a == b) | ((a != a) & (b != b))), one, other)
    return jnp.all(jnp.stack(jax.tree.leaves(equal)))


# ---- the rules of the contract


def _check_step(spec: TaskSpec, checked: CheckedStep) -> Iterator[str]:
    """Breaches of the contract within one step. Messages do not name the step, so that each breach is listed once."""
    view, outcome = checked.view, checked.outcome
    yield from _check_view(spec, view)
    yield from _check_view(spec, checked.next_view)  # learners read it even when the episode is over
    yield from _check_choices(spec, checked)
    if not np.isfinite(outcome.reward) or not np.isfinite(outcome.subtask_rewards).all():
        yield "rewards must be finite"
    if not all(np.isfinite(value) for value in outcome.metrics.values()):
        yield "metrics must be finite"
    if outcome.subtask_rewards[~view.active].any():
        yield "subtask_rewards must be zero for subtasks that were not active before the step (absent or finished)"
    if outcome.terminated and outcome.truncated:
        yield "an episode ends terminated or truncated, never both at once"
    if outcome.success and not (outcome.terminated or outcome.truncated):
        yield "success may only be reported by the step that ends the episode"
    if (outcome.finished & checked.next_view.active).any():
        yield "a finished subtask must not be active"
    if (view.active & ~checked.next_view.active & ~outcome.finished).any():
        yield "a subtask that is no longer active must be reported as finished"
    if checked.absent_matter:
        yield "actions of absent agents must not change anything"


def _check_view(spec: TaskSpec, view: View) -> Iterator[str]:
    """Breaches of the contract in one view."""
    agents_present = view.present[: spec.agents]
    if not np.isfinite(view.entities).all() or not np.isfinite(view.relations).all():
        yield "View.entities and View.relations must be finite"
    if view.entities[~view.present].any():
        yield "View.entities must be all zero for absent entities"
    if view.relations[~agents_present].any() or view.relations[:, ~view.present].any():
        yield "View.relations must be all zero where the agent or the entity is absent"
    if view.visible[~agents_present].any() or view.visible[:, ~view.present].any():
        yield "View.visible must be False where the agent or the entity is absent"
    if (view.subtask[: spec.agents] != NOBODY).any():
        yield f"View.subtask must be {NOBODY} for agents: the allocation says theirs"
    if (view.subtask[~view.present] != NOBODY).any():
        yield f"View.subtask must be {NOBODY} for absent entities"
    if (view.subtask < NOBODY).any() or (view.subtask >= spec.subtasks).any():
        yield f"View.subtask must lie between {NOBODY} and {spec.subtasks - 1}"
    elif np.bincount(view.subtask[view.subtask != NOBODY], minlength=1).max() > spec.things_per_subtask:
        yield f"a subtask has more than the {spec.things_per_subtask} entities that TaskSpec.max_things allows"
    if view.available[~agents_present].any():
        yield "View.available must be all False for absent agents"
    if not view.available[agents_present].any(axis=1).all():
        yield "every present agent must have at least one available action"
    if (view.target < -1).any() or (view.target >= spec.entities).any():
        yield f"View.target must lie between -1 and {spec.entities - 1}"
        return
    if not view.present[view.target[(view.target >= 0) & view.available]].all():
        yield "View.target of an available action must be a present entity"
    if spec.max_targets is not None and _most_targets(spec, view) > spec.max_targets:
        yield (
            f"an agent has more than the {spec.max_targets} available actions aimed at one subtask that "
            "TaskSpec.max_targets allows"
        )
    if spec.mask_subtask_actions and not _can_act_anywhere(spec, view):
        yield "with mask_subtask_actions, every present agent needs an available action whatever its subtask"


def _can_act_anywhere(spec: TaskSpec, view: View) -> bool:
    """Whether every agent has an available action in every subtask, even with all team mates in other subtasks."""
    at_things = view.target >= spec.agents
    for subtask in np.flatnonzero(view.active):
        possible = view.available & ((view.target < 0) | (at_things & (view.subtask[view.target] == subtask)))
        if not possible[view.present[: spec.agents]].any(axis=1).all():
            return False
    return True


def _most_targets(spec: TaskSpec, view: View) -> int:
    """The most available actions of any agent that can be aimed at entities of one subtask, if all team mates are in
    it."""
    aims = view.available & (view.target >= 0)
    of_target = np.where(aims, view.subtask[view.target], spec.subtasks)
    at_mates = np.sum(aims & (view.target < spec.agents), axis=1)
    at_things = [np.sum(of_target == subtask, axis=1) for subtask in range(spec.subtasks)]
    return int(np.max(at_mates + np.max(at_things, axis=0)))


def _check_choices(spec: TaskSpec, checked: CheckedStep) -> Iterator[str]:
    """Heuristics allocate present agents to active subtasks, absent ones to none; scripted policies return actions."""
    present = checked.view.present[: spec.agents]
    for name, allocation in checked.allocations.items():
        if (allocation[~present] != NOBODY).any():
            yield f"the heuristic {name!r} allocates absent agents: give them {NOBODY}"
        if not np.isin(allocation[present], [NOBODY, *np.flatnonzero(checked.view.active)]).all():
            yield f"the heuristic {name!r} allocates agents to subtasks that are not active"
    for name, actions in checked.scripted.items():
        if not ((actions[present] >= 0) & (actions[present] < len(spec.actions))).all():
            yield f"the policy {name!r} takes actions that do not exist"


def _check_scenes(task: Task, steps: list[CheckedStep]) -> Iterator[str]:
    """If a task has scenes, they must show exactly the present entities, and say how every subtask stands or none."""
    entities, subtasks = task.spec.entities, task.spec.subtasks
    for checked in steps:
        scene = task.scene(checked.state)
        if scene is None:
            return
        if len(scene.markers) != entities:
            yield f"a scene must have {entities} markers, one for each entity, not {len(scene.markers)}"
        elif [marker is not None for marker in scene.markers] != checked.view.present.tolist():
            yield "a scene must have a marker for every entity that is present, and None for the others"
        if scene.standing and len(scene.standing) != subtasks:
            yield f"a scene must say how each of {subtasks} subtasks stands, or none, not {len(scene.standing)}"


def _check_episode(spec: TaskSpec, episode: list[CheckedStep], complete: bool) -> Iterator[str]:
    """Breaches of the contract over the steps of an episode."""
    if not episode[0].view.present[: spec.agents].any():
        yield "an episode must begin with at least one agent"
    if not episode[0].view.active.any():
        yield "an episode must begin with at least one active subtask"
    for before, after in pairwise(episode):
        if (before.outcome.finished & ~after.outcome.finished).any():
            yield "a finished subtask must stay finished"
        if (before.outcome.finished & after.view.active).any():
            yield "a finished subtask must not become active again"
    last = episode[-1].outcome
    if complete and not (last.terminated or last.truncated):
        yield f"an episode must end within TaskSpec.max_steps = {spec.max_steps} steps"


def _check_purity(task: Task, key: PRNGKeyArray, steps: int, played: list[CheckedStep]) -> Iterator[str]:
    """The same keys must give the same episode when every function is compiled and called separately."""
    reset_key, step_keys = _episode_keys(key, steps)
    reset, view, step = jax.jit(lambda k: task.reset(k)), jax.jit(lambda s: task.view(s)), jax.jit(task.step)
    state = reset(reset_key)
    for checked, key_now in zip(played[:REPEATED_STEPS], step_keys, strict=False):
        if not _close(state, checked.state):
            yield "reset and step must be pure: called separately, they return other states than under vmap and scan"
            return
        if not _close(view(state), checked.view):
            yield "view must be pure: called separately, it returns another view than under vmap and scan"
            return
        step_key = jax.random.split(key_now, 3)[2]
        state, outcome = step(step_key, state, jnp.asarray(checked.actions))
        if not _close(outcome, checked.outcome):
            yield "step must be pure: called separately, it returns another outcome than under vmap and scan"
            return


def _check_repeatable(task: Task, keys: Array, steps: int, played: list[list[CheckedStep]]) -> Iterator[str]:
    """The check of simulators in place of `_check_purity`: the same keys must give the same episodes."""
    for first, again in zip(played, _play(task, keys, steps), strict=True):
        for before, after in zip(first, again, strict=False):
            if not _close((before.view, before.outcome), (after.view, after.outcome)):
                yield "the same seed and actions must give the same episode: draw all random numbers from that seed"
                return


def _close(one: Any, other: Any) -> bool:
    """Whether two pytrees are equal up to rounding, which may differ between compiled programs."""

    def same(a: Any, b: Any) -> bool:
        return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-4, atol=1e-4, equal_nan=True))

    return all(jax.tree.leaves(jax.tree.map(same, *keys_as_integers((one, other)))))
