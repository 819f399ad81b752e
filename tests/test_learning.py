"""Both levels together learn a small task whose best is known."""

import jax
from doors import SMALL, Doors

from alma import check_task
from alma.evaluation import play_episodes
from alma.trainer import Trainer, compile_chunk


def success(trainer, state):
    return play_episodes(trainer.task, trainer.players(state), 512, parallel=512).success.mean()


def test_the_task_itself():
    check_task(Doors(), episodes=4)


def test_two_levels_learn_to_open_the_doors():
    trainer = Trainer(Doors(), SMALL)
    state = trainer.init(jax.random.key(0))
    before = success(trainer, state)
    chunk = compile_chunk(trainer, 160)
    for _ in range(4):
        state, _ = chunk(state)
    after = success(trainer, state)
    assert before < 0.5
    assert after > 0.97
