"""`check_task` accepts good tasks and names what is wrong with each kind of broken one."""

import itertools
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pytest

from alma import NOBODY, Outcome, Task, TaskError, TaskSpec, View, check_task, make
from alma.task.scene import Marker, Scene


def test_save_the_city_passes():
    check_task(make("save-the-city"))


@dataclass(frozen=True)
class Doors(Task):
    """Two agents, one of them absent; three doors, the last of them absent, each opened by pushing it once."""

    spec_changes: tuple = ()

    @property
    def spec(self):
        spec = TaskSpec(
            name="doors",
            agents=2,
            entities=5,
            subtasks=3,
            actions=("wait", "push 0", "push 1"),
            features=("is agent", "open"),
            relations=("near",),
            max_steps=10,
            mask_subtask_actions=False,
        )
        return replace(spec, **dict(self.spec_changes))

    def reset(self, key):
        return {"open": jnp.zeros(2, bool), "time": jnp.int32(0)}

    def step(self, key, state, actions):
        pushed = jnp.arange(1, 3) == actions[0]
        newly = pushed & ~state["open"]
        after = {"open": state["open"] | pushed, "time": state["time"] + 1}
        terminated = jnp.all(after["open"])
        return after, Outcome(
            reward=jnp.sum(newly).astype(jnp.float32),
            subtask_rewards=jnp.append(newly, False).astype(jnp.float32),
            terminated=terminated,
            truncated=~terminated & (after["time"] >= 10),
            finished=jnp.append(after["open"], False),
            success=terminated,
            metrics={"opened": jnp.sum(newly).astype(jnp.float32)},
        )

    def view(self, state):
        present = np.array([True, False, True, True, False])
        return View(
            entities=jnp.zeros((5, 2)).at[0, 0].set(1.0).at[2:4, 1].set(state["open"]),
            present=jnp.asarray(present),
            visible=jnp.asarray(np.array([[True], [False]]) & present),
            subtask=jnp.asarray([NOBODY, NOBODY, 0, 1, NOBODY]),
            active=jnp.append(~state["open"], False),
            available=jnp.asarray([[True, True, True], [False, False, False]]),
            target=jnp.asarray([[-1, 2, 3], [-1, -1, -1]]),
            relations=jnp.zeros((2, 5, 1)).at[0, 2:4].set(0.5),
        )

    @property
    def heuristics(self):
        return {"first": lambda state: jnp.asarray([jnp.argmin(state["open"]), NOBODY])}


def test_a_small_task_passes():
    check_task(Doors(spec_changes=(("max_targets", 1),)))


def breaking(*, view=None, outcome=None, **members):
    """A kind of Doors with a fault: changes of its views or outcomes, or whole members replaced."""

    class Broken(Doors):
        def view(self, state):
            seen = super().view(state)
            return replace(seen, **view(seen, state)) if view else seen

        def step(self, key, state, actions):
            after, result = super().step(key, state, actions)
            return after, replace(result, **outcome(result, after)) if outcome else result

    for name, member in members.items():
        setattr(Broken, name, member)
    return Broken()


TICKS = itertools.count()

BROKEN = {
    "View.present must be bool of shape (5,), not int32": breaking(
        view=lambda v, s: {"present": v.present.astype(jnp.int32)}
    ),
    "View.relations must be floating of shape (2, 5, 1), not float32 of shape (5, 2, 1)": breaking(
        view=lambda v, s: {"relations": v.relations.swapaxes(0, 1)}
    ),
    "Outcome.subtask_rewards must be floating of shape (3,)": breaking(
        outcome=lambda o, s: {"subtask_rewards": o.subtask_rewards[:2]}
    ),
    "Outcome.metrics['opened'] must be one floating number": breaking(
        outcome=lambda o, s: {"metrics": {"opened": jnp.int32(1)}}
    ),
    "step changes the state's ['time'] from int32 of shape () to float32": breaking(
        step=lambda self, key, state, actions: (
            {**state, "time": state["time"] + 1.0},
            Doors().step(key, state, actions)[1],
        )
    ),
    "step must return a state of the same structure": breaking(
        step=lambda self, key, state, actions: (state["open"], Doors().step(key, state, actions)[1])
    ),
    "must be traceable by jax.jit": breaking(
        step=lambda self, key, state, actions: Doors().step(key, state, actions if state["time"] < 5 else -actions)
    ),
    "every present agent must have at least one available action": breaking(
        view=lambda v, s: {"available": v.available & ~s["open"].any()}
    ),
    "View.available must be all False for absent agents": breaking(
        view=lambda v, s: {"available": v.available.at[1, 0].set(True)}
    ),
    "rewards must be finite": breaking(outcome=lambda o, s: {"reward": o.reward / (1 - s["open"].any())}),
    "metrics must be finite": breaking(outcome=lambda o, s: {"metrics": {"opened": jnp.float32(jnp.nan)}}),
    "View.entities must be all zero for absent entities": breaking(
        view=lambda v, s: {"entities": v.entities.at[4, 0].set(1.0)}
    ),
    "View.relations must be all zero where": breaking(view=lambda v, s: {"relations": v.relations + 1}),
    "View.entities and View.relations must be finite": breaking(
        view=lambda v, s: {"entities": v.entities.at[0, 0].set(jnp.inf)}
    ),
    "View.visible must be False where": breaking(view=lambda v, s: {"visible": v.visible.at[0, 4].set(True)}),
    "View.subtask must be -1 for agents": breaking(view=lambda v, s: {"subtask": v.subtask.at[0].set(0)}),
    "View.subtask must be -1 for absent entities": breaking(view=lambda v, s: {"subtask": v.subtask.at[4].set(2)}),
    "View.subtask must lie between -1 and 2": breaking(view=lambda v, s: {"subtask": v.subtask.at[2].set(3)}),
    "View.target must lie between -1 and 4": breaking(view=lambda v, s: {"target": v.target.at[0, 0].set(5)}),
    "View.target of an available action must be a present entity": breaking(
        view=lambda v, s: {"target": v.target.at[0, 0].set(4)}
    ),
    "more than the 1 available actions aimed at one subtask": breaking(
        spec=property(lambda self: replace(Doors().spec, max_targets=1)),
        view=lambda v, s: {"target": v.target.at[0, 2].set(2)},
    ),
    "subtask_rewards must be zero for subtasks that were not active": breaking(
        outcome=lambda o, s: {"subtask_rewards": o.subtask_rewards.at[2].set(1.0)}
    ),
    "never both at once": breaking(outcome=lambda o, s: {"truncated": o.terminated}),
    "success may only be reported by the step that ends": breaking(outcome=lambda o, s: {"success": jnp.asarray(True)}),
    "a finished subtask must stay finished": breaking(
        outcome=lambda o, s: {"finished": jnp.append((s["time"] % 2 == 0) & s["open"], False)}
    ),
    "a finished subtask must not be active": breaking(view=lambda v, s: {"active": v.active.at[:2].set(True)}),
    "an episode must end within TaskSpec.max_steps = 10": breaking(
        outcome=lambda o, s: {
            "truncated": jnp.asarray(False),
            "terminated": jnp.asarray(False),
            "success": jnp.asarray(False),
        }
    ),
    "an episode must begin with at least one active subtask": breaking(
        reset=lambda self, key: {"open": jnp.ones(2, bool), "time": jnp.int32(0)}
    ),
    "reset and step must be pure": breaking(
        reset=lambda self, key: {"open": jnp.zeros(2, bool), "time": jnp.int32(next(TICKS) % 5)}
    ),
    "the heuristic 'first' allocates absent agents": breaking(
        heuristics=property(lambda self: {"first": lambda state: jnp.zeros(2, jnp.int32)})
    ),
    "the heuristic 'first' allocates agents to subtasks that are not active": breaking(
        heuristics=property(lambda self: {"first": lambda state: jnp.asarray([2, NOBODY])})
    ),
    "the heuristic 'first' must return 2 integers": breaking(
        heuristics=property(lambda self: {"first": lambda state: jnp.zeros(3)})
    ),
    "the policy 'bad' must return 2 integers": breaking(
        policies=property(lambda self: {"bad": lambda key, state, allocation: jnp.zeros(3, jnp.int32)})
    ),
    "the policy 'bad' takes actions that do not exist": breaking(
        policies=property(lambda self: {"bad": lambda key, state, allocation: jnp.full(2, 99)})
    ),
    "View.entities and View.relations must be finite ": breaking(  # in the last view of an episode only
        view=lambda v, s: {"entities": v.entities.at[0, 0].set(jnp.where(jnp.all(s["open"]), jnp.nan, 1.0))}
    ),
    "no longer active must be reported as finished": breaking(outcome=lambda o, s: {"finished": jnp.zeros(3, bool)}),
    "view must be pure": breaking(
        view=lambda v, s: {"entities": v.entities.at[0, 0].set(jnp.where(s["time"] > 1, next(TICKS), 1.0))}
    ),
    "step must be pure": breaking(outcome=lambda o, s: {"reward": o.reward + jnp.where(s["time"] > 1, next(TICKS), 0)}),
    "actions of absent agents must not change anything": breaking(
        step=lambda self, key, state, actions: Doors().step(key, state, actions[::-1]),
    ),
    "a scene must have 5 markers, one for each entity, not 1": breaking(
        scene=lambda self, state: Scene((9, 9), (Marker("agent", (1, 1)),))
    ),
    "a scene must have a marker for every entity that is present": breaking(
        scene=lambda self, state: Scene((9, 9), (Marker("agent", (1, 1)),) * 5)
    ),
    "a scene must say how each of 3 subtasks stands": breaking(
        scene=lambda self, state: Scene((9, 9), (), standing=("open",))
    ),
    "step must return a pair": breaking(step=lambda self, key, state, actions: state),
    ": KeyError: 'door'": breaking(step=lambda self, key, state, actions: state["door"]),
    "View.present must be bool of shape (5,), not a NoneType": breaking(view=lambda v, s: {"present": None}),
    "Outcome.metrics must be a mapping of names to numbers, not a list": breaking(
        outcome=lambda o, s: {"metrics": [jnp.float32(0)]}
    ),
}


@pytest.mark.parametrize("message", BROKEN)
def test_broken_tasks_are_told_what_is_wrong(message):
    with pytest.raises(TaskError) as error:
        check_task(BROKEN[message], episodes=3)
    assert message.strip() in str(error.value)


def test_a_view_must_be_a_view():
    class Lazy(Doors):
        def view(self, state):
            return {"entities": jnp.zeros((5, 2))}

    with pytest.raises(TaskError, match="expected a View, not a dict"):
        check_task(Lazy())


def test_masked_actions_must_leave_something_to_do():
    masked = (("mask_subtask_actions", True),)
    check_task(replace(Doors(), spec_changes=masked), episodes=3)
    only_one_door = breaking(view=lambda v, s: {"available": jnp.asarray([[False, True, False], [False] * 3])})
    check_task(only_one_door, episodes=3)
    with pytest.raises(TaskError, match="whatever its subtask"):
        check_task(replace(only_one_door, spec_changes=masked), episodes=3)


def test_team_mates_do_not_count_as_something_to_do():
    """Healing needs the team mate in one's own subtask, which nobody can rely on."""
    healer = breaking(
        view=lambda v, s: {
            "available": v.available.at[0].set(jnp.asarray([False, False, True])),
            "target": v.target.at[0, 2].set(0),
        }
    )
    with pytest.raises(TaskError, match="whatever its subtask"):
        check_task(replace(healer, spec_changes=(("mask_subtask_actions", True),)), episodes=3)


def test_nothing_to_look_at_is_refused():
    with pytest.raises(ValueError, match="at least 1 episode and 1 step"):
        check_task(Doors(), steps=0)


def test_all_breaches_are_listed_once():
    bad = breaking(
        view=lambda v, s: {"relations": v.relations + 1, "subtask": v.subtask.at[0].set(0)},
        outcome=lambda o, s: {"success": jnp.asarray(True)},
    )
    with pytest.raises(TaskError, match="in 3 ways") as error:
        check_task(bad, episodes=3)
    assert len(str(error.value).splitlines()) == 4
