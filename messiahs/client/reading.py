"""Reading the bytes of a file or an output from a module, through interruptions."""

import http.client
from collections.abc import Callable, Generator

from messiahs.client.connection import Connection, Waiting, check_size, pieces_of


def read_on(
    connection: Connection, path: Callable[[int], str], *, patience: float | None, size_bytes: int | None = None
) -> Generator[bytes, None, None]:
    """Yield the bytes at the path of each offset, piece by piece; after an interruption, from the next byte.

    Without a size, they end where the module ends them. If it is not read to its end, the connection is closed.
    """
    offset, is_whole = 0, False
    waiting = Waiting(connection.socket_path, patience=patience)
    try:
        while not is_whole:
            try:
                for piece in pieces_of(connection, path(offset)):
                    # Where the length is known, only content shows progress.
                    if piece or size_bytes is None:
                        waiting.reset()
                    offset += len(piece)
                    if piece:
                        yield piece
                check_size(offset, size_bytes)
            except (ConnectionError, FileNotFoundError, TimeoutError, http.client.HTTPException) as error:
                connection.close()
                waiting.pause(error)
            else:
                is_whole = True
    finally:
        if not is_whole:
            # The rest of this answer must not be taken for the answer to the next request.
            connection.close()
