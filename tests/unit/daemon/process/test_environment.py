"""What strangers can make gRPC write on stderr of a daemon."""

import subprocess
import sys

import pytest

from messiahs.daemon.process.environment import daemon_environment

pytestmark = pytest.mark.processes

SERVER_AND_STRANGER = """
import asyncio, contextlib, ssl
import grpc, grpc.aio
from messiahs.channel.certificates.tls import issue, make_root

async def main():
    root = make_root("f")
    own = issue(root, federation="f", name="a")
    credentials = grpc.ssl_server_credentials(
        [(own.key, own.certificate)], root_certificates=root.certificate, require_client_auth=True
    )
    server = grpc.aio.server()
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="b")
    with contextlib.suppress(ssl.SSLError):
        await reader.read()
    print("refused")
    writer.transport.abort()
    await server.stop(None)

asyncio.run(main())
"""


def test_a_stranger_that_looks_for_another_name_writes_nothing_on_the_output_of_a_daemon() -> None:
    environment = {name: text for name, text in daemon_environment().items() if name != "GRPC_VERBOSITY"}
    command = [sys.executable, "-c", SERVER_AND_STRANGER]
    done = subprocess.run(
        command, env=daemon_environment(environment), capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.stdout, done.stderr) == ("refused\n", "")
