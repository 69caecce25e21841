"""Rows and messages as a release writes them: run by keep.py, with the code and the tests of that release.

`rows.json` and `wire.json` have the contents beside the bytes: plain values, in which a later release finds everything
that the earlier one wrote.
"""

import base64
import dataclasses
import json
import sys
import types
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from messiahs.core.interface.actions import Store
from messiahs.core.interface.rows import Row, TaskRow, key_of
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.instants import Instant
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.storage.writes import KeepOutput
from messiahs.trace.format.rows import decode_row, encode_row
from messiahs.wire import codec
from tests.property import strategies, test_codec_round_trip

_FULL_ROWS = 14
"""Rows of each kind with a value in every field: enough for each member of an enumeration."""
_DEPTH = 4
_DRAWN, _KEPT = 300, 5
_LARGE = 4_000
"""Length of what is not kept: long paths make files large, and test nothing else."""


def record(folder: Path) -> None:
    """Write the three files."""
    rows = list(_rows())
    database = folder / "module.db"
    for file in folder.glob("module.*"):
        file.unlink()
    store = RowStore(database)
    kept = KeepOutput(task=next(row.id for row in rows if isinstance(row, TaskRow)), name="stdout", body=b"a line\n")
    store.commit([*(Store(row=row) for row in rows), kept], Instant(1_000))
    store.close()
    database.with_suffix(".mark").unlink()
    contents = []
    for row in rows:
        kind, key, body = encode_row(row)
        assert decode_row(kind, key, body) == row
        contents.append({"kind": kind, "key": _text(key), "row": type(row).__name__, "holds": _plain(row)})
    _write(folder / "rows.json", contents)
    _write(folder / "wire.json", list(_messages()))


def _rows() -> Iterator[Row]:
    """Yield rows of every kind: some with a value in every field, and one with nothing where there is a default."""
    found: dict[object, Row] = {}
    for kind in get_args(Row):
        required = [field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING]
        for number in range(_FULL_ROWS):
            values = {name: _value(hint, number, 0) for name, hint in get_type_hints(kind).items()}
            if number == 0:
                values = {name: value for name, value in values.items() if name in required}
            row = kind(**values)
            found[key_of(row)] = row
    yield from found.values()


def _value(hint: Any, number: int, depth: int) -> Any:  # noqa: ANN401 - of any type
    """Return a value of a type, another one for each number."""
    if isinstance(hint, NewType):
        return _value(hint.__supertype__, number, depth)
    if hint in (int, str, bytes, bool):
        # Names are of small letters, and tickets have 16 bytes.
        return {int: number + 1, str: f"name{number}", bytes: bytes([number] * 16), bool: True}[hint]
    if get_origin(hint) in (Union, types.UnionType):
        parts = [part for part in get_args(hint) if part is not types.NoneType]
        return None if depth >= _DEPTH else _value(parts[number % len(parts)], number, depth)
    if get_origin(hint) is tuple:
        return _values(get_args(hint), number, depth)
    if hint is TDV:
        return TDV((("cpus", number), ("origin", f"name{number}"), ("user", "ada")))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return list(hint)[number % len(hint)]
    values = {name: _value(each, number, depth + 1) for name, each in get_type_hints(hint).items()}
    make: Callable[..., object] = hint
    return make(**values)


def _values(parts: tuple[Any, ...], number: int, depth: int) -> tuple[Any, ...]:
    if parts[1:] != (Ellipsis,):
        return tuple(_value(part, number, depth) for part in parts)
    if depth >= _DEPTH:
        return ()
    return (_value(parts[0], number, depth + 1), _value(parts[0], number + 1, depth + 1))


def _messages() -> Iterator[dict[str, object]]:
    tests = test_codec_round_trip
    of: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], bytes]]] = {
        "control": (st.tuples(strategies.control_messages), codec.control_to_bytes),
        "status_vector": (strategies.status_vectors, codec.status_vector_to_bytes),
        "transfer": (strategies.task_transfers, codec.transfer_to_bytes),
        "read_request": (tests.read_requests, codec.read_request_to_bytes),
        "put_request": (tests.put_requests, codec.put_request_to_bytes),
        "feed_request": (tests.feed_requests, codec.feed_request_to_bytes),
        "bytes_wanted": (strategies.tickets, codec.bytes_wanted_to_bytes),
        "pipe_begin": (strategies.tickets, codec.pipe_begin_to_bytes),
    }
    for name, (strategy, to_bytes) in of.items():
        for message in _examples(strategy):
            content = to_bytes(message)
            assert getattr(codec, f"{name}_from_bytes")(content) == message
            yield {"message": name, "bytes": _text(content), "kinds": _kinds(message), "holds": _plain(message)}


def _examples(strategy: "st.SearchStrategy[Any]") -> list[Any]:
    """Draw messages, and return the largest ones of each kind."""
    drawn: dict[str, list[Any]] = {}

    @seed(1)
    @settings(max_examples=_DRAWN, database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def draw(message: object) -> None:
        if len(repr(message)) < _LARGE:
            drawn.setdefault(str(_kinds(message)), []).append(message)

    draw()
    return [one for each in drawn.values() for one in sorted(each, key=lambda one: -len(repr(one)))[:_KEPT]]


def _kinds(message: object) -> list[str]:
    return [type(each).__name__ for each in (message if type(message) is tuple else (message,))]


def _plain(value: object) -> object:
    return msgspec.to_builtins(value)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _write(file: Path, entries: list[dict[str, typing.Any]]) -> None:
    file.write_text("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=True) for entry in entries) + "\n]\n")


if __name__ == "__main__":
    record(Path(sys.argv[1]))
