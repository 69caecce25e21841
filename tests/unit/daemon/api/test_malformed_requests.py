"""Requests whose heads or chunks are no HTTP, in the log."""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from messiahs.daemon.api.connection_limits import limits_of_this_process
from messiahs.daemon.api.server import serve
from messiahs.daemon.api.socket_access import SocketAccess
from messiahs.daemon.process.log_lines import ALIKE_LIMIT, RateLimit
from tests.unit.daemon.api.free_turns import free_turns


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 16_000 + b"\r\n\r\n", "Got more than"),
        (b"GET / HTTP/1.1\r\nX: \xe2\x80\xae\x1b[2J\r\n\r\n", "nvalid header value"),
        (b"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnope\x1b\r\n", "chunk"),
    ],
)
def test_malformed_requests_are_one_line_each_with_the_user_and_few_of_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, words: bytes, said: str
) -> None:
    path = tmp_path / "a.sock"

    async def main() -> None:
        runner = await serve([], SocketAccess(path=path), limits_of_this_process(), free_turns())
        for _ in range(ALIKE_LIMIT + 5):
            reader, writer = await asyncio.open_unix_connection(path)
            writer.write(words)
            assert await reader.read()
            writer.close()
        await runner.cleanup()

    # All tests have the same handler.
    limit = RateLimit()
    caplog.handler.addFilter(limit)
    try:
        asyncio.run(main())
    finally:
        caplog.handler.removeFilter(limit)
    assert len(caplog.records) == ALIKE_LIMIT
    for record in caplog.records:
        assert record.levelno == logging.WARNING
        assert record.exc_info is None
        assert record.getMessage().isprintable()
        assert record.getMessage().startswith(f"uid {os.getuid()}: a malformed request was refused: ")
        assert said in record.getMessage()
