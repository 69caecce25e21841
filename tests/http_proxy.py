"""An HTTP proxy for tests: `python -m tests.http_proxy NAME=PORT…` connects NAME to that port of this machine.

It prints its own port, and then a line for each request: what was asked for, and the credentials. It refuses all other
names with 403. Names that no resolver knows prove that only the proxy was asked for them.
"""

import asyncio
import sys
from contextlib import suppress


async def serve(ports: dict[str, int]) -> None:
    """Serve until the process is ended."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.splitlines()[0].split()
        credentials = [line.split(": ")[1] for line in head.splitlines() if line.startswith("Proxy-Authorization")]
        say(method, target, *credentials)
        name, _, port = target.rpartition(":")
        # A port that is not named is that of large files.
        there = ports.get(target) or (int(port) if any(each.startswith(f"{name}:") for each in ports) else None)
        if there is None:
            writer.write(b"HTTP/1.1 403 Not this one\r\n\r\n")
            writer.close()
            return
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", there)
        writer.write(b"HTTP/1.1 200 Connected\r\nVia: a test\r\n\r\n")
        await asyncio.gather(pass_on(reader, other_writer), pass_on(other_reader, writer))

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    say(str(server.sockets[0].getsockname()[1]))
    await server.serve_forever()


def say(*words: str) -> None:
    """Print a line."""
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until it ends."""
    with suppress(ConnectionError):
        while content := await reader.read(65536):
            writer.write(content)
            await writer.drain()
    writer.close()


if __name__ == "__main__":
    asyncio.run(serve({name: int(port) for name, port in (word.split("=") for word in sys.argv[1:])}))
