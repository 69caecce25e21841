"""Outputs of attempts on this machine, as sources of bytes for threads (MESSIAHS 5.3.3)."""

from messiahs.core.model.ids import AttemptId
from messiahs.daemon.storage.hashing import HashBeside
from messiahs.errors import ChannelError, ExecutorError
from messiahs.executor.contract import Executor


class AttemptOutput:
    """What an ended attempt wrote, hashed beside if it is read from its beginning for another module (mutable)."""

    def __init__(
        self, executor: Executor, attempt: AttemptId, *, name: str, offset: int = 0, is_hashed: bool = False
    ) -> None:
        self._executor, self._attempt, self._name, self._offset = executor, attempt, name, offset
        self._hash = HashBeside() if is_hashed and not offset else None
        self._is_closed = False
        self.sha256 = b""

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes; `FileNotFoundError` if the output is gone permanently."""
        if self._is_closed:
            raise ChannelError("the stream was closed")
        piece = read_piece(self._executor, self._attempt, name=self._name, offset=self._offset, limit=len(buffer))
        self._offset += len(piece)
        buffer[: len(piece)] = piece
        if self._hash is not None and piece:
            # The caller sends the piece while it is hashed.
            self._hash.wait(unhashed=1)
            self._hash.add(memoryview(piece))
        elif self._hash is not None:
            self.sha256 = self._hash.digest()
        return len(piece)

    def close(self) -> None:
        """End the source; repeated calls are allowed."""
        self._is_closed = True
        if self._hash is not None:
            self._hash.close()


def read_piece(executor: Executor, attempt: AttemptId, *, name: str, offset: int, limit: int) -> bytes:
    """Read a piece of an output; `FileNotFoundError` if it is gone permanently, else `ChannelError`."""
    try:
        return executor.read_output(attempt, name, offset=offset, limit=limit)
    except ExecutorError as error:
        raise (ChannelError if error.transient else FileNotFoundError)(str(error)) from error
