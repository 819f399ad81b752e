"""A small task with a known optimal policy, and options that learn it in seconds."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from alma import NOBODY, Outcome, Task, TaskSpec, View
from alma.actors.options import ActorNetworkOptions, ActorOptions
from alma.actors.scope import Labelled, Masked
from alma.allocators.options import AllocatorNetworkOptions, AllocatorOptions
from alma.learning.schedules import Linear
from alma.training.methods import Method, learned_allocator, rule_allocator
from alma.training.options import CollectionOptions, ExplorationOptions, TrainingOptions


@dataclass(frozen=True)
class Doors(Task):
    """Two agents and two doors. Each door opens for one agent only, which must push it on the right side.

    Actions are pushes of a side of a door, and an agent can only push the door it is allocated to. There are two
    steps, so both levels must choose well: random play opens both doors in about one episode of ten.
    """

    limit: int = 2

    @property
    def spec(self):
        return TaskSpec(
            name="doors",
            agents=2,
            entities=4,
            subtasks=2,
            actions=("door 0 left", "door 0 right", "door 1 left", "door 1 right"),
            features=("agent 0", "agent 1", "for agent 0", "for agent 1", "left", "right"),
            relations=("for me",),
            max_steps=self.limit,
            mask_subtask_actions=True,
        )

    @property
    def heuristics(self):
        return {"owner": send_to_own_door}

    @property
    def policies(self):
        return {"scripted": push_the_right_side}

    def reset(self, key):
        owner_key, side_key = jax.random.split(key)
        return {
            "owner": jax.random.permutation(owner_key, 2),
            "left": jax.random.bernoulli(side_key, 0.5, (2,)),
            "open": jnp.zeros(2, bool),
            "time": jnp.int32(0),
        }

    def step(self, key, state, actions):
        doors = jnp.arange(2)
        right_push = doors * 2 + jnp.where(state["left"], 0, 1)
        newly = (actions[state["owner"]] == right_push) & ~state["open"]
        after = {**state, "open": state["open"] | newly, "time": state["time"] + 1}
        done = jnp.all(after["open"])
        return after, Outcome(
            reward=jnp.sum(newly).astype(jnp.float32),
            subtask_rewards=newly.astype(jnp.float32),
            terminated=done | (after["time"] >= self.limit),
            truncated=jnp.asarray(False),
            finished=after["open"],
            success=done,
            metrics={},
        )

    def view(self, state):
        for_me = state["owner"] == jnp.arange(2)[:, None]
        doors = jnp.concatenate(
            [jnp.zeros((2, 2)), for_me.T, state["left"][:, None], ~state["left"][:, None]], axis=1
        ).astype(jnp.float32)
        return View(
            entities=jnp.concatenate([jnp.eye(2, 6), doors]),
            present=jnp.ones(4, bool),
            visible=jnp.ones((2, 4), bool),
            subtask=jnp.asarray([NOBODY, NOBODY, 0, 1]),
            active=~state["open"],
            available=jnp.ones((2, 4), bool),
            target=jnp.broadcast_to(jnp.asarray([2, 2, 3, 3]), (2, 4)),
            relations=jnp.concatenate([jnp.zeros((2, 2, 1)), for_me[..., None].astype(jnp.float32)], axis=1),
        )


def send_to_own_door(state):
    """Allocate agents to the door that opens for them, and to the other one once that is open."""
    own = jnp.argsort(state["owner"])
    return jnp.where(state["open"][own], 1 - own, own)


def push_the_right_side(key, state, allocation):
    """Push the right side of the door that one is allocated to."""
    door = jnp.asarray(allocation)
    return jnp.where(door == NOBODY, 0, door * 2 + jnp.where(state["left"][door], 0, 1))


SMALL = TrainingOptions(
    actors=ActorOptions(
        batch=128,
        n_step=1,
        reward_scale=1.0,
        learning_rate=3e-3,
        networks=ActorNetworkOptions(width=32, hidden=32),
    ),
    allocator=AllocatorOptions(
        batch=64,
        proposals=4,
        variations=0,
        period=1,
        reward_scale=1.0,
        learning_rate=3e-3,
        networks=AllocatorNetworkOptions(width=32, choice_width=16),
    ),
    collection=CollectionOptions(environments=16, buffer=8192, decisions=8192, steps_per_update=32, warmup=640),
    exploration=ExplorationOptions(
        action=Linear(1.0, 0.05, 8000), proposal=Linear(1.0, 0.05, 8000), subtask=Linear(1.0, 0.0, 8000)
    ),
)

MINE = Method("my own", Masked, learned_allocator)
BY_RULE = Method("labelled actors under a rule", Labelled, rule_allocator("heuristic"))
