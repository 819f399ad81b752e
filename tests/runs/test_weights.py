"""Files of weights: what was written is what is read, and damage is called damage."""

import json
import struct

import numpy as np
import pytest
from safetensors.numpy import save

from alma.runs.weights import CONFIG, DIGEST, digest, read_weights, write_weights

TENSORS = {"actors.a": np.arange(6, dtype=np.float32).reshape(2, 3), "allocator.b": np.zeros((0, 2), np.float32)}
DATA = {"task": "save-the-city", "seed": 3}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "weights.safetensors"
    write_weights(path, TENSORS, DATA)
    return path


def test_what_was_written_is_read(file):
    data, tensors = read_weights(file)
    assert data == DATA
    assert tensors.keys() == TENSORS.keys()
    for name, array in tensors.items():
        assert array.dtype == TENSORS[name].dtype
        np.testing.assert_array_equal(array, TENSORS[name])


def test_every_flipped_bit_is_noticed_or_does_no_harm(file):
    whole, noticed = file.read_bytes(), 0
    for place in range(len(whole)):
        file.write_bytes(bytes([*whole[:place], whole[place] ^ 0x04, *whole[place + 1 :]]))
        try:
            data, tensors = read_weights(file)
        except ValueError as error:
            assert file.name in str(error)  # noqa: PT017
            noticed += 1
        else:
            assert data == DATA
            assert all(np.array_equal(tensors[name], TENSORS[name]) for name in TENSORS)
    assert noticed > 0.8 * len(whole)


def test_tampered_weights_are_called_damaged(file):
    whole = file.read_bytes()
    file.write_bytes(whole[:-4] + struct.pack("<f", 7.0))
    with pytest.raises(ValueError, match=r"weights\.safetensors is damaged: its contents are not as they were written"):
        read_weights(file)


def test_files_of_the_first_edition_have_no_digest(file):
    file.write_bytes(save(TENSORS, {CONFIG: json.dumps(DATA)}))
    assert read_weights(file)[0] == DATA


def test_metadata_that_is_no_configuration_is_told_with_the_file(file):
    file.write_bytes(save(TENSORS, {CONFIG: "{", DIGEST: digest(TENSORS, "{")}))
    with pytest.raises(ValueError, match=r"weights\.safetensors cannot be read: Expecting property name"):
        read_weights(file)
    file.write_bytes(save(TENSORS))
    with pytest.raises(ValueError, match="was not written by alma"):
        read_weights(file)
