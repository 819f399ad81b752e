import jax
import jax.numpy as jnp
import numpy as np

from alma.task.keys import integers_as_keys, keys_as_integers


def test_random_keys_become_integers_and_keys_again():
    tree = {"key": jax.random.split(jax.random.key(3), 2), "steps": jnp.arange(4), "nothing": None}
    integers = keys_as_integers(tree)
    assert integers["key"].shape == (2, 2)
    assert integers["key"].dtype == jnp.uint32
    np.testing.assert_array_equal(integers["steps"], np.arange(4))
    again = integers_as_keys(integers, tree)
    assert again["key"].dtype == tree["key"].dtype
    assert jnp.array_equal(again["key"], tree["key"])
