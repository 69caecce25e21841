"""The output of all members of an array, which a module sends in one answer: member after member, or as they write."""

import http.client
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, urlencode

from messiahs.client.connection import Connection, OnConnection, Waiting, pieces_of, untold
from messiahs.client.module import ModuleClient

_NUMBER_BYTES: Final = 4
_HEADER_BYTES: Final = 2 * _NUMBER_BYTES
_LINE_BYTES: Final = 65_536
"""What is longer without an end of line is shown as a line."""


def member_logs(
    module: ModuleClient,
    array: str,
    *,
    stream: str = "stdout",
    follow: bool = False,
    failed: bool = False,
    on_connection: OnConnection = untold,
) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of what the members of an array wrote, with the number of the member, one member after the other.

    With `follow`, pieces of members that run come as they are written, mixed, and an empty one when a member has ended;
    without it, members have what they wrote so far. `failed` leaves out all that have not failed, and with `follow`
    those that fail come in the order of their ends. After an interruption it continues.
    """
    query = urlencode({"stream": stream, "follow": int(follow), "failed": int(failed)})
    path = f"/v1/tasks/{quote(array, safe='')}/member-logs?{query}"
    connection, waiting = Connection(module.socket_path), Waiting(module.socket_path, patience=module.patience)
    on_connection(connection)
    yielded: dict[int, int] = {}
    try:
        while True:
            try:
                offsets: dict[int, int] = {}
                for member, piece in framed(pieces_of(connection, path)):
                    waiting.reset()
                    begin = offsets.get(member, 0)
                    offsets[member] = begin + len(piece)
                    rest = piece[max(0, yielded.get(member, 0) - begin) :]
                    if rest or not piece:
                        yielded[member] = max(offsets[member], yielded.get(member, 0))
                        yield member, rest
            except (ConnectionError, FileNotFoundError, TimeoutError, http.client.HTTPException) as error:
                connection.close()
                waiting.pause(error)
            else:
                return
    finally:
        connection.close()


def framed(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the frames of an answer: the number of a member, the length of a piece, and the piece."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        while len(buffer) >= _HEADER_BYTES:
            member, length = (int.from_bytes(buffer[at : at + _NUMBER_BYTES]) for at in (0, _NUMBER_BYTES))
            if len(buffer) < _HEADER_BYTES + length:
                break
            yield member, bytes(buffer[_HEADER_BYTES : _HEADER_BYTES + length])
            del buffer[: _HEADER_BYTES + length]
    if buffer:
        raise http.client.IncompleteRead(bytes(buffer))


def prefixed(pieces: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the output of tasks with the id of its task before each line; each task begins a line."""
    previous, is_within_line = "", False
    for task, piece in pieces:
        parts: list[bytes] = []
        if is_within_line and task != previous:
            parts.append(b"\n")
            is_within_line = False
        previous = task
        *lines, last = piece.split(b"\n")
        prefix = f"{task}: ".encode()
        for line in lines:
            parts += [b"" if is_within_line else prefix, line, b"\n"]
            is_within_line = False
        if last:
            parts += [b"" if is_within_line else prefix, last]
            is_within_line = True
        yield b"".join(parts)
    if is_within_line:
        yield b"\n"


def lines_of(pieces: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield whole lines of tasks that write at the same time, each with the id of its task before it.

    The last line of a task may lack its end; then it follows when the task has ended, as an empty piece says.
    """
    begun: dict[str, bytes] = {}
    for task, piece in pieces:
        prefix = f"{task}: ".encode()
        *lines, last = (begun.pop(task, b"") + piece).split(b"\n")
        if last and (not piece or len(last) > _LINE_BYTES):
            lines, last = [*lines, last], b""
        if last:
            begun[task] = last
        if lines:
            yield b"".join(prefix + line + b"\n" for line in lines)
    for task, last in begun.items():
        yield f"{task}: ".encode() + last + b"\n"
