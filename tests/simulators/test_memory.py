import jax
import numpy as np
from helpers.simulators import PyDoors

from alma.simulators.memory import SharedFile, memory_shapes, memory_size, open_memory, smallest_int, view_shapes


def test_dtypes_are_the_smallest_that_hold_everything():
    assert [smallest_int(count) for count in (1, 128, 129, 40_000)] == [np.int8, np.int8, np.int16, np.int32]
    view = view_shapes(PyDoors(agents=2, doors=200).spec)
    assert (view.subtask.dtype, view.target.dtype) == (np.int16, np.int16)
    assert (view.present.dtype, view.entities.dtype) == (np.bool_, np.float32)


def test_arrays_do_not_overlap_and_are_shared():
    doors = PyDoors()
    shapes = memory_shapes(doors.spec, doors.metrics, seats=3, workers=2)
    file = SharedFile(memory_size(shapes))
    ours, theirs = open_memory(file.path, shapes), open_memory(file.path, shapes)
    leaves = jax.tree.leaves(ours)
    for number, leaf in enumerate(leaves):
        leaf[...] = number % 2 if leaf.dtype == bool else number
    for number, leaf in enumerate(jax.tree.leaves(theirs)):
        assert (leaf == (number % 2 if leaf.dtype == bool else number)).all()
    file.close()
