"""Hold a task to the contract of `alma.task`, and say exactly what is wrong with it."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from alma.rollout import choose_uniformly
from alma.task import NOBODY, Outcome, Task, TaskSpec, View, available_under


class TaskError(ValueError):
    """A task breaks its contract. The message lists every breach that was found."""


class Moment(NamedTuple):
    """One step of play, as plain arrays: what was seen, what was done, what came of it."""

    view: View
    actions: np.ndarray
    outcome: Outcome
    next_view: View


def check_task(task: Task, *, episodes: int = 8, steps: int | None = None, seed: int = 0) -> None:
    """Run a task through the whole contract with random play; raise `TaskError` if it breaks any of it.

    `steps` bounds how long each episode is followed; by default it is followed to its end.
    """
    spec = task.spec
    steps = spec.max_steps if steps is None else steps
    _report(_check_declared(task, seed))  # what follows relies on shapes and dtypes
    moments = _play(task, episodes, steps, seed)
    breaches = [breach for episode in moments for moment in episode for breach in _check_moment(spec, moment)]
    breaches += [
        breach for episode in moments for breach in _check_story(spec, episode, complete=steps >= spec.max_steps)
    ]
    breaches += _check_purity(task, seed)
    breaches += _check_heuristics(task, seed)
    _report(breaches)


def _report(breaches: list[str]) -> None:
    if breaches:
        listed = list(dict.fromkeys(breaches))  # the same breach shows at many steps: keep the first
        raise TaskError(f"the task breaks its contract in {len(listed)} ways:\n- " + "\n- ".join(listed))


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


def _check_declared(task: Task, seed: int) -> list[str]:
    """Shapes and dtypes, found by tracing alone; that tracing works shows that the functions are pure JAX."""
    spec = task.spec
    key = jax.random.key(seed)
    try:
        state = jax.eval_shape(task.reset, key)
        view = jax.eval_shape(task.view, state)
        actions = jax.ShapeDtypeStruct((spec.agents,), jnp.int32)
        after, outcome = jax.eval_shape(task.step, key, state, actions)
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        first_line = str(error).splitlines()[0]
        return [
            f"reset, step and view must be traceable by jax.jit (no Python decisions on array values): {first_line}"
        ]
    breaches = list(_mismatches("View", view, View, _expected_view(spec)))
    breaches += _mismatches("Outcome", outcome, Outcome, _expected_outcome(spec))
    if not breaches:
        breaches += [
            f"Outcome.metrics[{name!r}] must be one floating number, not {_describe(value)}"
            for name, value in outcome.metrics.items()
            if value.shape != () or not jnp.issubdtype(value.dtype, jnp.floating)
        ]
    structures: list[Any] = [jax.tree.structure(state), jax.tree.structure(after)]
    if structures[0] != structures[1]:
        breaches.append("step must return a state of the same structure as reset does")
    else:
        pairs = zip(jax.tree.leaves_with_path(state), jax.tree.leaves(after), strict=True)
        breaches += [
            f"step changes the state's {jax.tree_util.keystr(path)} from {_describe(old)} to {_describe(new)}"
            for (path, old), new in pairs
            if (old.shape, old.dtype) != (new.shape, new.dtype)
        ]
    return breaches


def _mismatches(name: str, value: Any, kind: type, expected: dict[str, tuple[tuple[int, ...], Any]]) -> Iterator[str]:
    if not isinstance(value, kind):
        yield f"expected a {name}, not a {type(value).__name__}"
        return
    for field, (shape, dtype) in expected.items():
        array = getattr(value, field)
        if array.shape != shape or not jnp.issubdtype(array.dtype, dtype):
            yield f"{name}.{field} must be {dtype.__name__} of shape {shape}, not {_describe(array)}"


def _describe(array: Any) -> str:
    return f"{array.dtype} of shape {array.shape}"


def _play(task: Task, episodes: int, steps: int, seed: int) -> list[list[Moment]]:
    """Follow random play, jitted and vmapped, and bring it back as plain arrays."""

    def body(state: Any, key: jax.Array) -> tuple[Any, Any]:
        action_key, step_key = jax.random.split(key)
        view = task.view(state)
        actions = jnp.maximum(choose_uniformly(action_key, view.available), 0)
        after, outcome = task.step(step_key, state, actions)
        return after, (view, actions, outcome, task.view(after))

    def episode(key: jax.Array) -> Any:
        reset_key, key = jax.random.split(key)
        return jax.lax.scan(body, task.reset(reset_key), jax.random.split(key, steps))[1]

    played = jax.device_get(jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(seed), episodes)))
    result = []
    for number in range(episodes):
        done = played[2].terminated[number] | played[2].truncated[number]
        length = int(np.argmax(done)) + 1 if done.any() else steps
        result.append([Moment(*jax.tree.map(itemgetter((number, t)), played)) for t in range(length)])
    return result


def _check_moment(spec: TaskSpec, moment: Moment) -> Iterator[str]:
    """What must hold within one step. Messages leave the step out, so that a breach is told once."""
    yield from _check_view(spec, moment.view)
    view, outcome = moment.view, moment.outcome
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
    if (outcome.finished & moment.next_view.active).any():
        yield "a finished subtask must not be active"


def _check_view(spec: TaskSpec, view: View) -> Iterator[str]:
    """What must hold in every view."""
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
        yield f"View.subtask must be {NOBODY} for agents: theirs is the allocation"
    if (view.subtask[~view.present] != NOBODY).any():
        yield f"View.subtask must be {NOBODY} for absent entities"
    if (view.subtask < NOBODY).any() or (view.subtask >= spec.subtasks).any():
        yield f"View.subtask must lie between {NOBODY} and {spec.subtasks - 1}"
    if not view.available[agents_present].any(axis=1).all():
        yield "every present agent must have at least one available action"
    if view.available[~agents_present].any():
        yield "View.available must be all False for absent agents"
    if (view.target < -1).any() or (view.target >= spec.entities).any():
        yield f"View.target must lie between -1 and {spec.entities - 1}"
    elif not view.present[view.target[(view.target >= 0) & view.available]].all():
        yield "View.target of an available action must be a present entity"
    if spec.mask_subtask_actions and not _can_act_anywhere(spec, view):
        yield "under mask_subtask_actions every present agent needs an available action whatever its subtask"


def _can_act_anywhere(spec: TaskSpec, view: View) -> bool:
    present = view.present[: spec.agents]
    allocations = [np.full(spec.agents, subtask) for subtask in np.flatnonzero(view.active)]
    return all(np.asarray(available_under(view, jnp.asarray(b)))[present].any(axis=1).all() for b in allocations)


def _check_story(spec: TaskSpec, episode: list[Moment], complete: bool) -> Iterator[str]:
    """What must hold from step to step."""
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


def _check_purity(task: Task, seed: int) -> list[str]:
    """The same key must give the same results: called twice, traced twice, and under vmap."""
    keys = jax.random.split(jax.random.key(seed + 1), 3)

    def first_step(key: jax.Array) -> Any:
        state = task.reset(key)
        view = task.view(state)
        actions = jnp.maximum(choose_uniformly(key, view.available), 0)
        return state, view, task.step(key, state, actions)

    compiled = jax.jit(first_step)
    traced_again = jax.jit(lambda key: first_step(key))
    alone = [compiled(key) for key in keys]
    ways: dict[str, Callable[[], list[Any]]] = {
        "a second time": lambda: [compiled(key) for key in keys],
        "after tracing them again": lambda: [traced_again(key) for key in keys],
        "under vmap": lambda: _unstack(jax.jit(jax.vmap(first_step))(keys), len(keys)),
    }
    return [
        f"reset, view and step must be pure: run {way}, they give other results"
        for way, run in ways.items()
        if not all(_close(one, other) for one, other in zip(alone, run(), strict=True))
    ]


def _unstack(tree: Any, count: int) -> list[Any]:
    return [jax.tree.map(itemgetter(i), tree) for i in range(count)]


def _close(one: Any, other: Any) -> bool:
    """Equal but for the rounding that compilers are free in."""

    def same(a: jax.Array, b: jax.Array) -> bool:
        if jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(a), jax.random.key_data(b)
        return bool(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-5, equal_nan=True))

    return all(jax.tree.leaves(jax.tree.map(same, one, other)))


def _check_heuristics(task: Task, seed: int) -> list[str]:
    """Heuristics give present agents active subtasks, and absent agents none."""
    spec = task.spec
    states = jax.jit(jax.vmap(task.reset))(jax.random.split(jax.random.key(seed), 16))
    views = jax.device_get(jax.jit(jax.vmap(task.view))(states))
    breaches = []
    for name, rule in task.heuristics.items():
        allocations = np.asarray(jax.jit(jax.vmap(rule))(states))
        if allocations.shape != (16, spec.agents) or not np.issubdtype(allocations.dtype, np.integer):
            breaches.append(f"the heuristic {name!r} must return {spec.agents} integers, one for each agent")
            continue
        for allocation, active, present in zip(allocations, views.active, views.present, strict=True):
            agents = present[: spec.agents]
            if (allocation[~agents] != NOBODY).any():
                breaches.append(f"the heuristic {name!r} allocates absent agents: give them {NOBODY}")
            if not np.isin(allocation[agents], [NOBODY, *np.flatnonzero(active)]).all():
                breaches.append(f"the heuristic {name!r} allocates agents to subtasks that are not active")
    return breaches
