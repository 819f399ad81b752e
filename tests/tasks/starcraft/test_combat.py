"""Fighting against what is known of the game."""

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from helpers.battle import ALL, KIND, orders, place, run, run_story, units

from alma.tasks.starcraft.combat import NOTHING, fight, gather_facts, take_hits, unpack
from alma.tasks.starcraft.rules import Rules
from alma.tasks.starcraft.units import UNITS

SECOND = 16

# Hits to kill, and seconds from the first hit to the last, of units that stand still; Zealots' single hits.
TO_KILL = {
    "marine": {"marine": (8, 6.03), "marauder": (25, 20.66), "stalker": (30, 24.96), "zealot": (29, 24.10)},
    "marauder": {"marine": (5, 6.00), "marauder": (7, 9.00), "stalker": (9, 12.00), "zealot": (17, 24.00)},
    "stalker": {"marine": (5, 5.76), "marauder": (10, 12.96), "stalker": (12, 15.84), "zealot": (17, 23.04)},
    "zealot": {"marine": (6, 2.68), "marauder": (18, 9.88), "stalker": (22, 12.28), "zealot": (21, 12.00)},
}


def beside(first, second):
    """Two units so near that both reach."""
    gap = UNITS[first].radius + UNITS[second].radius + 0.05
    return units((first, 10, 10), (second, 10 + gap, 10))


@pytest.mark.parametrize(
    ("attacker", "target", "hits", "seconds"),
    [(a, t, *TO_KILL[a][t]) for a in TO_KILL for t in TO_KILL[a]],
)
def test_hits_and_time_to_kill(attacker, target, hits, seconds):
    two = beside(attacker, target)
    told, begun = orders(two, 1, targets=[1, NOTHING])
    story = run_story(begun, told, 30 * SECOND, jitter=False)
    left = np.array([float(now.health[1] + now.shield[1]) for now in story])
    when = np.flatnonzero(np.diff(left) < 0)
    assert len(when) == hits
    assert left[-1] == 0
    # Times are in loops, and the second hit of a Zealot comes half a loop late.
    assert (when[-1] - when[0]) / SECOND == pytest.approx(seconds, abs=1.6 / SECOND)


@pytest.mark.parametrize(
    ("winner", "loser", "health", "shield"),
    [
        ("zealot", "marine", 100, 26),
        ("zealot", "stalker", 64, 0),
        ("zealot", "marauder", 82, 0),
        ("marauder", "marine", 90, 0),
        ("stalker", "marine", 80, 38),
    ],
)
def test_duels(winner, loser, health, shield):
    """Both start at once; what is left of the winner, to within one hit of the loser: bolts take time to fly here."""
    two = beside(winner, loser)
    told, begun = orders(two, 1, targets=[1, 0])
    story = run_story(begun, told, 30 * SECOND, jitter=False)
    end = next(now for now in story if float(now.health[1]) == 0)
    one_hit = float(ALL.table.damage[KIND[loser], KIND[winner]])
    assert float(end.health[0] + end.shield[0]) == pytest.approx(health + shield, abs=one_hit)


def test_marauder_and_stalker_are_close():
    told, begun = orders(beside("marauder", "stalker"), 1, targets=[1, 0])
    end = run(begun, told, 30 * SECOND, jitter=False)
    assert min(float(end.health[0]), float(end.health[1])) == 0
    assert max(float(end.health[0]), float(end.health[1])) <= 25


def test_a_stalker_outruns_a_zealot_with_four_steps_to_a_shot_but_not_with_two():
    """Shoot for one step, walk away for so many, over and over: the gap to the Zealot widens or closes."""

    def change(walking):
        now = units(("stalker", 16, 16), ("zealot", 22, 16))
        chase = [NOTHING, 0]
        gaps = []
        for _ in range(3):
            gaps.append(float(now.position[1, 0] - now.position[0, 0]))
            told, now = orders(now, 1, targets=[1, 0])
            now = run(now, told, 8)
            flee = [(now.position[0, 0] - 50, 16.0), None]
            for _ in range(walking):
                told, now = orders(now, 1, targets=chase, goals=flee)
                now = run(now, told, 8)
        return np.diff(gaps).mean()

    # Known: +0.28 and -0.42 a cycle.
    assert change(4) == pytest.approx(0.28, abs=0.1)
    assert change(2) == pytest.approx(-0.42, abs=0.1)


@pytest.mark.parametrize(("kind", "steps"), [("stalker", 9), ("zealot", 11), ("marine", 11), ("marauder", 11)])
def test_the_way_to_the_base(kind, steps):
    one = units((kind, 16, 30), ("marine", 1, 1))
    told, begun = orders(one, 0, goals=[(16.0, 16.0), None])
    story = run_story(begun, told, 8 * 12)
    distance = np.array([float(now.position[0, 1]) - 16 for now in story])
    assert -(-np.argmax(distance <= 2) // 8) == steps


def test_damage_meets_shields_then_armour_and_never_less_than_half():
    """A Marauder's 20 on a Stalker with 5 shield: 5 from the shield, 15 - 1 from health. Four Marines at once: each
    loses its armour point."""
    two = beside("marauder", "stalker")
    two = replace(two, shield=two.shield.at[1].set(5))
    told, begun = orders(two, 1, targets=[1, NOTHING])
    end = run(begun, told, 8)
    assert (float(end.shield[1]), float(end.health[1])) == (0, 80 - 14)

    marines = units(*[("marine", 10, 8 + i) for i in range(4)], ("marauder", 12, 9.5))
    told, begun = orders(marines, 4, targets=[4, 4, 4, 4, NOTHING])
    assert float(run(begun, told, 1).health[4]) == 125 - 4 * 5

    thick = gather_facts(ALL.table._replace(armour=np.full_like(ALL.table.armour, 50)), begun, told)
    assert float(take_hits(thick, unpack(begun), jnp.asarray([4, 4, 4, 4, NOTHING])).health[4]) == 125 - 4 * 0.5


def test_hits_of_one_loop_are_taken_one_after_the_other():
    """Three Marines on a Stalker with 8 shield: 6 and 2 from the shield, then 4 - 1, then 6 - 1 from health."""
    group = units(*[("marine", 10, 9 + i) for i in range(3)], ("stalker", 12, 10))
    group = replace(group, shield=group.shield.at[3].set(8))
    told, begun = orders(group, 3, targets=[3, 3, 3, NOTHING])
    end = run(begun, told, 1)
    assert (float(end.shield[3]), float(end.health[3])) == (0, 80 - 3 - 5)


def test_what_is_dealt_is_what_is_lost():
    """Every unit loses what its attackers' hits come to, and nobody else anything."""
    group = units(("stalker", 10, 10), ("stalker", 10, 12), ("zealot", 14, 11), ("marine", 15, 15))
    told, begun = orders(group, 2, targets=[2, 2, NOTHING, NOTHING])
    story = run_story(begun, told, 60, jitter=False)
    shots = sum(
        int((np.asarray(after.cooldown) > np.asarray(before.cooldown)).sum()) for before, after in pairwise(story)
    )
    flying = int((np.asarray(story[-1].hit_in) > 0).sum())
    lost = 150 - float(story[-1].health[2] + story[-1].shield[2])
    hits = shots - flying
    shielded = -(-50 // 10)
    assert lost == pytest.approx(min(hits, shielded) * 10 + max(hits - shielded, 0) * 9)
    assert float(story[-1].health[3]) == 45


def test_zealots_hit_twice():
    told, begun = orders(beside("zealot", "marine"), 1, targets=[1, NOTHING])
    left = [float(now.health[1]) for now in run_story(begun, told, 10)]
    assert left[1] == 45 - 8
    assert left[5] == 37
    assert left[6] == 29


def test_bolts_fly_and_can_be_wasted():
    far = units(("stalker", 10, 10), ("stalker", 10, 11.5), ("marine", 16.9, 10))
    far = replace(far, health=far.health.at[2].set(5))
    told, begun = orders(far, 2, targets=[2, 2, NOTHING])
    story = run_story(begun, told, 12)
    flight = 6.9 / (18.75 / 16)
    dead_after = next(loop for loop, now in enumerate(story) if float(now.health[2]) == 0)
    assert dead_after == pytest.approx(1 + flight, abs=1)
    assert (np.asarray(story[-1].cooldown[:2]) > 0).all(), "both shot, one of them for nothing"


def test_shields_come_back_after_ten_seconds():
    one = units(("stalker", 10, 10), ("marine", 30, 30))
    one = replace(one, shield=one.shield.at[0].set(20))
    told, begun = orders(one, 1)
    assert float(run(begun, told, 160).shield[0]) == 20
    assert float(run(begun, told, 160 + 32).shield[0]) == pytest.approx(24, abs=0.2)


def test_medivacs_heal_one_at_a_time_for_energy():
    group = units(("medivac", 10, 10), ("medivac", 12, 10), ("marine", 11, 10), ("zealot", 30, 30))
    group = replace(group, health=group.health.at[2].set(20))
    told, begun = orders(group, 3, targets=[2, 2, NOTHING, NOTHING])
    end = run(begun, told, SECOND)
    assert float(end.health[2]) == pytest.approx(29, abs=0.01), "9 a second, however many heal"
    assert float(end.energy[0]) == pytest.approx(50 - 9 * 0.33 + 0.5625, abs=0.15)
    assert float(end.energy[1]) == pytest.approx(50.5625, abs=0.15)
    empty = replace(begun, energy=jnp.zeros_like(begun.energy))
    tired = run(empty, told, SECOND)
    assert 20 < float(tired.health[2]) < 22


def test_a_medivac_keeps_a_marine_alive_against_another():
    group = units(("marine", 10, 10), ("medivac", 9, 10), ("marine", 14, 10))
    told, begun = orders(group, 2, targets=[NOTHING, 0, 0])
    end = run(begun, told, 12 * SECOND)
    assert float(end.health[0]) > 30
    alone, begun = orders(group, 2, targets=[NOTHING, NOTHING, 0])
    assert float(run(begun, alone, 12 * SECOND).health[0]) == 0


def test_who_cannot_hit_air_does_not():
    for kind in ("zealot", "marauder"):
        assert ALL.table.damage[KIND[kind], KIND["medivac"]] == 0
        told, begun = orders(beside(kind, "medivac"), 1, targets=[1, NOTHING])
        assert float(run(begun, told, 40).health[1]) == 150


def test_units_do_not_overlap_and_flyers_fly_over():
    crowd = units(*[("zealot", 10 + 0.01 * i, 10) for i in range(5)], ("medivac", 10, 10))
    told, begun = orders(crowd, 6)
    place = np.asarray(run(begun, told, 60).position)
    distance = np.sqrt(((place[:5, None] - place[None, :5]) ** 2).sum(axis=-1)) + 9 * np.eye(5)
    assert distance.min() > 2 * 0.375 - 0.05
    np.testing.assert_allclose(place[5], [10, 10], atol=1e-3)


def test_our_units_never_fire_unless_ordered():
    told, begun = orders(beside("stalker", "zealot"), 1)
    assert float(run(begun, told, 80).health[1]) == 100


@pytest.mark.parametrize("idle", [False, True])
def test_enemies_pick_the_nearest_and_keep_it(idle):
    group = units(("marine", 10, 10), ("marine", 10, 13), ("stalker", 14, 10.5))
    told, begun = orders(group, 2, picks=[False, False, True], idle=[False, False, idle])
    end = run(begun, told, 2)
    assert int(end.target[2]) == 0
    # The other comes nearer, but the first is still there.
    closer = place(end, 1, 14.0, 12.0)
    assert int(run(closer, told, 2).target[2]) == 0
    away = place(closer, 0, 1.0, 1.0)
    assert int(run(away, told, 2).target[2]) == 1


def test_idle_enemies_answer_and_call_for_help():
    """A Stalker shoots from beyond their sight: who is hit answers, a friend near by helps, one far off does not."""
    group = units(("stalker", 10, 10), ("zealot", 17, 10), ("zealot", 20, 10), ("zealot", 28, 10))
    told, begun = orders(group, 1, targets=[1, NOTHING, NOTHING, NOTHING], picks=[False, True, True, True],
                         idle=[False, True, True, True])  # fmt: skip
    end = run(begun, told, 16)
    assert np.asarray(end.target).tolist() == [1, 0, 0, NOTHING]
    assert float(end.position[1, 0]) < 17


def test_enemy_medivacs_heal_the_most_damaged():
    group = units(("zealot", 1, 1), ("medivac", 10, 10), ("marine", 12, 10), ("marine", 8, 10), ("marine", 20, 10))
    group = replace(group, health=group.health.at[jnp.asarray([2, 3, 4])].set(jnp.asarray([40.0, 20.0, 5.0])))
    told, begun = orders(group, 1, picks=[False, True, False, False, False], idle=[False] * 5)
    end = run(begun, told, 2)
    assert int(end.target[1]) == 3, "the one with 5 left is too far away"
    assert float(end.health[3]) > 20


# ---- fairness


def mirrored(count, seed, pool):
    """The same units on both sides, facing each other."""
    rules = Rules(units=pool)
    rng = np.random.default_rng(seed)
    kinds = [kind for kind in rules.types if UNITS[kind].fights]
    placed = [(kinds[rng.integers(len(kinds))], rng.uniform(8, 14), rng.uniform(10, 22)) for _ in range(count)]
    group = units(*placed, *[(kind, 32 - x, 32 - y) for kind, x, y in placed], rules=rules)
    return rules, orders(group, count, picks=[True] * 2 * count, goals=[(16.0, 16.0)] * 2 * count)


@pytest.mark.parametrize("pool", ["sz", "mmm"])
def test_mirrored_battles_are_even(pool):
    """Many layouts, each fought several times: neither side wins more often than chance allows."""
    rules = Rules(units=pool)
    layouts = [mirrored(5, seed, pool)[1] for seed in range(100)]
    told, begun = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layouts)
    battle = jax.jit(jax.vmap(lambda key, units, told: fight_out(rules, key, units, told)))
    won, decided = 0, 0
    for round_ in range(4):
        alive = np.asarray(battle(jax.random.split(jax.random.key(round_), 100), begun, told)) > 0
        ours, theirs = alive[:, :5].any(axis=1), alive[:, 5:].any(axis=1)
        assert not (ours & theirs).any(), "fought out"
        won, decided = won + (ours & ~theirs).sum(), decided + (ours != theirs).sum()
    assert decided > 200
    assert won / decided == pytest.approx(0.5, abs=3 * 0.5 / np.sqrt(decided))


def test_a_doubled_army_wins():
    rules = Rules(units="sz")
    one = [("stalker", 10, 14), ("zealot", 11, 16), ("stalker", 10, 18)]
    two = [(kind, 22 + i // 3, y + i % 2) for i, (kind, _, y) in enumerate([*one, *one])]
    group = units(*one, *two, rules=rules)
    told, begun = orders(group, 3, picks=[True] * 9, goals=[(16.0, 16.0)] * 9)
    ended = jax.jit(jax.vmap(lambda key: fight_out(rules, key, begun, told)))(jax.random.split(jax.random.key(0), 200))
    assert np.asarray(ended[:, 3:] > 0).any(axis=1).mean() > 0.98


def fight_out(rules, key, begun, told):
    return fight(rules.types, key, begun, told, 60 * SECOND, rules.map_size).health


def test_focused_fire_beats_spread_fire():
    """Three Marines on one after the other, against three that each shoot at another."""
    group = units(*[("marine", 12, 14 + 2 * i) for i in range(3)], *[("marine", 16.2, 14 + 2 * i) for i in range(3)])
    won = 0
    for seed in range(10):
        now = group
        for _ in range(40):
            alive = np.asarray(now.health) > 0
            if not alive[:3].any() or not alive[3:].any():
                break
            foes = np.flatnonzero(alive[3:]) + 3
            weakest = foes[np.argmin(np.asarray(now.health)[foes])]
            friends = np.flatnonzero(alive[:3])
            targets = [weakest] * 3 + [friends[i % len(friends)] for i in range(3)]
            told, now = orders(now, 3, targets=targets)
            now = run(now, told, 8, seed=seed)
        won += bool((np.asarray(now.health[:3]) > 0).any())
    assert won >= 9
