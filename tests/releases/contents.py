"""Comparison of what an earlier release wrote with what this tree reads."""

import base64
import json
from typing import Any

import msgspec

from tests.releases.released import folder_of


def entries(version: str, file: str) -> list[dict[str, Any]]:
    """Return the entries of `rows.json` or `wire.json`."""
    return list(json.loads((folder_of(version) / file).read_bytes()))


def content(entry: dict[str, Any], name: str) -> bytes:
    """Return the bytes in an entry."""
    return base64.b64decode(entry[name])


def lost(earlier: object, value: object) -> list[str]:
    """Return what an earlier release wrote and a value does not have, each with its place; fields may be added."""
    return list(_lost(earlier, msgspec.to_builtins(value), "it"))


def _lost(earlier: Any, present: Any, place: str) -> list[str]:  # noqa: ANN401 - plain values
    # A named tuple and a list are both lists in JSON.
    present = list(present) if isinstance(present, tuple) else present
    if isinstance(earlier, dict) and isinstance(present, dict):
        missing = [f"{place}.{name} is missing" for name in earlier if name not in present]
        both = [(f"{place}.{name}", earlier[name], present[name]) for name in earlier if name in present]
        return missing + [each for where, one, other in both for each in _lost(one, other, where)]
    if isinstance(earlier, list) and isinstance(present, list) and len(earlier) == len(present):
        pairs = enumerate(zip(earlier, present, strict=True))
        return [each for number, pair in pairs for each in _lost(*pair, f"{place}[{number}]")]
    return [] if earlier == present else [f"{place} was {earlier!r} and is {present!r}"]
