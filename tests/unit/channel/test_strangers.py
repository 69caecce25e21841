"""Connections that never finish their handshake cannot take the file descriptors of the rest of the daemon."""

import asyncio
import resource
import sys

import grpc
import grpc.aio
import pytest

from messiahs.channel.certificates.tls import issue, make_root
from messiahs.channel.grpc_options import server_options

pytestmark = pytest.mark.processes

FILES = 256
STRANGERS = 200
CLIENT = """
import select, socket, sys
port, count, wanted = map(int, sys.argv[1:])
open_ones = {each.fileno(): each for each in (socket.create_connection(("127.0.0.1", port)) for _ in range(count))}
refused = 0
while refused < wanted:
    for number in select.select(list(open_ones), [], [])[0]:
        try:
            gone = not open_ones[number].recv(100)
        except ConnectionError:
            gone = True
        if gone:
            del open_ones[number]
            refused += 1
print(refused)
"""


async def refused_at_once() -> int:
    server = grpc.aio.server(options=server_options(15.0))
    root = make_root("f")
    own = issue(root, federation="f", name="a")
    credentials = grpc.ssl_server_credentials(
        [(own.key, own.certificate)], root_certificates=root.certificate, require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        words = (str(port), str(STRANGERS), str(STRANGERS - FILES // 2))
        pipe = asyncio.subprocess.PIPE
        client = await asyncio.create_subprocess_exec(sys.executable, "-c", CLIENT, *words, stdout=pipe)
        async with asyncio.timeout(8):
            printed, _ = await client.communicate()
        return int(printed)
    finally:
        await server.stop(None)


def test_strangers_take_half_of_the_files_at_most() -> None:
    """Excess connections are closed at once; the others after ten seconds, for which the test does not wait."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, before[1]))
    try:
        assert asyncio.run(refused_at_once()) == STRANGERS - FILES // 2
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
