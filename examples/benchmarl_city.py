"""BenchMARL on a task of alma: an algorithm of another library learns SaveTheCity through PettingZoo.

pip install 'alma-marl[pettingzoo]' benchmarl
python -m examples.benchmarl_city --algorithm mappo --frames 24000
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarl.algorithms import algorithm_config_registry
from benchmarl.environments.pettingzoo.common import PettingZooClass
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig
from torchrl.envs import EnvBase, PettingZooWrapper

from alma.pettingzoo import parallel_env


class AlmaTask(PettingZooClass):
    """A task of alma for BenchMARL. The configuration holds the arguments of `alma.pettingzoo.parallel_env`."""

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        def make() -> EnvBase:
            env = parallel_env(self.name, fixed_team=True, **self.config)
            return PettingZooWrapper(env, return_state=True, seed=seed, device=device)

        return make

    def supports_continuous_actions(self) -> bool:
        return False

    def supports_discrete_actions(self) -> bool:
        return True

    def has_state(self) -> bool:
        return True

    def has_render(self, env: EnvBase) -> bool:
        return False

    def max_steps(self, env: EnvBase) -> int:
        return env.unwrapped.task.spec.max_steps

    @staticmethod
    def env_name() -> str:
        return "alma"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="save-the-city")
    parser.add_argument("--algorithm", default="mappo", choices=sorted(algorithm_config_registry))
    parser.add_argument("--allocator", default="heuristic", help="who allocates meanwhile")
    parser.add_argument("--frames", type=int, default=24_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmarl"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)

    config = ExperimentConfig.get_from_yaml()
    config.max_n_frames = asked.frames
    config.on_policy_collected_frames_per_batch = config.off_policy_collected_frames_per_batch = 3_000
    config.off_policy_n_optimizer_steps = 100
    config.lr = 3e-4
    config.evaluation_interval, config.evaluation_episodes = 6_000, 20
    config.loggers, config.save_folder = ["csv"], str(asked.out.absolute())
    Experiment(
        task=AlmaTask(asked.task, {"allocator": asked.allocator}),
        algorithm_config=algorithm_config_registry[asked.algorithm].get_from_yaml(),
        model_config=MlpConfig.get_from_yaml(),
        critic_model_config=MlpConfig.get_from_yaml(),
        seed=asked.seed,
        config=config,
    ).run()


if __name__ == "__main__":
    main()
