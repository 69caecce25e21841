"""Bytes from behind this border: whoever reads or sends them learns what failed, by the border's own texts.

The errors say whether a retry helps, as those of the systems behind it do.
"""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from messiahs.channel.contract import Feed, OutputSource
from messiahs.core.border.texts import GONE, text_of_failure
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.errors import BeyondError, ChannelError, DeniedError, RefusedError
from messiahs.wire.codec import FeedAnswer, FeedPiece


def with_own_text(error: ChannelError, /) -> RefusedError | BeyondError:
    """Return an error of a system behind this border with the border's own text."""
    if isinstance(error, RefusedError) and not isinstance(error, DeniedError):
        return RefusedError(text_of_failure(TransferFailure.REFUSED))
    return BeyondError(text_of_failure(TransferFailure.BEYOND))


@contextmanager
def with_own_texts() -> Iterator[None]:
    """Raise the errors of the block with texts of the border."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(GONE) from error
    except ChannelError as error:
        raise with_own_text(error) from error


async def crossing_pieces(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of an output."""
    with with_own_texts():
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece


class CrossingOutput:
    """A large output."""

    def __init__(self, output: OutputSource) -> None:
        self._output = output

    @property
    def sha256(self) -> bytes:
        """The hash of the output."""
        return self._output.sha256

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes."""
        with with_own_texts():
            return self._output.read_into(buffer)

    def close(self) -> None:
        """End the source."""
        self._output.close()


class CrossingFeed:
    """Standard input on its way to an attempt behind this border."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed

    async def send(self, piece: FeedPiece) -> None:
        """Send a piece."""
        with with_own_texts():
            await self._feed.send(piece)

    async def answer(self) -> FeedAnswer | None:
        """Wait for the next answer."""
        with with_own_texts():
            return await self._feed.answer()

    def close(self) -> None:
        """End it."""
        self._feed.close()
