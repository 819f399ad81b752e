"""`alma bench`: how fast things run on this machine."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import tyro
from rich.table import Table

from alma.cli.arguments import PresetOrFile, TaskChoice
from alma.cli.consoles import console, messages
from alma.cli.mirrors import FLAT
from alma.cli.parsing import HELP, read
from alma.runs import runtime
from alma.runs.benchmark import benchmark_environment, benchmark_training
from alma.runs.config import RunConfig
from alma.runs.devices import use_devices
from alma.runs.memory import check_room
from alma.training.preset_file import find_preset
from alma.training.presets import with_actors


@dataclass(frozen=True)
class BenchEnv:
    """Environment steps per second, with random actions, automatic resets and all observations."""

    choice: Annotated[TaskChoice, FLAT]
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        runtime.one_device_per_core()
        result = benchmark_environment(self.choice.make(), report=lambda text: messages.print(text, style="dim"))
        if self.json:
            print(json.dumps(result))
            return
        simulators = "kept" in result["batches"][0]
        table = Table(title=f"{result['task']} on {result['devices']} x {result['device']}")
        of_simulators = ("simulator alone", "kept") if simulators else ()
        for column in ("environments", "steps per second", "slowest - fastest", "compile, s", *of_simulators):
            table.add_column(column, justify="right")
        for batch in result["batches"]:
            spread = f"{batch['slowest']:,} - {batch['fastest']:,}"
            row = [batch["environments"], f"{batch['steps_per_second']:,}", spread, batch["compile_seconds"]]
            if simulators:
                row += [f"{batch['simulator_steps_per_second']:,}", f"{batch['kept']:.0%}"]
            table.add_row(*map(str, row))
        console.print(table)
        console.print(
            f"state {result['state_bytes']} bytes, view {result['view_bytes']} bytes, "
            f"peak memory {result['peak_memory_mb']} MB"
        )


@dataclass(frozen=True)
class BenchTrain:
    """Speed of training: minutes per million environment steps, seconds per update of actors and allocator."""

    choice: Annotated[TaskChoice, FLAT]
    method: str = "alma"
    """Method to train (`alma methods` lists them), or your own as module:NAME."""
    actors: Literal["aqmix", "refil"] | None = None
    """Loss of the actors: the TD loss of the mixed values (aqmix), or also that of REFIL's imagined groups (refil). If
    not given, as the preset has it for the task."""
    preset: PresetOrFile = "fast"
    """Preset of training options."""
    devices: int | None = None
    """Devices to train on: accelerators, or else cores. If not given: as `alma train` has it."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def __post_init__(self) -> None:
        if self.devices is not None and self.devices < 1:
            raise ValueError(f"devices must be at least 1, not {self.devices}")

    def run(self) -> None:
        base, options = find_preset(self.preset, self.choice.task)
        options = with_actors(options, self.actors)
        config = RunConfig(self.choice.task, self.choice.task_options(), self.method, base, options=options)
        devices = use_devices(config, self.devices)
        check_room(config)
        result = benchmark_training(
            config.make_trainer(),
            report=lambda text: messages.print(text, style="dim"),
            devices=devices,
        )
        result = {"preset": self.preset, **result}
        if self.json:
            print(json.dumps(result))
            return
        table = Table(title=f"{result['method']} on {result['task']}, {self.preset}", show_header=False)
        for name, value in result.items():
            table.add_row(name.replace("_", " "), str(value))
        console.print(table)


@dataclass(frozen=True)
class Bench:
    """Measure how fast things run on this machine."""

    what: Annotated[
        Annotated[BenchEnv, tyro.conf.subcommand("env")] | Annotated[BenchTrain, tyro.conf.subcommand("train")],
        FLAT,
    ]

    def run(self) -> None:
        self.what.run()


BENCHMARKS: dict[str, type] = {"env": BenchEnv, "train": BenchTrain}


def read_bench(arguments: list[str]) -> Any:
    """The benchmark that the arguments of `alma bench` ask for."""
    for at, argument in enumerate(arguments):
        if argument in BENCHMARKS:
            return read(BENCHMARKS[argument], arguments[:at] + arguments[at + 1 :], f"alma bench {argument}")
    if set(HELP) & set(arguments):
        return read(Bench, arguments, "alma bench")
    raise ValueError("say what to measure: alma bench env TASK, or alma bench train TASK (see alma bench --help)")
