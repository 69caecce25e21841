"""Runs the daemons of several sites as `tests.live.site_daemons`, and records all that each of them sends and receives.

FOLDER/tap of a module gets every message as its codec sees it, every certificate that a peer shows, and the metadata
and error texts of gRPC. With the argument `meddled`, requests that pass a border keep the user and origin from inside.
"""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from messiahs.wire import parsing

TAP: Final = "tap"
CERTIFICATE, METADATA, ERROR = "certificate", "metadata", "error"


class Tap:
    """Appends entries to the file of the module in this process (mutable)."""

    folder: Path | None = None
    """That of the module, once it is known."""

    def record(self, what: str, content: bytes) -> None:
        """Append an entry."""
        if self.folder is not None:
            descriptor = os.open(self.folder / TAP, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, b"%s %d\n%s\n" % (what.encode(), len(content), content))
            finally:
                os.close(descriptor)


def entries(tap: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Yield what a tap has recorded from its present position on; an entry that is not whole ends it, and stays."""
    while line := tap.readline():
        what, _, size = line.partition(b" ")
        content = tap.read(int(size) + 1) if line.endswith(b"\n") else b""
        if not content.endswith(b"\n") or len(content) <= int(size):
            tap.seek(-len(line) - len(content), os.SEEK_CUR)
            return
        yield what.decode(), content[:-1]


def _tap_codec(tap: Tap) -> None:
    """Record messages; before the modules are loaded that use these functions."""
    serialized, parsed = parsing.serialized, parsing.parsed

    def serialize(wire: Any) -> bytes:  # noqa: ANN401 - any message
        content = serialized(wire)
        tap.record(wire.DESCRIPTOR.full_name, content)
        return content

    def parse(wire: Any, content: bytes) -> Any:  # noqa: ANN401 - any message
        tap.record(wire.DESCRIPTOR.full_name, content)
        return parsed(wire, content)

    parsing.serialized, parsing.parsed = serialize, parse


def _tap_streams(tap: Tap) -> None:
    from messiahs.channel import grpc_errors, grpc_services, grpc_streams  # noqa: PLC0415 - after the codec was tapped
    from messiahs.channel.certificates.trusted_roots import Presented, TrustedRoots  # noqa: PLC0415
    from messiahs.daemon.storage.store import RowStore  # noqa: PLC0415

    opened, check = RowStore.__init__, TrustedRoots.check
    caller = grpc_services.Services._caller

    def open_store(store: RowStore, path: Path) -> None:
        tap.folder = path.parent
        opened(store, path)

    def check_peer(trusted: TrustedRoots, presented: Presented, **more: bool) -> object:
        for each in presented.chain:
            tap.record(CERTIFICATE, each)
        return check(trusted, presented, **more)

    async def note_caller(services: Any, context: Any) -> object:  # noqa: ANN401 - of gRPC
        tap.record(METADATA, repr(context.invocation_metadata()).encode())
        return await caller(services, context)

    def noting(convert: Callable[[BaseException], BaseException]) -> Callable[[BaseException], BaseException]:
        def note(error: Any) -> BaseException:  # noqa: ANN401 - of gRPC
            told = [getattr(error, name, str)() for name in ("details", "initial_metadata", "trailing_metadata")]
            tap.record(ERROR, repr(told).encode())
            return convert(error)

        return note

    RowStore.__init__ = open_store  # type: ignore[method-assign, assignment]
    TrustedRoots.check = check_peer  # type: ignore[method-assign, assignment]
    grpc_services.Services._caller = note_caller  # type: ignore[method-assign, assignment]
    grpc_streams.channel_error = noting(grpc_errors.channel_error)  # type: ignore[attr-defined, assignment]
    grpc_streams.read_error = noting(grpc_errors.read_error)  # type: ignore[attr-defined, assignment]


def _meddle() -> None:
    from messiahs.core.border import outward  # noqa: PLC0415 - after the codec was tapped

    outward._shown_tdv = lambda state, request, *, to: request.tdv  # noqa: ARG005


if __name__ == "__main__":
    _tap = Tap()
    _tap_codec(_tap)
    _tap_streams(_tap)
    if "meddled" in sys.argv:
        _meddle()
    from tests.live.site_daemons import serve

    serve()
