import jax.numpy as jnp
import pytest

from alma.learning.schedules import Linear


@pytest.mark.parametrize(("steps", "value"), [(0, 1.0), (50, 0.75), (100, 0.5), (1000, 0.5)])
def test_linear(steps, value):
    assert float(Linear(1.0, 0.5, 100)(jnp.int32(steps))) == pytest.approx(value)


def test_a_schedule_takes_time():
    with pytest.raises(ValueError, match="at least 1 step"):
        Linear(1.0, 0.0, 0)
