"""The task channel: tasks in transit to their executors (MESSIAHS 5.3.3)."""

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from messiahs.channel.contract import (
    Callbacks,
    ChannelSettings,
    Counters,
    OutgoingStream,
    Peer,
    Stream,
)
from messiahs.channel.jobs import Jobs
from messiahs.channel.transport import Transport
from messiahs.core.interface.events import TransferFailed, TransferReceived
from messiahs.core.interface.messages import TaskTransfer
from messiahs.core.interface.transfer_answers import TransferAnswer, TransferFailure
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.routes import Address, way_of
from messiahs.errors import ChannelError, CodecError, UntrustedError
from messiahs.wire.codec import (
    answer_from_bytes,
    answer_to_bytes,
    decoding_transfer_and_files,
    joined_transfers,
    transfer_to_bytes,
)

QUEUE_LIMIT_TASKS: Final = 16_384
CLAIM_LIMIT: Final = 65_536
_WRITE_LIMIT_TASKS: Final = 256
_TASKS_IN_PART: Final = 4
_WRITE_LIMIT_BYTES: Final = 512 << 10
_ANSWER_LIMIT: Final = 1_024
_KNOWN_SECONDS: Final = 600.0
"""A file is not sent again on a stream for this long. Executors keep unused files longer."""


class _Queued(NamedTuple):
    """A serialised transfer. Transfers of the same claim, ticket and supplier can be joined."""

    key: tuple[ClaimId, bytes]
    content: bytes
    tasks: int
    file: bytes = b""
    """Supplier and hash of the file, if this is a file."""


class Transfers:
    """One stream to each executor, opened when needed and closed when idle.

    The claims that were sent on a stream are remembered until it ends; each gets `TransferFailed` if it breaks.
    """

    def __init__(
        self,
        settings: ChannelSettings,
        transport: Transport,
        callbacks: Callbacks,
        counters: Mapping[SystemId, Counters],
    ) -> None:
        self._own, self._idle_seconds = settings.name, settings.idle_seconds
        self._transport, self._callbacks, self._counters = transport, callbacks, counters
        self._open: dict[tuple[SystemId, str], TransferStream] = {}
        self._jobs = Jobs()

    def send(self, to: SystemId, address: Address, *, transfer: TaskTransfer, files: Mapping[bytes, bytes]) -> None:
        """Send tasks after their files; those of a claim arrive in order, and a broken stream loses the last ones."""
        assert to != self._own, "tasks for this system use no channel"
        counters = self._counters.get(to, Counters())
        try:
            queued = _serialized(transfer, files)
        except CodecError as error:
            counters.dropped += 1
            self._callbacks.on_dropped(to, str(error))
            refused = TransferFailure.REFUSED
            failed = TransferFailed(claim=transfer.claim, text=str(error), kind=refused, to=to)
            asyncio.get_running_loop().call_soon(self._callbacks.on_event, failed)
            return
        stream = self._open.get((to, way_of(address)))
        if stream is None or stream.is_closing:
            opened = self._transport.open_transfers(to, address)
            stream = TransferStream(to, opened, self._callbacks, counters, idle_seconds=self._idle_seconds)
            self._open[to, way_of(address)] = stream
            self._jobs.begin(self._run(to, address, stream=stream))
        for part in queued:
            stream.put(part)

    async def stop(self) -> None:
        """End every stream without reporting failures."""
        await self._jobs.stop()

    async def _run(self, to: SystemId, address: Address, *, stream: "TransferStream") -> None:
        try:
            await stream.run()
        finally:
            if self._open.get((to, way_of(address))) is stream:
                del self._open[to, way_of(address)]


class TransferStream:
    """A stream to one executor or hop."""

    def __init__(
        self, to: SystemId, stream: OutgoingStream, callbacks: Callbacks, counters: Counters, *, idle_seconds: float
    ) -> None:
        self._to, self._idle_seconds = to, idle_seconds
        self._stream, self._callbacks, self._counters = stream, callbacks, counters
        self._queue: deque[_Queued] = deque()
        self._queued_tasks = 0
        self._files: dict[bytes, float] = {}
        self._claims: dict[ClaimId, None] = {}
        self._wake, self._is_overfull = asyncio.Event(), asyncio.Event()
        self.is_closing = False

    def put(self, queued: _Queued) -> None:
        """Queue a transfer. An executor that does not keep up loses the stream."""
        if queued.file and self._is_known(queued.file):
            return
        claim = queued.key[0]
        # Removed first, so that claims stay ordered by their last transfer.
        self._claims.pop(claim, None)
        self._claims[claim] = None
        if len(self._claims) > CLAIM_LIMIT:
            del self._claims[next(iter(self._claims))]
        self._queue.append(queued)
        self._queued_tasks += queued.tasks
        self._wake.set()
        if self._queued_tasks > QUEUE_LIMIT_TASKS:
            self._is_overfull.set()

    def _is_known(self, file: bytes) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._files.get(file, -_KNOWN_SECONDS) < _KNOWN_SECONDS:
            return True
        if len(self._files) >= CLAIM_LIMIT:
            self._files.clear()
        self._files[file] = now
        return False

    async def run(self) -> None:
        """Send tasks and read answers until the stream breaks or is idle for long."""
        answers = asyncio.create_task(self._read_answers())
        writing = asyncio.create_task(self._write())
        overfull = asyncio.create_task(self._is_overfull.wait())
        try:
            done, _ = await asyncio.wait({answers, writing, overfull}, return_when=asyncio.FIRST_COMPLETED)
            if overfull in done:
                self._break("the executor does not read its tasks")
            elif answers not in done:
                await writing
                await self._stream.finish()
                await answers
            else:
                await answers
                self._break("the executor ended the task channel")
        except ChannelError as error:
            is_untrusted = isinstance(error, UntrustedError)
            kind = TransferFailure.UNTRUSTED if is_untrusted else TransferFailure.BROKEN
            self._break(str(error), kind, public=error.public)
        finally:
            self.is_closing = True
            for task in (answers, writing, overfull):
                task.cancel()
            await asyncio.gather(answers, writing, overfull, return_exceptions=True)
            self._stream.close()

    async def _write(self) -> None:
        while await self._is_woken():
            while self._queue:
                content = joined_transfers(self._next_batch())
                await self._stream.write(content)
                self._counters.sent += 1
                self._counters.sent_bytes += len(content)

    async def _is_woken(self) -> bool:
        """Wait for something to send; False after a long idle time, when the stream closes."""
        try:
            # `wait_for` would lose a cancellation that follows a wake-up at once.
            async with asyncio.timeout(self._idle_seconds):
                await self._wake.wait()
        except TimeoutError:
            self.is_closing = True
            return bool(self._queue)
        self._wake.clear()
        return True

    def _next_batch(self) -> list[bytes]:
        """Take transfers of one claim from the front of the queue."""
        first = self._queue.popleft()
        batch, size, tasks = [first.content], len(first.content), first.tasks
        while self._queue and self._queue[0].key == first.key:
            size += len(self._queue[0].content)
            if size > _WRITE_LIMIT_BYTES or tasks + self._queue[0].tasks > _WRITE_LIMIT_TASKS:
                break
            tasks += self._queue[0].tasks
            batch.append(self._queue.popleft().content)
        self._queued_tasks -= tasks
        return batch

    async def _read_answers(self) -> None:
        while (content := await self._stream.read()) is not None:
            self._counters.received_bytes += len(content)
            await self._callbacks.in_turn(self._to, iter(()), len(content))
            try:
                answer = answer_from_bytes(content)
            except CodecError as error:
                self._counters.dropped += 1
                self._fail(f"the executor's answer is malformed: {error}", TransferFailure.REFUSED)
                continue
            if answer.claim is None:
                self._fail(answer.problem, answer.kind)
            elif self._claims.pop(answer.claim, answer) is None:
                # Files that arrived with its tasks may not have been stored.
                self._files.clear()
                self._report(answer.claim, answer.problem, answer.kind)

    def _break(self, text: str, kind: TransferFailure = TransferFailure.BROKEN, *, public: str = "") -> None:
        # Set first, so that transfers sent in reaction to the events use a new stream.
        self.is_closing = True
        self._fail(text, kind, public=public)

    def _fail(self, text: str, kind: TransferFailure, *, public: str = "") -> None:
        claims, self._claims = self._claims, {}
        # The executor may have failed to store one of them.
        self._files.clear()
        for claim in claims:
            self._report(claim, text, kind, public=public)

    def _report(self, claim: ClaimId, text: str, kind: TransferFailure, *, public: str = "") -> None:
        self._callbacks.on_event(TransferFailed(claim=claim, text=text, public=public, kind=kind, to=self._to))


def _serialized(transfer: TaskTransfer, files: Mapping[bytes, bytes]) -> list[_Queued]:
    """Serialise files and then the transfer, in parts that fit into messages."""
    key = (transfer.claim, transfer.ticket + transfer.supplier)
    empty = replace(transfer, tasks=())
    parts = [
        _Queued(key, transfer_to_bytes(empty, (content,)), 1, transfer.supplier + sha256)
        for sha256, content in files.items()
    ]
    step = _TASKS_IN_PART if not any(task.command.inputs or task.command.outputs for task in transfer.tasks) else 1
    for start in range(0, max(1, len(transfer.tasks)), step):
        tasks = transfer.tasks[start : start + step]
        parts.append(_Queued(key, transfer_to_bytes(replace(transfer, tasks=tasks)), len(tasks)))
    return parts


class BringingStreams:
    """The streams on which peers bring tasks. Each claim is answered on the stream that brought its last tasks."""

    def __init__(self, callbacks: Callbacks, counters: Mapping[SystemId, Counters]) -> None:
        self._callbacks, self._counters = callbacks, counters
        self._keeping: WeakValueDictionary[SystemId, asyncio.Lock] = WeakValueDictionary()
        """Systems whose files are being stored: of one system those of one message at a time."""
        # By system, because one system may have any number of keys, and open a stream with each.
        self._streams: dict[SystemId, dict[tuple[bytes, ClaimId], _Bringing]] = {}

    async def receive(self, peer: Peer, stream: Stream) -> None:
        """Deliver tasks from a peer until it ends the stream; dropped transfers are reported to it."""
        bringing = _Bringing(stream)
        answering = asyncio.create_task(bringing.answer())
        try:
            while (content := await stream.read()) is not None:
                await self._take(peer, content, bringing)
        finally:
            self._forget(peer, bringing)
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)

    def refuse(self, peer: Peer, answer: TransferAnswer) -> None:
        """Queue an answer on the stream that brought the tasks of its claim; without one it is dropped."""
        streams = self._streams.get(peer.system, {})
        bringing = streams.get((peer.key, answer.claim)) if answer.claim is not None else None
        if bringing is not None:
            self._counters.get(peer.system, Counters()).dropped += 1
            bringing.put(answer)

    async def _take(self, peer: Peer, content: bytes, bringing: "_Bringing", /) -> None:
        callbacks, counters = self._callbacks, self._counters.get(peer.system, Counters())
        counters.received_bytes += len(content)
        claim = None
        decoded: list[tuple[TaskTransfer, tuple[bytes, ...]]] = []
        try:
            await callbacks.in_turn(peer.system, _decode(content, decoded), len(content))
            ((transfer, files),) = decoded
            claim, problem = transfer.claim, ""
            if files or any(task.command.inputs for task in transfer.tasks):
                keeping = self._keeping.setdefault(peer.system, asyncio.Lock())
                # Otherwise its streams would keep all threads busy that store files.
                async with keeping:
                    problem = await callbacks.arrivals.keep(peer, transfer, files)
        except CodecError as error:
            problem = str(error)
        if problem:
            counters.dropped += 1
            callbacks.on_dropped(peer.system, problem)
            bringing.put(TransferAnswer(claim=claim, problem=f"a transfer was dropped: {problem}"))
            return
        counters.received += 1
        if transfer.tasks or not files:
            self._note(peer, transfer.claim, bringing)
            received = TransferReceived(sender=peer.system, message=transfer, key=peer.key)
            await callbacks.in_turn(peer.system, iter((received,)), 0)

    def _note(self, peer: Peer, claim: ClaimId, bringing: "_Bringing", /) -> None:
        streams = self._streams.setdefault(peer.system, {})
        earlier = streams.pop((peer.key, claim), None)
        if earlier is not None:
            earlier.claims.discard(claim)
        streams[peer.key, claim] = bringing
        bringing.claims.add(claim)
        if len(streams) > CLAIM_LIMIT:
            oldest = next(iter(streams))
            streams.pop(oldest).claims.discard(oldest[1])

    def _forget(self, peer: Peer, bringing: "_Bringing") -> None:
        streams = self._streams.get(peer.system, {})
        for claim in bringing.claims:
            del streams[peer.key, claim]
        if not streams:
            self._streams.pop(peer.system, None)


def _decode(content: bytes, into: list[tuple[TaskTransfer, tuple[bytes, ...]]], /) -> Iterator[None]:
    into.append((yield from decoding_transfer_and_files(content)))
    yield None


class _Bringing:
    """A stream on which a peer brings tasks, with the answers that it has not read yet (mutable)."""

    def __init__(self, stream: Stream) -> None:
        self.claims: set[ClaimId] = set()
        self._stream = stream
        self._answers: asyncio.Queue[TransferAnswer] = asyncio.Queue(_ANSWER_LIMIT)

    def put(self, answer: TransferAnswer) -> None:
        """Queue an answer; a peer that does not read its answers misses the last ones."""
        if not self._answers.full():
            self._answers.put_nowait(answer)

    async def answer(self) -> None:
        """Send answers until the stream ends."""
        while True:
            await self._stream.write(answer_to_bytes(await self._answers.get()))
