"""Files of weights: the parameters and the configuration of a policy in one safetensors file, with a digest of both.

Only the format of a file is checked here; `policy.py` checks its parameters against the configuration.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save as to_bytes

from alma.files import atomic_write, brief, parse_json

CONFIG, DIGEST = "alma_config", "alma_digest"
"""Keys of the metadata. Files of the first edition have no digest."""


def write_weights(path: Path, tensors: Mapping[str, np.ndarray], config: dict[str, Any]) -> None:
    """Write arrays and the configuration that they belong to, atomically."""
    text = json.dumps(config)
    with atomic_write(path) as unfinished:
        unfinished.write_bytes(to_bytes(dict(tensors), {CONFIG: text, DIGEST: digest(tensors, text)}))


def read_weights(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    """The configuration, as JSON data, and the arrays of a file. Raises a ValueError that names the file."""
    try:
        with safe_open(str(path), framework="numpy") as archive:
            described = archive.metadata() or {}
            tensors = {name: archive.get_tensor(name) for name in archive.keys()}  # noqa: SIM118
    except OSError as error:
        raise ValueError(f"cannot load {path}: {error}") from None
    except Exception as error:  # damage may be anywhere: in names, types, shapes, places
        raise ValueError(f"cannot load {path}: it is damaged, or not a file of weights ({brief(error)})") from None
    if CONFIG not in described:
        raise ValueError(f"{path} was not written by alma: it has no configuration inside")
    if described.get(DIGEST, digest(tensors, described[CONFIG])) != digest(tensors, described[CONFIG]):
        raise ValueError(f"{path} is damaged: its contents are not as they were written; copy or train them anew")
    return parse_json(described[CONFIG], path), tensors


def digest(tensors: Mapping[str, np.ndarray], config: str) -> str:
    """A hash of everything in a file of weights."""
    found = hashlib.sha256(config.encode())
    for name, array in sorted(tensors.items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()
