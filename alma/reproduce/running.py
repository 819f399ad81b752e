"""The runs that figures need."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from alma.launch.job import Job
from alma.reproduce.figures import Arm, Case, Figure
from alma.runs.folder import RunFolder


@dataclass(frozen=True)
class Budget:
    """Preset, seeds and steps of the runs of a figure."""

    preset: str = "fast"
    seeds: tuple[int, ...] | None = None
    """None: the default seeds of the figure."""
    steps: int | None = None
    """None: the steps of the preset."""

    def seeds_of(self, figure: Figure, arm: Arm) -> tuple[int, ...]:
        """The given seeds; by default as many as the figure has, or fewer if the arm has fewer."""
        return self.seeds or tuple(range(min(figure.seeds, arm.seeds or figure.seeds)))

    def points_of(self, figure: Figure, case: Case) -> list[tuple[int, int]]:
        """For each point of a case, the seeds of the run that acts and of the run that allocates.

        Empty for a case with the allocator of another seed if there is only one seed.
        """
        seeds = self.seeds_of(figure, case.arm)
        if not case.other_seed:
            return [(seed, seed) for seed in seeds]
        return [(seed, other) for seed, other in zip(seeds, seeds[1:] + seeds[:1], strict=True) if seed != other]


def plan(figures: Iterable[Figure], budget: Budget, out: Path) -> list[Job]:
    """The runs that figures need, each once, in the order of seeds: so that early on, all methods have some results."""
    found: dict[str, tuple[int, Job]] = {}
    for figure in figures:
        if misfit := figure.misfit(budget.preset, budget.steps):
            raise ValueError(misfit)
        for arm in figure.arms:
            for seed in budget.seeds_of(figure, arm):
                name = arm.run_name(budget.preset, seed)
                run = Job(RunFolder(out / "runs" / name), arm.config(budget.preset, seed, budget.steps))
                _, planned = found.setdefault(name, (seed, run))
                if planned.config != run.config:  # groups of options stand in names as their types alone
                    raise ValueError(f"two different runs of {figure.name} would be called {name}")
    return [run for _, run in sorted(found.values(), key=lambda entry: entry[0])]
