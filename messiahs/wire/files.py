"""Files on the task channel: those that a command declares, and their transfer (MESSIAHS 5.3.3)."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from messiahs.core.interface.messages import Command
from messiahs.core.interface.transfer_answers import TransferFailure
from messiahs.core.model.ids import ClaimId, Ticket
from messiahs.core.model.task_files import InputFile, description_bytes
from messiahs.errors import CodecError
from messiahs.wire.ids import read_claim, write_claim
from messiahs.wire.limits import (
    FILE_LIMIT,
    TEXT_LIMIT_BYTES,
    at_most,
    check_kind,
    counter,
    declared_names,
    described,
    line,
    relative_path,
    secret,
    separate_paths,
    sha256,
    shortened,
)
from messiahs.wire.parsing import parsed, serialized
from messiahs.wire.v1 import task_pb2

_LAST_PORT: Final = 65_535
TO_FAILURE: Final = {
    TransferFailure.REFUSED: task_pb2.TRANSFER_FAILURE_REFUSED,
    TransferFailure.DENIED: task_pb2.TRANSFER_FAILURE_DENIED,
    TransferFailure.BEYOND: task_pb2.TRANSFER_FAILURE_BEYOND,
}
_FROM_FAILURE: Final[dict[int, TransferFailure]] = {number: kind for kind, number in TO_FAILURE.items()}


class PutFile(NamedTuple):
    """Hash and size of a file to transfer."""

    sha256: bytes
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PutRequest:
    """Announces files that the origin of a claim sends to its executor."""

    claim: ClaimId
    ticket: Ticket
    files: tuple[PutFile, ...]
    supplier: bytes = b""
    """The system behind a hop that supplied the files, by a name of the hop's; empty: the sender."""
    bulk: "BulkOffer | None" = None
    """A stream that the receiver may dial."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkOffer:
    """A stream of raw bytes that a peer may open: the port, a token that works once, the key of who listens."""

    port: int
    token: bytes
    key: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PutAnswer:
    """How much of each file the executor has, or in `problem` why it refuses them.

    The contents may be sent on the stream `bulk`, or are expected on the one that the request offers (`is_dialed`).
    """

    offsets_bytes: tuple[int, ...] = ()
    problem: str = ""
    bulk: BulkOffer | None = None
    kind: TransferFailure = TransferFailure.REFUSED
    """`REFUSED`, `DENIED` or `BEYOND`; of meaning with a problem only."""
    is_dialed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadChunk:
    """A piece of an output, or after the last piece the hash of the whole output, if the read is to end with it.

    `bulk` offers a stream of raw bytes instead of pieces, and with `is_dialed` they come on the one that the request
    offers; the last chunk then has their number, too.
    """

    content: bytes = b""
    sha256: bytes = b""
    bulk: BulkOffer | None = None
    sent_bytes: int = 0
    is_dialed: bool = False


def write_files(wire: task_pb2.Command, command: Command) -> None:
    """Fill in the inputs and outputs of a command."""
    for one in command.inputs:
        wire.inputs.add(
            name=one.name,
            sha256=one.sha256,
            size_bytes=one.size_bytes,
            is_executable=one.is_executable,
            link_target=one.link_target,
            is_folder=one.is_folder,
        )
    wire.outputs.extend(command.outputs)
    check_files(wire)


def check_files(wire: task_pb2.Command) -> None:
    """Refuse files that a working directory cannot hold, and too many of them."""
    if not wire.inputs and not wire.outputs:
        return
    described(description_bytes(wire.inputs, wire.outputs))
    separate_paths(one.name for one in wire.inputs)
    for one in wire.inputs:
        relative_path(one.name)
        counter(one.size_bytes)
        check_kind(one.name, link_target=one.link_target, is_folder=one.is_folder, size_bytes=one.size_bytes)
        if one.sha256 or not (one.link_target or one.is_folder):
            sha256(one.sha256)
    declared_names(wire.outputs)


def read_inputs(wire: task_pb2.Command) -> tuple[InputFile, ...]:
    """Return the inputs of a command that `check_files` has accepted."""
    return tuple(
        InputFile(
            name=one.name,
            sha256=one.sha256,
            size_bytes=one.size_bytes,
            is_executable=one.is_executable,
            link_target=one.link_target,
            is_folder=one.is_folder,
        )
        for one in wire.inputs
    )


def put_request_to_bytes(request: PutRequest) -> bytes:
    """Serialise the first message of a stream of files."""
    at_most(len(request.files), FILE_LIMIT, what="files")
    wire = task_pb2.PutMessage()
    write_claim(wire.request.claim, request.claim)
    wire.request.ticket, wire.request.supplier = request.ticket, request.supplier
    write_offer(wire.request, request.bulk)
    for one in request.files:
        wire.request.files.add(sha256=one.sha256, size_bytes=one.size_bytes)
    return serialized(wire)


def put_request_from_bytes(content: bytes) -> PutRequest:
    """Parse the first message of a stream of files."""
    wire = parsed(task_pb2.PutMessage(), content)
    if wire.WhichOneof("kind") != "request":
        raise CodecError("file contents arrived before a request")
    at_most(len(wire.request.files), FILE_LIMIT, what="files")
    files = tuple(PutFile(sha256(one.sha256), counter(one.size_bytes)) for one in wire.request.files)
    if len({one.sha256 for one in files}) != len(files):
        raise CodecError("a request lists a file twice")
    return PutRequest(
        claim=read_claim(wire.request.claim),
        ticket=Ticket(secret(wire.request.ticket)),
        files=files,
        supplier=secret(wire.request.supplier) if wire.request.supplier else b"",
        bulk=offer_in(wire.request.bulk) if wire.request.HasField("bulk") else None,
    )


def put_content_to_bytes(content: bytes) -> bytes:
    """Serialise a piece of a file."""
    return serialized(task_pb2.PutMessage(content=content))


def put_content_from_bytes(content: bytes) -> bytes:
    """Parse a piece of a file."""
    wire = parsed(task_pb2.PutMessage(), content)
    if wire.WhichOneof("kind") != "content":
        raise CodecError("a stream carries a second request")
    return wire.content


def put_answer_to_bytes(answer: PutAnswer) -> bytes:
    """Serialise the answer to the sender of files."""
    problem = shortened(answer.problem, TEXT_LIMIT_BYTES)
    wire = task_pb2.PutAnswer(
        offsets_bytes=answer.offsets_bytes,
        problem=problem,
        kind=TO_FAILURE[answer.kind],
        is_dialed=answer.is_dialed,
    )
    write_offer(wire, answer.bulk)
    return serialized(wire)


def put_answer_from_bytes(content: bytes) -> PutAnswer:
    """Parse the answer to the sender of files."""
    wire = parsed(task_pb2.PutAnswer(), content)
    at_most(len(wire.offsets_bytes), FILE_LIMIT, what="offsets")
    return PutAnswer(
        offsets_bytes=tuple(map(counter, wire.offsets_bytes)),
        problem=line(wire.problem, TEXT_LIMIT_BYTES),
        bulk=offer_in(wire.bulk) if wire.HasField("bulk") else None,
        kind=failure_of(wire.kind),
        is_dialed=wire.is_dialed,
    )


def failure_of(number: int) -> TransferFailure:
    """Return a kind of failure; one of a newer release counts as refused."""
    return _FROM_FAILURE.get(number, TransferFailure.REFUSED)


def chunk_to_bytes(chunk: ReadChunk) -> bytes:
    """Serialise a piece of an output."""
    wire = task_pb2.ReadChunk(
        content=chunk.content, sha256=chunk.sha256, sent_bytes=chunk.sent_bytes, is_dialed=chunk.is_dialed
    )
    write_offer(wire, chunk.bulk)
    return serialized(wire)


def chunk_from_bytes(content: bytes) -> ReadChunk:
    """Parse a piece of an output."""
    wire = parsed(task_pb2.ReadChunk(), content)
    return ReadChunk(
        content=wire.content,
        sha256=sha256(wire.sha256) if wire.sha256 else b"",
        bulk=offer_in(wire.bulk) if wire.HasField("bulk") else None,
        sent_bytes=counter(wire.sent_bytes),
        is_dialed=wire.is_dialed,
    )


def write_offer(wire: task_pb2.PutRequest | task_pb2.PutAnswer | task_pb2.ReadChunk, offer: BulkOffer | None) -> None:
    """Fill in the offer of a stream, if there is one."""
    if offer is not None:
        wire.bulk.CopyFrom(offer_to(offer))


def offer_to(offer: BulkOffer) -> task_pb2.BulkOffer:
    """Encode the offer of a stream."""
    return task_pb2.BulkOffer(port=offer.port, token=offer.token, key=offer.key)


def offer_in(wire: task_pb2.BulkOffer) -> BulkOffer:
    """Check the offer of a stream."""
    if not 0 < wire.port <= _LAST_PORT:
        raise CodecError(f"a stream is offered at the port {wire.port}")
    return BulkOffer(port=wire.port, token=secret(wire.token), key=secret(wire.key))
