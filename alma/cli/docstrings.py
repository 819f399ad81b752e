"""Help texts from source code: docstrings of dataclasses and of their fields."""

import ast
import dataclasses
import functools
import inspect
import itertools
import sys


@functools.cache
def field_docs(kind: type) -> dict[str, str]:
    """The docstring under each field of a dataclass, on one line; none where there is no source to read."""
    docs: dict[str, str] = {}
    for parent in filter(dataclasses.is_dataclass, reversed(kind.__mro__)):
        definition = _definitions(parent.__module__).get(parent.__name__)
        for field, below in itertools.pairwise([] if definition is None else definition.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docs[name] = " ".join(text.split())
    return docs


def class_doc(kind: type) -> str:
    """The docstring of a dataclass on one line; empty for the signature that Python puts where there is none."""
    doc = " ".join((kind.__doc__ or "").split())
    return "" if doc.startswith(f"{kind.__name__}(") else doc


@functools.cache
def _definitions(module: str) -> dict[str, ast.ClassDef]:
    """The source of each class of a module."""
    try:
        body = ast.parse(inspect.getsource(sys.modules[module])).body
    except (KeyError, OSError, TypeError):
        return {}
    return {definition.name: definition for definition in body if isinstance(definition, ast.ClassDef)}
