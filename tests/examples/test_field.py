"""What is seen of level-based foraging, on a field that is set up by hand."""

import jax
import jax.numpy as jnp
import numpy as np

import alma
from examples.field import FEATURES, HEAVIEST, LOAD, Field, scene_of, spec_of, view_of

FIELD = Field(
    size=5,
    agents=np.array([(1, 1), (0, 0), (3, 4)]),
    agent_level=np.array([1, 2, 1]),
    foods=np.array([(1, 2), (3, 3), (2, 1)]),
    food_level=np.array([2, 1, 1]),
    left=np.array([True, True, False]),
)
SPEC = spec_of("field", 5, 3, 3, max_steps=10)


def relation(view, name):
    return view.relations[..., SPEC.relations.index(name)]


def feature(view, name):
    return view.entities[:, FEATURES.index(name)]


def test_actions():
    """Agents stay on the field and off the foods that are left, and load beside one of them."""
    available = view_of(FIELD).available.astype(int).tolist()
    assert available == [
        [1, 1, 1, 1, 0, 1],  # food 0 is to the east; food 2, to the south, has been collected
        [1, 0, 1, 0, 1, 0],  # in the corner
        [1, 1, 1, 0, 0, 1],  # at the border, with food 1 to the west
    ]


def test_loading_is_aimed_at_the_food_beside():
    target = view_of(FIELD).target
    assert target[:, LOAD].tolist() == [3, -1, 4]
    assert (target[:, :LOAD] == -1).all()
    between = Field(**{**vars(FIELD), "left": np.ones(3, bool)})
    assert view_of(between).target[0, LOAD] == -1  # foods 0 and 2 at once


def test_features_and_relations():
    view = view_of(FIELD)
    assert view.present.tolist() == [True] * 5 + [False]
    assert view.subtask.tolist() == [-1, -1, -1, 0, 1, -1]
    assert (feature(view, "level") * HEAVIEST).round(4).tolist() == [1, 2, 1, 2, 1, 0]
    assert feature(view, "enough beside it").tolist() == [0, 0, 0, 0, 1, 0]
    assert (relation(view, "distance")[0] * 10).round(4).tolist() == [0, 2, 5, 1, 4, 0]
    assert relation(view, "adjacent")[0].tolist() == [0, 0, 0, 1, 0, 0]
    assert relation(view, "south -1")[0].tolist() == [0, 1, 0, 0, 0, 0]
    assert relation(view, "east +3")[1].tolist() == [0, 0, 1, 0, 1, 0]  # 4 and 3 cells, of which 3 are told
    assert relation(view, "my share of its level")[:, 3].tolist() == [0.5, 1, 0.5]
    assert relation(view, "light enough for me")[:, 3:].tolist() == [[0, 1, 0], [1, 1, 0], [0, 1, 0]]
    assert not view.relations[:, 5].any()


def test_jax_and_numpy_see_the_same():
    def traced(agents, agent_level, foods, food_level, left):
        return view_of(Field(5, agents, agent_level, foods, food_level, left))

    arrays = [value for name, value in vars(FIELD).items() if name != "size"]
    in_jax = jax.jit(traced)(*map(jnp.asarray, arrays))
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), view_of(FIELD), in_jax)
    dtypes = jax.tree.map(lambda leaf: np.dtype(leaf.dtype).kind, view_of(FIELD))
    assert jax.tree.map(lambda leaf: np.dtype(leaf.dtype).kind, in_jax) == dtypes


def test_the_scene():
    scene = scene_of(5, view_of(FIELD))
    assert [marker and (marker.at, marker.letter) for marker in scene.markers] == [
        ((1.5, 3.5), "1"),
        ((0.5, 4.5), "2"),
        ((4.5, 1.5), "1"),
        ((2.5, 3.5), "2"),
        ((3.5, 1.5), "1"),
        None,
    ]
    assert scene.standing == ("there", "there", "collected")


def test_the_description():
    assert SPEC.entities == 6
    assert SPEC.subtasks == 3
    assert len(SPEC.relations) == view_of(FIELD).relations.shape[-1]
    assert len(SPEC.features) == view_of(FIELD).entities.shape[-1]
    assert isinstance(SPEC, alma.TaskSpec)
