"""Bookkeeping of episodes: which episode the copy of the simulator on each seat plays, and its steps so far.

An episode is known by a number, and a state of it by the number of steps besides. Only the present state of an episode
can be stepped, since the simulator has gone on from all others.
"""

import os
from collections.abc import Iterable

import numpy as np
from jaxtyping import Int, Integer

EMPTY = -1


class Seats:
    """The episodes of all seats."""

    def __init__(self, count: int) -> None:
        self.episode = np.full(count, EMPTY, np.int64)
        """The episode that is played on each seat; `EMPTY` if none is."""
        self.seed = np.zeros(count, np.int64)
        """The seed of that episode."""
        self.time = np.zeros(count, np.int64)
        """The steps that it has taken."""
        self._used = np.zeros(count, np.int64)
        self._clock = 0
        self._seat_of: dict[int, int] = {}
        # Episodes in the checkpoint of another process must not be taken for episodes of this one.
        self._next = int.from_bytes(os.urandom(3), "big")

    def present(self, episodes: Int[np.ndarray, "N"], times: Int[np.ndarray, "N"]) -> Int[np.ndarray, "N"]:
        """The seats of states that can be stepped; `EMPTY` for the others, and for a state that was there before."""
        self._clock += 1
        found: dict[int, None] = {}
        seats = np.full(len(episodes), EMPTY)
        for row, (episode, time) in enumerate(zip(episodes.tolist(), times.tolist(), strict=True)):
            seat = self._seat_of.get(episode, EMPTY)
            if seat != EMPTY and self.time[seat] == time and seat not in found:
                found[seat] = None
                seats[row] = seat
        self._used[list(found)] = self._clock
        return seats

    def choose(self, count: int) -> Int[np.ndarray, "N"]:
        """Seats for new episodes, of which there must be enough: the first empty ones, then those not used for longest.

        Every seat that was ever used has a copy of the simulator, so empty seats are used again before new ones.
        """
        self._clock += 1
        occupied = self.episode != EMPTY
        order = np.lexsort((np.arange(len(occupied)), np.where(occupied, self._used, 0), occupied))
        chosen = np.sort(order[:count])
        self._used[chosen] = self._clock
        return chosen

    def sit_down(self, seats: Int[np.ndarray, "N"], seeds: Integer[np.ndarray, "N"]) -> Int[np.ndarray, "N"]:
        """Begin new episodes; returns their numbers."""
        self.leave(seats)
        numbers = (self._next + np.arange(len(seats))) % 2**31
        self._next = (self._next + len(seats)) % 2**31
        self.episode[seats], self.seed[seats], self.time[seats] = numbers, seeds, 0
        self._seat_of.update(zip(numbers.tolist(), seats.tolist(), strict=True))
        return numbers

    def leave(self, seats: Iterable) -> None:
        """Mark these seats as empty: their episodes are over, or lost."""
        for seat in seats:
            self._seat_of.pop(int(self.episode[seat]), None)
            self.episode[seat] = EMPTY
