"""The paper's table, value by value, and that nonsense is refused."""

from dataclasses import replace

import jax
import pytest

import alma
from alma.actors.options import ActorNetworkOptions
from alma.learning.schedules import Linear
from alma.training.methods import METHODS, params_like
from alma.training.options import CollectionOptions
from alma.training.presets import FAST, LONG, PAPER, preset, with_actors
from alma.training.trainer import Trainer


def test_the_paper():
    actors, allocator, collection = PAPER.actors, PAPER.allocator, PAPER.collection
    for level in (actors, allocator):
        assert (level.learning_rate, level.final_rate, level.optimiser, level.clip) == (5e-4, 1.0, "rmsprop", 10)
        assert (level.gamma, level.target_rate, level.popart, level.reward_scale) == (0.99, 1.0, True, 1.0)
    assert (actors.batch, actors.window, actors.n_step, actors.target_episodes) == (32, 64, 1, 200)
    assert (actors.ends, actors.next_allocation) == ("subtask", "kept")
    networks = actors.networks
    assert networks.offsets == "absolute"
    assert (networks.trunk, networks.relations, networks.places, networks.mixer, networks.mixing) == (
        "attention", False, True, "qmix", "softmax",
    )  # fmt: skip
    assert (networks.width, networks.heads, networks.hidden) == (128, 4, 64)
    assert (networks.mixer_width, networks.hyper_width) == (32, 128)
    assert (allocator.batch, allocator.proposals, allocator.variations) == (400, 32, 0)
    assert (allocator.period, allocator.entropy, allocator.entropy_proposals) == (5, 0.01, 32)
    assert (allocator.n_step, allocator.updates) == (1, 1)
    assert (allocator.max_age, allocator.target_episodes) == (150_000, 50)
    assert (allocator.networks.kind, allocator.networks.width, allocator.networks.heads) == ("pointer", 128, 4)
    assert (allocator.networks.relations, allocator.networks.places) == (False, True)
    assert (collection.environments, collection.buffer, collection.episodes_per_update) == (8, 5000 * 150, 1)
    assert collection.steps_per_update == collection.environments, "or short episodes would not get their updates"
    assert PAPER.exploration.action == Linear(1.0, 0.05, 2_000_000)
    assert PAPER.exploration.proposal == Linear(1.0, 0.05, 3_000_000)
    assert PAPER.exploration.subtask == Linear(1.0, 0.0, 750_000)
    assert PAPER.exploration.persistence == 0
    assert (PAPER.steps, PAPER.play) == (15_000_000, "live")


@pytest.mark.parametrize("name", ["fast", "long", "faithful", "paper"])
@pytest.mark.parametrize("method", METHODS)
def test_presets_fit_every_method(name, method):
    trainer = Trainer(alma.make("save-the-city"), preset(name), method)
    assert params_like(trainer.team, trainer.task)


@pytest.mark.parametrize("method", ["alma", "copa"])
def test_starcraft_can_be_trained_on(method):
    """Traced, not run: shapes and dtypes fit all the way."""
    trainer = Trainer(alma.make("starcraft"), preset("tiny", "starcraft"), method)
    state = jax.eval_shape(trainer.init, jax.random.key(0))
    after, metrics = jax.eval_shape(lambda state: trainer.chunk(state, 2), state)
    assert jax.tree.structure(after) == jax.tree.structure(state)
    assert "imagined_loss" in metrics


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda: ActorNetworkOptions(width=30), "width must be a multiple of the 4 heads"),
        (lambda: ActorNetworkOptions(relations=False), "without relations, networks need places"),
        (lambda: replace(FAST.allocator.networks, relations=False), "without relations, networks need places"),
        (lambda: replace(FAST.allocator.networks, relations=False, places=True), "pair networks are made of relations"),
        (lambda: replace(FAST.actors, gamma=1.5), "gamma must lie between 0 and 1"),
        (lambda: replace(FAST.actors, n_step=0), "n_step must be at least 1"),
        (lambda: replace(FAST.actors, imagination=1.5), "imagination must lie between 0 and 1"),
        (
            lambda: replace(FAST.actors, imagination=0.5, networks=ActorNetworkOptions(mixer="independent")),
            "imagined groups need a mixer",
        ),
        (lambda: replace(FAST.allocator, target_rate=0.0), "target_rate must lie in"),
        (lambda: replace(FAST.allocator, entropy_proposals=17), "entropy_proposals must lie between 0 and the 16"),
        (lambda: CollectionOptions(steps_per_update=200), "steps_per_update must be a multiple of the 128"),
        (lambda: CollectionOptions(buffer=5), "buffer must be at least the number of environments"),
        (lambda: replace(FAST, steps=0), "steps must lie between 1 and 2000000000, not 0"),
        (lambda: replace(FAST, actors=replace(FAST.actors, window=500)), "warmup must be at least 65280 steps"),
        (lambda: replace(FAST, allocator=replace(FAST.allocator, period=80)), "warmup must be at least 20480 steps"),
        (lambda: replace(FAST, allocator=replace(FAST.allocator, max_age=1000)), "max_age must be more than 1280"),
        (lambda: replace(FAST.allocator, updates=0), "updates must be at least 1"),
        (
            lambda: replace(FAST, allocator=replace(FAST.allocator, n_step=2000)),
            "n_step must be at most the 1024 decisions kept for each environment",
        ),
        (
            lambda: replace(FAST, collection=replace(FAST.collection, buffer=1024)),
            "buffer must be at least 1408 steps, for windows of 6",
        ),
        (lambda: replace(FAST.allocator, period=20_000), "period must be at most 10000"),
        (lambda: replace(FAST.allocator, play_period=-1), "play_period must be a number of steps, or 0"),
        (lambda: replace(FAST.allocator, play_candidates=0), "play_candidates must be at least 1, not 0"),
        (lambda: replace(FAST, steps=3_000_000_000), "steps must lie between 1 and 2000000000, not 3"),
        (lambda: replace(FAST.actors.networks, heads=0), "heads must be at least 1, not 0"),
        (lambda: replace(FAST.actors.networks, width=-4), "width must be at least 1, not -4"),
        (lambda: replace(FAST.actors.networks, aim=-1), "aim must be at least 0, not -1"),
        (lambda: replace(FAST.allocator.networks, choice_width=0), "choice_width must be at least 1, not 0"),
        (lambda: replace(FAST.actors, clip=0.0), "clip must be positive, not 0.0"),
        (lambda: replace(FAST.actors, reward_scale=float("nan")), "reward_scale must be positive, not nan"),
        (lambda: replace(FAST.allocator, learning_rate=float("inf")), "learning_rate must be positive, not inf"),
        (lambda: replace(FAST.allocator, entropy=-1.0), "entropy must be at least 0, not -1"),
        (lambda: replace(FAST.exploration, action=Linear(7.0, 0.0, 10)), "action must start and end between 0 and 1"),
        (lambda: replace(FAST.exploration, persistence=1.0), "persistence must lie in"),
        (lambda: replace(FAST.report, checkpoint_minutes=0.0), "checkpoint_minutes must be positive"),
    ],
)
def test_nonsense_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        change()


def test_actors_are_the_papers_choice_for_the_task_unless_chosen():
    assert preset("fast", "save-the-city") == preset("fast") == FAST
    assert preset("fast", "starcraft").actors.imagination == 0.5
    assert with_actors(FAST, "refil").actors.imagination == 0.5
    assert with_actors(preset("fast", "starcraft"), "aqmix").actors.imagination == 0
    own = replace(FAST, actors=replace(FAST.actors, imagination=0.3))
    assert with_actors(own, None) == with_actors(own, "refil") == own


def test_long_learns_like_fast():
    """Networks, discounts, updates and what is remembered are the same, on either task."""
    for task in ("save-the-city", "starcraft"):
        fast, long = preset("fast", task), preset("long", task)
        assert long.actors.networks == fast.actors.networks
        assert long.actors.batch * long.actors.window == fast.actors.batch
        assert (long.actors == fast.actors) is (task == "save-the-city"), "in battles from lambda-returns"
        assert replace(long.allocator, play_period=0, play_candidates=1) == fast.allocator
        assert long.collection == fast.collection
        assert long.steps >= 4 * fast.steps
        assert long.play == "average"
    assert (LONG.allocator.period, LONG.allocator.play_period, LONG.allocator.play_candidates) == (5, 2, 4)


@pytest.mark.parametrize("name", ["fast", "long"])
def test_the_allocator_looks_further_ahead_in_battles(name):
    allocator = preset(name, "starcraft").allocator
    assert (allocator.gamma, allocator.n_step, allocator.updates, allocator.target_rate) == (0.99, 3, 4, 0.05)


def test_faithful_has_the_papers_networks_and_losses():
    """And relations to see by, on both levels."""
    for task in ("save-the-city", "starcraft"):
        ours, paper = preset("faithful", task), preset("paper", task)
        assert ours.actors.networks == replace(paper.actors.networks, relations=True)
        assert ours.allocator.networks == replace(paper.allocator.networks, relations=True)
        for name in ("popart", "ends", "next_allocation", "imagination"):
            assert getattr(ours.actors, name) == getattr(paper.actors, name)
        for name in ("popart", "proposals", "variations", "entropy", "entropy_proposals", "period", "max_age"):
            assert getattr(ours.allocator, name) == getattr(paper.allocator, name)
        assert ours.collection.environments == preset("fast", task).collection.environments
        assert ours.exploration == preset("fast", task).exploration


def test_the_paper_on_starcraft():
    options = preset("paper", "starcraft")
    assert (options.steps, options.allocator.period, options.actors.imagination) == (10_000_000, 3, 0.5)
    assert options.exploration.action == Linear(1.0, 0.05, 500_000)
    assert options.exploration.proposal == Linear(1.0, 0.05, 2_000_000)
    assert options.exploration.subtask == Linear(1.0, 0.0, 500_000)
    assert (
        replace(
            options,
            steps=PAPER.steps,
            allocator=PAPER.allocator,
            actors=PAPER.actors,
            exploration=PAPER.exploration,
        )
        == PAPER
    )
    with pytest.raises(ValueError, match="unknown preset 'slow': choose from fast"):
        preset("slow")
