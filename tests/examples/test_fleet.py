"""The delivery fleet of the guide to simulators."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import alma
from examples.fleet import Fleet

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "simulators.md").read_text()


def fleet_of(vehicle, customer, comes, deadline):
    """A fleet on a map that is set up by hand, and what can be seen of it."""
    fleet = Fleet(vehicles=len(vehicle), orders=len(customer))
    fleet.reset(0)
    fleet.vehicle, fleet.customer = np.array(vehicle), np.array(customer)
    fleet.comes, fleet.deadline = np.array(comes), np.array(deadline)
    return fleet, fleet.view()


def test_the_guide_shows_these_files():
    [code, _] = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
    assert code == (ROOT / "examples" / "fleet.py").read_text()
    [preset] = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert preset == (ROOT / "examples" / "simulators.toml").read_text()


def test_the_contract_is_kept():
    task = alma.make("examples.fleet:Fleet", vehicles=2, orders=4, workers=1)
    alma.check_task(task, episodes=2, steps=30)
    task.close()


def test_orders_are_delivered_or_missed():
    """The first customer is two cells away, the second one too far, the third comes later."""
    fleet, view = fleet_of([(0, 0), (9, 9)], [(0, 2), (0, 9), (9, 8)], comes=[0, 0, 2], deadline=[2, 1, 3])
    assert view.active.tolist() == [True, True, False]
    _, outcome = fleet.step(np.array([1, 0]))
    assert (outcome.reward, outcome.finished.tolist()) == (0, [False, True, False])  # the second order is late
    view, outcome = fleet.step(np.array([1, 0]))
    assert outcome.reward == 2
    np.testing.assert_allclose(outcome.subtask_rewards, [2.2, 0, 0])
    assert view.active.tolist() == [False, False, True]
    assert not outcome.terminated
    _, outcome = fleet.step(np.array([0, 3]))
    assert outcome.terminated
    assert not outcome.success  # one was late
    assert fleet.vehicle.tolist() == [[0, 2], [9, 8]]


def test_relations_tell_how_far_and_whether_there_is_time():
    _, view = fleet_of([(0, 0), (9, 9)], [(0, 2), (3, 0)], comes=[0, 5], deadline=[4, 9])
    assert (view.relations[:, 2] * 10).round(4).tolist() == [[2, 2], [16, -12]]
    assert not view.relations[:, 3].any()  # has not come yet
    assert not view.entities[3].any()
    assert (view.entities[2] * [1, 1, 10, 10, 10]).round(4).tolist() == [0, 1, 4, 0, 2]


def test_the_closest_two_come_first():
    fleet, view = fleet_of([(0, 0), (0, 1), (2, 9)], [(0, 2), (0, 9)], comes=[0, 0], deadline=[9, 9])
    rule = fleet.rules["closest-first"]
    assert rule(view).tolist() == [alma.NOBODY, 0, 1]
    assert fleet.scripts["drive"](None, view, jnp.array([alma.NOBODY, 0, 1])).tolist() == [0, 1, 2]


def test_the_scene_of_the_guide_shows_who_is_where():
    named = {"alma": alma}
    exec(re.findall(r"```python\n(def scene.*?)```", GUIDE, re.DOTALL)[0], named)
    fleet, view = fleet_of([(3, 0)], [(0, 2), (9, 9)], comes=[0, 5], deadline=[4, 9])
    markers = named["scene"](fleet, view).markers
    assert [marker and (marker.name, marker.at) for marker in markers] == [
        ("vehicle", (3.5, 0.5)),
        ("customer", (0.5, 2.5)),
        None,
    ]
