"""Recordings as small JSON data for the page.

Most entries are *columns*: one value per frame. A column is cut off where it no longer changes, and its last value
holds from there on. Numbers are rounded to what is visible.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from alma.task.scene import Marker, Scene
from alma.task.task import Task
from alma.task.view import NOBODY
from alma.viewer.colours import colour_data
from alma.viewer.record import Recording

Json = dict[str, Any]


@dataclass(frozen=True)
class TeamLabels:
    """The names of a team, for headings."""

    label: str = ""
    """The name of the run, and of who acts in place of its actors."""
    method: str = ""
    allocator: str = ""
    """The name of the allocator, if it is not the run's own."""


def team_labels(name: str, method: str, actors: str = "", allocator: str = "") -> TeamLabels:
    """The labels of a run's team; `actors` and `allocator` name what replaces its own, if anything does."""
    return TeamLabels(f"{name}, actors: {actors}" if actors else name, method, allocator)


@dataclass(frozen=True)
class Side:
    """A team and its recorded episodes; a page shows one side, or two next to each other."""

    labels: TeamLabels
    recordings: list[Recording]

    @property
    def note(self) -> str:
        """A remark on what cannot be shown for this team, and why; empty if everything can."""
        first = self.recordings[0].frames
        if np.all(first.allocation == NOBODY):
            return "This team gives nobody a subtask: agents have no colours, and decisions show nothing."
        if first.candidates is None:
            return "Who allocates here has no critic: decisions show what was allocated, not what was considered."
        return ""


def page_data(task: Task, sides: Sequence[Side], seed: int) -> Json:
    """The data of a page."""
    spec = task.spec
    return {
        "task": spec.name,
        "seed": seed,
        "agents": spec.agents,
        "subtasks": spec.subtasks,
        "actions": list(spec.actions),
        "colours": colour_data(),
        "sides": [
            {
                "label": side.labels.label,
                "method": side.labels.method,
                "allocator": side.labels.allocator,
                "note": side.note,
                "episodes": [episode_data(task, recording) for recording in side.recordings],
            }
            for side in sides
        ],
    }


def episode_data(task: Task, recording: Recording) -> Json:
    """The data of one episode."""
    frames, length = recording.frames, recording.length
    view, outcome = frames.view, frames.outcome
    return {
        "length": length,
        "success": recording.success,
        "total": rounded(recording.total),
        "present": columns(np.asarray(view.present).astype(int)),
        "active": columns(np.asarray(view.active).astype(int)),
        "allocation": columns(frames.allocation),
        "subtask": columns(view.subtask),
        "actions": columns(frames.actions[:length]),
        "reward": rounded(outcome.reward[:length]),
        "subtask_rewards": rounded(np.asarray(outcome.subtask_rewards)[:length].T),
        "decisions": [_decision_data(recording, step) for step in recording.decisions],
        "completions": recording.completions,
        "deaths": recording.deaths,
        "ratings": _rating_data(recording),
        "sees": _sight_data(recording),
        "scene": _scene_data([task.scene(recording.state(step)) for step in range(length + 1)]),
    }


# ---- parts


def _decision_data(recording: Recording, step: int) -> Json:
    """A decision with its candidates: each allocation once, the best first."""
    candidates = recording.frames.candidates
    decision: Json = {"step": step, "why": recording.why(step)}
    if candidates is None:
        return decision
    allocations, values, counts = distinct(*(np.asarray(part)[step] for part in candidates))
    return {
        **decision,
        "options": allocations.tolist(),
        "values": rounded(values),
        "counts": counts.tolist(),
    }


def distinct(
    allocations: Int[np.ndarray, "P A"], values: Float[np.ndarray, "P"]
) -> tuple[Int[np.ndarray, "O A"], Float[np.ndarray, "O"], Int[np.ndarray, "O"]]:
    """The distinct allocations, in order of falling value, with their values and how many of the candidates each is.

    The first row of the inputs is the allocation that was taken; it is not counted as a candidate.
    """
    different, first, index = np.unique(allocations, axis=0, return_index=True, return_inverse=True)
    counts = np.bincount(index.reshape(-1)[1:], minlength=len(different))
    order = np.argsort(-values[first], kind="stable")
    return different[order], values[first][order], counts[order]


def _rating_data(recording: Recording) -> list | None:
    """For each agent and step, one flat row: action, utility and target of every available action."""
    found = recording.frames.action_values
    if found is None:
        return None
    values = np.round(np.asarray(found.values, float), 3).tolist()
    target, available = np.asarray(recording.frames.view.target).tolist(), np.asarray(found.available)

    def row(step: int, agent: int) -> list[float]:
        actions = np.flatnonzero(available[step, agent]).tolist()
        return [number for u in actions for number in (u, values[step][agent][u], target[step][agent][u])]

    return [[row(step, agent) for step in range(recording.length)] for agent in range(available.shape[1])]


def _sight_data(recording: Recording) -> list | None:
    """For each agent, a column of strings with a 0 or a 1 for each entity: whether the agent attends to it."""
    found = recording.frames.action_values
    if found is None:
        return None
    sees = np.asarray(found.sees).astype(int)
    return [column("".join(map(str, row)) for row in sees[: recording.length, agent]) for agent in range(sees.shape[1])]


def _scene_data(scenes: Sequence[Scene | None]) -> Json | None:
    """The scenes of an episode: constant properties once, the others as columns; None if the task has no scenes."""
    known = whole(scenes)
    if not known:
        return None
    first = known[0]
    return {
        "size": rounded(first.size),
        "grid": first.grid,
        "subtask": first.subtask,
        "standing": [column(standing) for standing in zip(*(scene.standing for scene in known), strict=True)],
        "markers": [_marker_data(markers) for markers in zip(*(scene.markers for scene in known), strict=True)],
        "places": [
            {
                "at": rounded(places[0].at, 2),
                "radius": rounded(places[0].radius),
                "subtask": places[0].subtask,
                "label": column(place.label for place in places),
            }
            for places in zip(*(scene.places for scene in known), strict=True)
        ],
        "lines": column([[int(line.start), int(line.end), line.kind] for line in scene.lines] for scene in known),
    }


def whole(scenes: Sequence[Scene | None]) -> list[Scene]:
    """The scenes of an episode; empty if the task has none. Raises a ValueError if some are missing."""
    known = [scene for scene in scenes if scene is not None]
    if known and len(known) < len(scenes):
        missing = next(step for step, scene in enumerate(scenes) if scene is None)
        raise ValueError(f"the task has no scene at step {missing}: give one for every state, or None for all of them")
    return known


def _marker_data(markers: Sequence[Marker | None]) -> Json | None:
    """One entity over all frames; while it is absent, its last properties are repeated."""
    seen = [marker for marker in markers if marker is not None]
    if not seen:
        return None
    last, lived = seen[0], []
    for marker in markers:
        last = marker or last
        lived.append(last)
    first = seen[0]
    return {
        "name": first.name,
        "shape": first.shape,
        "radius": rounded(first.radius),
        "letter": first.letter,
        "x": column(short(marker.at[0], 2) for marker in lived),
        "y": column(short(marker.at[1], 2) for marker in lived),
        "bars": {name: column(short(marker.bars[name], 2) for marker in lived) for name in first.bars},
        "icons": {name: column(short(marker.icons[name], 2) for marker in lived) for name in first.icons},
        "status": column(marker.status for marker in lived),
    }


# ---- small data


def column(values: Iterable[Any]) -> list[Any]:
    """Values over time, without repetitions of the last value at the end."""
    kept = list(values)
    while len(kept) > 1 and kept[-1] == kept[-2]:
        kept.pop()
    return kept


def columns(rows: Any) -> list[list[Any]]:
    """The columns of a table whose rows are frames."""
    return [column(values) for values in np.asarray(rows).T.tolist()]


def rounded(values: Any, digits: int = 3) -> Any:
    """An array of any shape as nested lists of rounded numbers."""
    array = np.asarray(values, float)
    if array.ndim:
        return [rounded(value, digits) for value in array]
    return short(float(array), digits)


def short(value: float, digits: int = 3) -> float | int:
    """A rounded number; an integer if it is whole."""
    value = round(float(value), digits)
    return int(value) if value.is_integer() else value
