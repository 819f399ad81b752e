"""Random views to test networks with."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from alma import NOBODY, TaskSpec, View

AGENTS, THINGS, SUBTASKS, FEATURES, RELATIONS, ACTIONS = 3, 4, 3, 5, 2, 4

SPEC = TaskSpec(
    name="random",
    agents=AGENTS,
    entities=AGENTS + THINGS,
    subtasks=SUBTASKS,
    actions=tuple("abcd"),
    features=tuple("fghij"),
    relations=tuple("rs"),
    max_steps=10,
    mask_subtask_actions=True,
)


def random_view(seed=0, agents=AGENTS, things=THINGS, subtasks=SUBTASKS):
    """A random view with all entities present; thing i belongs to subtask i modulo the number of subtasks."""
    keys = jax.random.split(jax.random.key(seed), 2)
    entities = agents + things
    owner = np.concatenate([np.full(agents, NOBODY), np.arange(things) % subtasks])
    return View(
        entities=jax.random.normal(keys[0], (entities, FEATURES)),
        present=jnp.ones(entities, bool),
        visible=jnp.ones((agents, entities), bool),
        subtask=jnp.asarray(owner),
        active=jnp.ones(subtasks, bool),
        available=jnp.ones((agents, ACTIONS), bool),
        target=jnp.full((agents, ACTIONS), -1),
        relations=jax.random.normal(keys[1], (agents, entities, RELATIONS)),
    )


def select_entities(view, agents, things):
    """The view with only these agents and these other entities, in this order."""
    rows, cols = jnp.asarray(agents), jnp.asarray([*agents, *things])
    number = jnp.full(len(view.present) + 1, -1).at[cols].set(jnp.arange(len(cols)))  # the last one stands for none
    return replace(
        view,
        entities=view.entities[cols],
        present=view.present[cols],
        visible=view.visible[rows][:, cols],
        subtask=view.subtask[cols],
        available=view.available[rows],
        target=number[view.target[rows]],
        relations=view.relations[rows][:, cols],
    )


def rename_subtasks(view, order):
    """The view with subtasks reordered: new subtask i is old subtask `order[i]`."""
    new_name = jnp.argsort(jnp.asarray(order))
    subtask = jnp.where(view.subtask >= 0, new_name[view.subtask], NOBODY)
    return replace(view, subtask=subtask, active=view.active[jnp.asarray(order)])


def without(view, entity):
    """The view with one entity absent."""
    return replace(
        view,
        entities=view.entities.at[entity].set(0),
        present=view.present.at[entity].set(False),
        visible=view.visible.at[:, entity].set(False),
        subtask=view.subtask.at[entity].set(NOBODY),
        relations=view.relations.at[:, entity].set(0),
    )
