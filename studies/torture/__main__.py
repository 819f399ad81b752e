"""The campaign: `make torture`, or `PYTHONPATH=studies python -m torture --only fuzz --files 200`."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# Before JAX is imported: programs compile in half the time, and libraries start no threads before the forks.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1",
)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")


SUBJECTS = ("alma", "flat", "starcraft", "two-processes")
"""The kinds of runs in `kills.py`, which imports JAX."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="parts to run")
    parser.add_argument("--kills", type=int, default=100, help="runs to kill, half of them inside of a save")
    parser.add_argument(
        "--subjects",
        nargs="+",
        choices=SUBJECTS,
        default=SUBJECTS,
        help="kinds of runs to kill",
    )
    parser.add_argument("--files", type=int, default=2_000, help="mutated files of each kind")
    parser.add_argument("--kinds", nargs="+", help="kinds of files to mutate, by their names; if not given, all")
    parser.add_argument("--writes", type=int, default=400, help="most writes to fail")
    parser.add_argument("--lines", type=int, default=300, help="command lines of each kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, help="where to work; if not given, in a temporary folder")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="torture-") as temporary:
        folder = (chosen.folder or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("ALMA_CACHE", str(folder / "cache"))
        began = time.monotonic()
        failures = sum(PARTS[name](folder, chosen) for name in chosen.only)
        print(f"\n{failures} failures in {(time.monotonic() - began) / 60:.1f} minutes")
    sys.exit(failures > 0)


def show(head: Sequence[str], rows: Sequence[Any]) -> int:
    """Print a table in Markdown, and below it what failed; returns how many did."""
    lines = [head, ["---"] * len(head), *(row.row for row in rows)]
    print("\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines), flush=True)
    failures = [text for row in rows for text in getattr(row, "failures", ())]
    for text in failures[:50]:
        print(f"- {text}", flush=True)
    return len(failures)


def apart(folder: Path, name: str, work: Callable[[], int]) -> int:
    """Do something in a process of its own, so that this one never starts JAX."""
    from torture.runs import fork

    def report() -> None:
        (folder / f"{name}.failures").write_text(str(work()))

    (folder / f"{name}.out").unlink(missing_ok=True)  # of another time
    code = fork(report, folder / f"{name}.out").wait()
    print((folder / f"{name}.out").read_text(), end="", flush=True)
    if code:
        print(f"- {name}: its process ended with {code}")
        return 1
    return int((folder / f"{name}.failures").read_text())


def kills(folder: Path, chosen: argparse.Namespace) -> int:
    from torture import kills

    return show(
        kills.HEAD, kills.torture(folder, chosen.kills, round(0.5 * chosen.kills), chosen.seed, chosen.subjects)
    )


def fuzz(folder: Path, chosen: argparse.Namespace) -> int:
    from alma.runs.folder import RunFolder
    from torture import fuzz
    from torture.runs import finish, small

    run = RunFolder(folder / "fuzzed")
    if not run.result.exists():  # it may be there from another time
        run.create(small("alma", 4))
        finish(run, 1, "")
    (folder / "files").mkdir(exist_ok=True)

    def work() -> int:
        kinds = [kind for kind in fuzz.kinds(run, folder / "files") if kind.name in (chosen.kinds or [kind.name])]
        return show(fuzz.HEAD, [fuzz.fuzz(kind, chosen.files, chosen.seed) for kind in kinds])

    return apart(folder, "fuzz", work)


def disk(folder: Path, chosen: argparse.Namespace) -> int:
    from torture import disk

    def work() -> int:
        rows = [
            disk.torture(folder / "writes", chosen.writes),
            disk.torture_real(folder / "small", chosen.writes // 20),
        ]
        if rows[1] is None:
            print("\nno small file system could be mounted here, which takes root: left out")
        return show(disk.HEAD, [row for row in rows if row])

    return apart(folder, "disk", work)


def arguments(folder: Path, chosen: argparse.Namespace) -> int:
    from torture import arguments

    def work() -> int:
        rows = [arguments.ordered(chosen.lines, chosen.seed), arguments.nonsense(chosen.lines, chosen.seed)]
        return show(arguments.HEAD, rows)

    return apart(folder, "arguments", work)


PARTS = {"arguments": arguments, "kills": kills, "fuzz": fuzz, "disk": disk}

if __name__ == "__main__":
    main()
