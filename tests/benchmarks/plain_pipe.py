"""One end of a TLS connection over which a file moves, in as little Python as possible: what modules are compared with.

`receive FOLDER SIZE` prints its port and stores so many bytes as FOLDER/copy, hashed and synced; `send PORT FILE` sends
a file, and hashes it as well if `hashed` follows. Each prints the processor seconds that it used as JSON.
"""

import hashlib
import json
import os
import socket
import ssl
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Final

CERTIFICATE, KEY, COPY = "pipe.pem", "pipe.key", "copy"
HASHED: Final = "hashed"
_PIECE_BYTES: Final = 1 << 20
_STORED: Final = b"!"


def _receive(folder: Path, size_bytes: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        _report(listener.getsockname()[1])
        accepted, _ = listener.accept()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    with context.wrap_socket(accepted, server_side=True) as connection:
        began_at, writing_seconds = time.process_time(), 0.0
        with (folder / COPY).open("wb", buffering=0) as file:

            def write(piece: memoryview) -> None:
                nonlocal writing_seconds
                begun_at = time.thread_time()
                file.write(piece)
                writing_seconds += time.thread_time() - begun_at

            _copy(partial(_filled, connection), write, size_bytes=size_bytes, is_hashed=True)
            os.fsync(file.fileno())
        _report({"used": time.process_time() - began_at, "writing": writing_seconds})
        connection.send(_STORED)


def _send(port: int, path: Path, *, is_hashed: bool) -> None:
    plain = socket.create_connection(("127.0.0.1", port))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # As `openssl s_client` does: a certificate costs nothing for each byte.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(plain) as connection, path.open("rb", buffering=0) as file:
        began_at, begun_at = time.process_time(), time.monotonic()
        _copy(file.readinto, connection.sendall, size_bytes=path.stat().st_size, is_hashed=is_hashed)
        used = time.process_time() - began_at
        connection.recv(len(_STORED))
        _report({"used": used, "took": time.monotonic() - begun_at})


def _copy(
    read: Callable[[memoryview], int], write: Callable[[memoryview], object], *, size_bytes: int, is_hashed: bool
) -> None:
    """Copy pieces; each is hashed in a second thread while it is written and the next one is read."""
    digest, left = hashlib.sha256(), size_bytes
    buffers = cycle([memoryview(bytearray(_PIECE_BYTES)) for _ in range(2)])
    with ThreadPoolExecutor(1) as beside:
        hashing = beside.submit(digest.update, b"")
        while left:
            buffer = next(buffers)[:left]
            size = read(buffer)
            hashing.result()
            if is_hashed:
                hashing = beside.submit(digest.update, buffer[:size])
            write(buffer[:size])
            left -= size


def _filled(connection: ssl.SSLSocket, buffer: memoryview) -> int:
    size = 0
    while size < len(buffer):
        size += connection.recv_into(buffer[size:])
    return size


def _report(found: object) -> None:
    sys.stdout.write(f"{json.dumps(found)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["receive", into, size]:
            _receive(Path(into), int(size))
        case ["send", number, source, *rest]:
            _send(int(number), Path(source), is_hashed=HASHED in rest)
