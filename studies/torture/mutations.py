"""Mutations of files: of their bytes, and of what their format says.

A mutation takes the bytes of a whole file and a random number generator, and gives other bytes. One that knows the
format makes its changes look as if they were written like that, with checksums that are right.
"""

import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import safetensors.numpy

from alma.runs import weights

Mutation: TypeAlias = Callable[[bytes, random.Random], bytes]

# ---- bytes


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def set_bytes(data: bytes, rng: random.Random) -> bytes:
    start, end = _slice(data, rng)
    return (
        data[:start]
        + rng.choice((bytes(end - start), b"\xff" * (end - start), rng.randbytes(end - start)))
        + data[end:]
    )


def cut_short(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.choice((0, 1, rng.randrange(len(data)), rng.randrange(len(data)), len(data) - 1))]


def cut_out(data: bytes, rng: random.Random) -> bytes:
    start, end = _slice(data, rng)
    return data[:start] + data[end:]


def repeat(data: bytes, rng: random.Random) -> bytes:
    start, end = _slice(data, rng)
    return data[:end] + data[start:]


def insert(data: bytes, rng: random.Random) -> bytes:
    start, _ = _slice(data, rng)
    return data[:start] + rng.randbytes(rng.choice((1, 7, 500))) + data[start:]


def swap(data: bytes, rng: random.Random) -> bytes:
    one, other = sorted(rng.sample(range(len(data) + 1), 2))
    size = min(rng.randrange(1, 200), other - one, len(data) - other)
    return (
        data[:one]
        + data[other : other + size]
        + data[one + size : other]
        + data[one : one + size]
        + data[other + size :]
    )


def _slice(data: bytes, rng: random.Random) -> tuple[int, int]:
    start = rng.randrange(len(data))
    return start, min(len(data), start + rng.choice((1, 2, 4, 8, 64, 1000)))


BYTES: Sequence[Mutation] = (flip_bits, flip_bits, set_bytes, cut_short, cut_out, repeat, insert, swap)

# ---- JSON, JSON lines and TOML

ODD: Sequence[Any] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e-320, 1e308, -1e308, 2**31, 2**63, -(2**63), 10**400, float("nan"),
    float("inf"), float("-inf"), "", "a", "0", "nan", "x" * 100_000, "\x00", "\ud800", "../../../etc/passwd", [], [[]],
    "os:system", "builtins:eval", "torture.trap:Trap", "/tmp/trap.py:Trap", ".trap:Trap", {}, {"a": 1}, [1, 2], [None],
    {"": {"": {}}}, "save-the-city", "starcraft", "flat", "paper", 3, 1_000_000_000_000,
)  # fmt: skip


def odd_value(value: Any, rng: random.Random) -> Any:
    """Another value in place of one in a file."""
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        near = (value + 1, value - 1, -value, value * 10, value / 3, value * 1_000_003, str(value))
        return rng.choice(near)
    if isinstance(value, str) and value and rng.random() < 0.3:
        place = rng.randrange(len(value))
        return value[:place] + rng.choice("0:/é\x00") + value[place + 1 :]
    if isinstance(value, list) and value and rng.random() < 0.5:
        return rng.choice((value[1:], value + value, value[::-1], value * 100))
    return rng.choice(ODD)


def change_entry(data: Any, rng: random.Random) -> Any:
    """JSON data with one entry changed, renamed, dropped or added, at any depth."""
    if isinstance(data, dict) and data:
        name = rng.choice(list(data))
        if isinstance(data[name], dict | list) and data[name] and rng.random() < 0.8:
            return {**data, name: change_entry(data[name], rng)}
        what = rng.random()
        if what < 0.1:
            return {key: value for key, value in data.items() if key != name}
        if what < 0.2:
            return {(key + "x" if key == name else key): value for key, value in data.items()}
        if what < 0.25:
            return {**data, "odd": rng.choice(ODD)}
        return {**data, name: odd_value(data[name], rng)}
    if isinstance(data, list) and data:
        place = rng.randrange(len(data))
        return [*data[:place], change_entry(data[place], rng), *data[place + 1 :]]
    return odd_value(data, rng)


def json_values(data: bytes, rng: random.Random) -> bytes:
    return json.dumps(change_entry(json.loads(data), rng), indent=rng.choice((None, 2))).encode()


def json_text(data: bytes, rng: random.Random) -> bytes:
    """Deep nesting, huge numbers and doubled keys, which data in memory cannot have."""
    text = data.decode()
    places = [found.span() for found in re.finditer(r'-?\d+\.?\d*|"[^"]*"|true|false|null', text)]
    start, end = rng.choice(places)
    odd = rng.choice(
        ("[" * 100_000, "[" * 50_000 + "]" * 50_000, '{"a":' * 50_000, "9" * 10_000, "1e999999", "-", "NaN", '"')
    )
    return (text[:start] + odd + text[end:]).encode()


def digits(data: bytes, rng: random.Random) -> bytes:
    """Another digit, as if somebody had improved a number."""
    places = [found.start() for found in re.finditer(rb"\d", data)]
    place = rng.choice(places)
    return data[:place] + str(rng.randrange(10)).encode() + data[place + 1 :]


JSON: Sequence[Mutation] = (json_values, json_values, json_values, json_text, digits)


def of_line(mutate: Mutation) -> Mutation:
    """A mutation of one line of a file."""

    def change(data: bytes, rng: random.Random) -> bytes:
        lines = data.splitlines(keepends=True)
        place = rng.randrange(len(lines))
        return b"".join([*lines[:place], mutate(lines[place].rstrip(b"\n"), rng), b"\n", *lines[place + 1 :]])

    return change


def move_lines(data: bytes, rng: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = rng.choice(((lines[other], lines[one]), (lines[one], lines[one]), (b"\n", lines[other])))
    return b"".join(lines)


JSON_LINES: Sequence[Mutation] = (*map(of_line, JSON), move_lines)


def toml_values(data: bytes, rng: random.Random) -> bytes:
    """Another value on the right of an equals sign."""
    lines = data.decode().splitlines()
    place = rng.choice([number for number, line in enumerate(lines) if "=" in line])
    name = lines[place].partition("=")[0]
    odd = rng.choice(
        ("nan", "inf", "-inf", "9" * 5000, "1e400", '""', '"os:system"', "[]", "{}", "[" * 5000 + "]" * 5000, "true",
         "0", "1979-05-27", "-1", "0.5", '"x"', "[1, 2]", "[[1], [2]]", "{ a = 1 }", "'''", "1_000_000_000_000", "")
    )  # fmt: skip
    lines[place] = f"{rng.choice((name, name, name + '.x', 'odd', 'a.' * 1000 + 'a'))} = {odd}"
    return "\n".join(lines).encode()


TOML: Sequence[Mutation] = (toml_values, toml_values, toml_values, digits)

# ---- checkpoints: zip archives of npy files


def of_members(change: Callable[[dict[str, bytes], random.Random], None]) -> Mutation:
    """A mutation of the parts of an archive, which is written anew with checksums that are right."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members, rng)
        out = io.BytesIO()
        method = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
        with zipfile.ZipFile(out, "w", method) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return out.getvalue()

    return mutate


def _array(members: dict[str, bytes], rng: random.Random) -> str:
    return rng.choice([name for name in members if name != "notes.json"])


def other_members(members: dict[str, bytes], rng: random.Random) -> None:
    name = rng.choice(list(members))
    what = rng.randrange(4)
    if what == 0:
        del members[name]
    elif what == 1:
        members[rng.choice(("../" * 5 + name, "/etc/x", name + "\x00", "a" * 60_000))] = members.pop(name)
    elif what == 2:
        members["odd"] = rng.randbytes(100)
    else:
        other = rng.choice(list(members))
        members[name], members[other] = members[other], members[name]


HEADERS = (
    ("'shape': (", "'shape': (1000000000000, "), ("'shape': (", "'shape': (-1, "), ("'shape': (", "'shape': (True, "),
    ("'descr': '<f4'", "'descr': '|O'"), ("'descr': '<f4'", "'descr': '<f8'"), ("'descr': '<f4'", "'descr': '>f4'"),
    ("'descr': '<f4'", "'descr': '<i4'"), ("'descr': '<f4'", "'descr': [('a', '<f4')]"), ("False", "True"),
    ("'descr': '<i4'", "'descr': '<u4'"), ("'descr': '<u4'", "'descr': '<M8[s]'"), ("{", "{" * 300), ("False", "None"),
    ("'descr': '<f4'", "'descr': '<V1000000000'"), ("'shape': (", "'shape': (0, "), ("'shape'", "'form'"),
    ("'fortran_order'", "__import__('os')"),
)  # fmt: skip


def npy_header(members: dict[str, bytes], rng: random.Random) -> None:
    """Another shape, type, order or version in the header of an array."""
    name = _array(members, rng)
    content = members[name]
    size = struct.unpack("<H", content[8:10])[0]
    old, new = rng.choice(HEADERS)
    header = content[10 : 10 + size].decode().replace(old, new).rstrip("\n ").encode() + b"\n"
    version = rng.choice((1, 1, 1, 2, 3, 9))
    length = struct.pack("<H" if version == 1 else "<I", rng.choice((len(header), len(header), 0, 65_535)))
    members[name] = content[:6] + bytes((version, 0)) + length + header + content[10 + size :]


def other_notes(members: dict[str, bytes], rng: random.Random) -> None:
    members["notes.json"] = rng.choice(JSON)(members["notes.json"], rng)


def directory(data: bytes, rng: random.Random) -> bytes:
    """Bits of the archive's directory, or the numbers in it: sizes, places, methods."""
    begin = data.rfind(b"PK\x05\x06")
    start = struct.unpack("<I", data[begin + 16 : begin + 20])[0]
    entries = [start + found.start() for found in re.finditer(b"PK\x01\x02", data[start:])]
    entry = rng.choice([*entries, begin])
    fields = {
        "method": 10,
        "crc": 16,
        "packed": 20,
        "size": 24,
        "names": 28,
        "extra": 30,
        "comment": 32,
        "place": 42,
        "flags": 8,
    }
    place = entry + rng.choice(list(fields.values()))
    value = rng.choice(
        (b"\x00\x00", b"\xff\xff", b"\x01\x00", rng.randbytes(2), b"\xff\xff\xff\xff", b"\x00\x00\x00\x7f")
    )
    return data[:place] + value + data[place + len(value) :]


def doubled(data: bytes, rng: random.Random) -> bytes:
    """A second part of the same name, with other numbers."""
    out = io.BytesIO(data)
    with zipfile.ZipFile(out, "a") as archive:
        name = rng.choice(archive.namelist())
        content = bytearray(archive.read(name))
        content[-1] ^= 0xFF
        archive.NameToInfo.pop(name)  # so that it does not warn
        archive.writestr(name, bytes(content))
    return out.getvalue()


CHECKPOINT: Sequence[Mutation] = (
    *map(of_members, (other_members, npy_header, npy_header, npy_header, other_notes, other_notes)),
    directory, directory, directory, doubled,
)  # fmt: skip

# ---- weights: safetensors


def weights_header(data: bytes, rng: random.Random) -> bytes:
    """Another name, type, shape or place of an array, or other metadata."""
    size = struct.unpack("<Q", data[:8])[0]
    header = change_entry(json.loads(data[8 : 8 + size]), rng)
    return _with_header(json.dumps(header).encode(), data[8 + size :], rng)


def weights_shapes(data: bytes, rng: random.Random) -> bytes:
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    entry = header[rng.choice([name for name in header if name != "__metadata__"])]
    what = rng.choice(("dtype", "shape", "data_offsets"))
    odd = {
        "dtype": ("F64", "F16", "BF16", "I32", "U8", "BOOL", "F8_E4M3", "C64", "f32", "O"),
        "shape": ([], [2**40], [2**63], [-1], [0], [2**32, 2**32], entry["shape"][::-1], [*entry["shape"], 1]),
        "data_offsets": ([0, 0], [0, 2**60], [4, 0], [-4, 0], entry["data_offsets"][::-1], [0, 4]),
    }
    entry[what] = rng.choice(odd[what])
    return _with_header(json.dumps(header).encode(), data[8 + size :], rng)


def weights_length(data: bytes, rng: random.Random) -> bytes:
    size = struct.unpack("<Q", data[:8])[0]
    return struct.pack("<Q", rng.choice((0, 1, size - 1, size + 1, size * 2, 10**8 + 1, 2**63, 2**64 - 1))) + data[8:]


def _with_header(header: bytes, rest: bytes, rng: random.Random) -> bytes:
    return struct.pack("<Q", len(header)) + header + rest


WEIGHTS: Sequence[Mutation] = (weights_header, weights_header, weights_shapes, weights_shapes, weights_length)


def resigned(data: bytes, rng: random.Random) -> bytes:
    """Another configuration or other numbers, with a digest that is right, or none."""
    size = struct.unpack("<Q", data[:8])[0]
    described = json.loads(data[8 : 8 + size])["__metadata__"]
    tensors = {name: leaf.copy() for name, leaf in safetensors.numpy.load(data).items()}
    what, text = rng.randrange(4), described[weights.CONFIG]
    if what == 0:
        name = rng.choice(list(tensors))
        tensors[name].reshape(-1)[0] = rng.choice((np.nan, np.inf, 1e38, 0.0))
    elif what == 1:
        text = rng.choice((json_text, digits))(text.encode(), rng).decode()
    else:
        text = json.dumps(change_entry(json.loads(text), rng))
    found = {weights.CONFIG: text, weights.DIGEST: weights.digest(tensors, text)}
    if rng.random() < 0.1:
        del found[weights.DIGEST]
    return safetensors.numpy.save(tensors, found)
