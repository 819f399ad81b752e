import jax.numpy as jnp
import numpy as np
import pytest

from alma.nn.popart import Plain, PopArt

RAW = jnp.asarray([-1.0, 0.5, 3.0])
TARGETS = jnp.asarray([10.0, 12.0, 40.0])
WEIGHT = jnp.asarray([1.0, 1.0, 0.0])


def test_the_first_targets_set_the_statistics():
    """At once and wholly; scale and shift stay, so that outputs count as normalised from the beginning."""
    head = PopArt()
    params = head.adapt(head.init(), TARGETS, WEIGHT)
    assert float(params["mean"]) == 11
    assert float(params["square"] - params["mean"] ** 2) == pytest.approx(1)
    assert (float(params["log_scale"]), float(params["shift"])) == (0, 0)
    np.testing.assert_allclose(head.value(params, RAW), 11 + RAW, rtol=1e-6)
    later = head.adapt(params, TARGETS + 100, WEIGHT)
    assert float(later["mean"]) == pytest.approx(11 + 0.01 * 100)


def test_values_stay_what_they_were_when_statistics_move():
    head = PopArt(rate=0.3)
    params = head.adapt(head.init(), TARGETS - 5, WEIGHT)
    for _ in range(20):
        moved = head.adapt(params, TARGETS, WEIGHT)
        np.testing.assert_allclose(head.value(moved, RAW), head.value(params, RAW), rtol=1e-4, atol=1e-4)
        params = moved
    assert float(params["mean"]) == pytest.approx(11, abs=0.1), "what has no weight is not noticed"
    assert float(params["square"] - params["mean"] ** 2) == pytest.approx(1, abs=0.3)


def test_errors_are_in_units_of_the_deviation():
    head = PopArt()
    params = {**head.init(), "mean": jnp.float32(10), "square": jnp.float32(104)}  # deviation 2
    np.testing.assert_allclose(head.value(params, RAW), 10 + 2 * RAW, rtol=1e-6)
    np.testing.assert_allclose(head.error(params, RAW, head.value(params, RAW)), 0, atol=1e-6)
    np.testing.assert_allclose(head.error(params, RAW, head.value(params, RAW) + 4), -2, rtol=1e-5)


def test_nothing_to_learn_from_changes_nothing():
    head = PopArt()
    params = head.init()
    assert head.adapt(params, TARGETS, jnp.zeros(3)) == params


def test_values_rise_with_the_output():
    head = PopArt()
    params = {**head.init(), "log_scale": jnp.float32(-4.0)}
    assert (np.diff(head.value(params, RAW)) > 0).all()


def test_plain_is_the_output_itself():
    head = Plain()
    np.testing.assert_array_equal(head.value(head.init(), RAW), RAW)
    np.testing.assert_array_equal(head.error({}, RAW, TARGETS), RAW - TARGETS)
    assert head.adapt({}, TARGETS, WEIGHT) == {}
