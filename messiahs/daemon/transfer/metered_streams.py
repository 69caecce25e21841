"""Streams of other systems as they count against what these may move through this module."""

import time
from collections.abc import Callable

from messiahs.channel.byte_streams.bulk_streams import LEAST_BYTES_PER_SECOND, SILENCE_SECONDS
from messiahs.channel.contract import ByteSource, Feed, OutputSource, Receipt
from messiahs.daemon.transfer.budgets import Stream
from messiahs.errors import ChannelError
from messiahs.wire.codec import FeedAnswer, FeedPiece


class MeteredSource:
    """A source whose bytes are counted, and wait where a rate is exceeded (mutable)."""

    def __init__(self, source: ByteSource, stream: Stream, *, sender: str) -> None:
        self._source, self._stream, self._sender = source, stream, sender
        self._waited_seconds, self._read_bytes = 0.0, 0

    def read_into(self, buffer: memoryview, /) -> int:
        """Read the next bytes; `BudgetError` beyond a bound."""
        began = time.monotonic()
        size = self._source.read_into(buffer[: self._stream.piece_bytes])
        self._waited_seconds += time.monotonic() - began
        self._read_bytes += size
        late_seconds = self._waited_seconds - SILENCE_SECONDS
        if size and late_seconds * LEAST_BYTES_PER_SECOND > self._read_bytes:
            raise ChannelError(f"{self._sender} sends less than {LEAST_BYTES_PER_SECOND} bytes a second")
        self._stream.wait_for(size)
        return size

    def close(self) -> None:
        """End the source."""
        self._stream.close()
        self._source.close()


class MeteredOutput(MeteredSource):
    """An output whose bytes are counted."""

    def __init__(self, output: OutputSource, stream: Stream, *, sender: str) -> None:
        super().__init__(output, stream, sender=sender)
        self._output = output

    @property
    def sha256(self) -> bytes:
        """The hash of the output."""
        return self._output.sha256


class MeteredReceipt:
    """A receipt whose bytes are counted. Its stream is opened when it begins."""

    def __init__(
        self, receipt: Receipt, open_stream: Callable[[], Stream], *, sender: str, sizes: tuple[int, ...]
    ) -> None:
        self._receipt, self._open_stream, self._sender, self._sizes = receipt, open_stream, sender, sizes
        self._stream: Stream | None = None

    async def begin(self) -> tuple[int, ...]:
        """Return how many bytes of each file need not be sent; `BudgetError` if the others are too many."""
        self._stream = self._open_stream()
        offsets = await self._receipt.begin()
        self._stream.announce(sum(self._sizes) - sum(offsets))
        return offsets

    async def take(self, source: ByteSource, /) -> None:
        """Take the files."""
        assert self._stream is not None, "a receipt begins before it takes files"
        await self._receipt.take(MeteredSource(source, self._stream, sender=self._sender))

    async def close(self) -> None:
        """End the receipt."""
        if self._stream is not None:
            self._stream.close()
        await self._receipt.close()


class MeteredFeed:
    """Standard input whose bytes are counted before they move."""

    def __init__(self, feed: Feed, stream: Stream) -> None:
        self._feed, self._stream = feed, stream

    async def send(self, piece: FeedPiece) -> None:
        """Send a piece; `BudgetError` beyond a bound."""
        await self._stream.wait_in_loop(len(piece.content))
        await self._feed.send(piece)

    async def answer(self) -> FeedAnswer | None:
        """Wait for the next answer; `BudgetError` if the stream gives way to another one."""
        async with self._stream.unless_it_gives_way():
            return await self._feed.answer()

    def close(self) -> None:
        """End it."""
        self._stream.close()
        self._feed.close()
