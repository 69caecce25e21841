"""Laws of the codec: decoding reverses encoding, and no bytes cause anything but a `CodecError`."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.interface.messages import ControlMessage, StatusVector, TaskTransfer
from messiahs.core.interface.transfer_answers import TransferAnswer, TransferFailure
from messiahs.core.model.ids import ClaimId, Ticket
from messiahs.errors import CodecError
from messiahs.wire.codec import (
    BulkOffer,
    FeedAnswer,
    FeedPiece,
    FeedRequest,
    PutAnswer,
    PutFile,
    PutRequest,
    ReadChunk,
    ReadRequest,
    SpliceQuery,
    answer_from_bytes,
    answer_to_bytes,
    bytes_wanted_from_bytes,
    bytes_wanted_to_bytes,
    chunk_from_bytes,
    chunk_to_bytes,
    control_from_bytes,
    control_to_bytes,
    feed_answer_from_bytes,
    feed_answer_to_bytes,
    feed_piece_from_bytes,
    feed_piece_to_bytes,
    feed_request_from_bytes,
    feed_request_to_bytes,
    joined_control,
    joined_transfers,
    pipe_begin_from_bytes,
    pipe_begin_to_bytes,
    pipe_content_from_bytes,
    pipe_content_to_bytes,
    put_answer_from_bytes,
    put_answer_to_bytes,
    put_content_from_bytes,
    put_content_to_bytes,
    put_request_from_bytes,
    put_request_to_bytes,
    read_request_from_bytes,
    read_request_to_bytes,
    status_vector_from_bytes,
    status_vector_to_bytes,
    transfer_and_files_from_bytes,
    transfer_from_bytes,
    transfer_to_bytes,
)
from messiahs.wire.reach import (
    ReachAnswer,
    ReachMessage,
    ReachRequest,
    ReachResult,
    reach_message_from_bytes,
    reach_message_to_bytes,
)
from tests.property import strategies

READERS: tuple[Callable[[bytes], object], ...] = (
    control_from_bytes,
    status_vector_from_bytes,
    transfer_and_files_from_bytes,
    read_request_from_bytes,
    answer_from_bytes,
    chunk_from_bytes,
    put_request_from_bytes,
    put_content_from_bytes,
    put_answer_from_bytes,
    feed_request_from_bytes,
    feed_piece_from_bytes,
    feed_answer_from_bytes,
    bytes_wanted_from_bytes,
    pipe_begin_from_bytes,
    pipe_content_from_bytes,
    reach_message_from_bytes,
)
feed_requests = st.builds(
    FeedRequest, claim=strategies.claim_ids, ticket=strategies.tickets, attempt=strategies.attempt_ids
)
offers = st.none() | st.builds(BulkOffer, port=st.integers(1, 65_535), token=strategies.tickets, key=strategies.tickets)
read_requests = st.builds(
    ReadRequest,
    claim=strategies.claim_ids,
    ticket=strategies.tickets,
    attempt=strategies.attempt_ids,
    name=st.sampled_from(("stdout", "a b/ü.txt")),
    offset_bytes=strategies.counters,
    follow=st.booleans(),
    offer=offers,
)
put_requests = st.builds(
    PutRequest,
    claim=strategies.claim_ids,
    ticket=strategies.tickets,
    files=st.lists(
        st.builds(PutFile, strategies.hashes, strategies.counters), max_size=3, unique_by=lambda one: one.sha256
    ).map(tuple),
    bulk=offers,
)
reach_messages: st.SearchStrategy[ReachMessage] = st.builds(ReachRequest, number=strategies.counters) | st.builds(
    ReachAnswer,
    number=strategies.counters,
    result=st.sampled_from(ReachResult),
    clock_ns=strategies.counters,
    took_ns=strategies.counters,
    address=st.sampled_from(("", "host.example.org:7101")),
    text=st.sampled_from(("", "no route to host")),
)
valid_bytes = st.one_of(
    st.lists(strategies.control_messages, min_size=1, max_size=2).map(control_to_bytes),
    strategies.status_vectors.map(status_vector_to_bytes),
    strategies.task_transfers.map(transfer_to_bytes),
    read_requests.map(read_request_to_bytes),
    put_requests.map(put_request_to_bytes),
    feed_requests.map(feed_request_to_bytes),
    strategies.tickets.map(pipe_begin_to_bytes),
    reach_messages.map(reach_message_to_bytes),
)


@given(st.lists(strategies.control_messages, max_size=4))
def test_control_messages_survive_a_round_trip(messages: list[ControlMessage]) -> None:
    assert control_from_bytes(control_to_bytes(messages)) == tuple(messages)


@given(st.lists(strategies.control_messages, max_size=4))
def test_batches_joined_are_one_batch(messages: list[ControlMessage]) -> None:
    joined = joined_control(control_to_bytes((message,)) for message in messages)
    assert joined == control_to_bytes(messages)


@given(strategies.status_vectors)
def test_status_vectors_survive_a_round_trip(message: StatusVector) -> None:
    assert status_vector_from_bytes(status_vector_to_bytes(message)) == message


@given(strategies.task_transfers)
def test_transfers_survive_a_round_trip(transfer: TaskTransfer) -> None:
    assert transfer_from_bytes(transfer_to_bytes(transfer)) == transfer


@given(strategies.task_transfers)
def test_transfers_joined_are_one_transfer(transfer: TaskTransfer) -> None:
    parts = [TaskTransfer(claim=transfer.claim, ticket=transfer.ticket, tasks=(task,)) for task in transfer.tasks] or [
        transfer
    ]
    assert transfer_from_bytes(joined_transfers([transfer_to_bytes(part) for part in parts])) == transfer


@given(read_requests)
def test_read_requests_survive_a_round_trip(request: ReadRequest) -> None:
    assert read_request_from_bytes(read_request_to_bytes(request)) == request


@given(strategies.task_transfers, st.lists(st.binary(max_size=9), max_size=3))
def test_contents_of_files_survive_a_round_trip_with_their_transfer(transfer: TaskTransfer, files: list[bytes]) -> None:
    received = transfer_and_files_from_bytes(transfer_to_bytes(transfer, files))
    assert received == (transfer, tuple(files))


@given(put_requests)
def test_requests_to_send_files_survive_a_round_trip(request: PutRequest) -> None:
    assert put_request_from_bytes(put_request_to_bytes(request)) == request


@given(st.lists(strategies.counters, max_size=3), st.binary(max_size=9), strategies.hashes)
def test_answers_and_pieces_survive_a_round_trip(offsets: list[int], content: bytes, sha256: bytes) -> None:
    brought = tuple(offsets)
    for answer in (
        PutAnswer(offsets_bytes=brought), PutAnswer(offsets_bytes=brought, is_dialed=True), PutAnswer(problem="no"),
    ):  # fmt: skip
        assert put_answer_from_bytes(put_answer_to_bytes(answer)) == answer
    assert put_content_from_bytes(put_content_to_bytes(content)) == content
    for chunk in (ReadChunk(content=content), ReadChunk(sha256=sha256), ReadChunk(is_dialed=True)):
        assert chunk_from_bytes(chunk_to_bytes(chunk)) == chunk


@given(
    st.builds(
        TransferAnswer,
        claim=st.none() | strategies.claim_ids,
        problem=st.just("no room"),
        kind=st.sampled_from((TransferFailure.REFUSED, TransferFailure.DENIED, TransferFailure.BEYOND)),
    )
)
def test_answers_to_transfers_survive_a_round_trip(answer: TransferAnswer) -> None:
    assert answer_from_bytes(answer_to_bytes(answer)) == answer


@given(request=feed_requests, content=st.binary(max_size=9), flag=st.booleans(), offset=strategies.counters)
def test_messages_about_standard_input_survive_a_round_trip(
    request: FeedRequest, content: bytes, *, flag: bool, offset: int
) -> None:
    assert feed_request_from_bytes(feed_request_to_bytes(request)) == request
    piece = FeedPiece(content=content, is_end=flag)
    assert feed_piece_from_bytes(feed_piece_to_bytes(piece)) == piece
    for answer in (
        FeedAnswer(offset_bytes=offset, is_closed=flag, has_ended=flag, has_terminal=flag),
        FeedAnswer(problem="no"),
    ):
        assert feed_answer_from_bytes(feed_answer_to_bytes(answer)) == answer


@given(token=strategies.tickets, claim=strategies.claim_ids, content=st.binary(max_size=9))
def test_messages_about_pipes_survive_a_round_trip(token: bytes, claim: ClaimId, content: bytes) -> None:
    assert bytes_wanted_from_bytes(bytes_wanted_to_bytes(token)) == token
    assert pipe_begin_from_bytes(pipe_begin_to_bytes(token)) == token
    query = SpliceQuery(claim=claim, ticket=Ticket(token))
    assert pipe_begin_from_bytes(pipe_begin_to_bytes(query)) == query
    assert pipe_content_from_bytes(pipe_content_to_bytes(content)) == content


@given(reach_messages)
def test_questions_about_reach_and_answers_survive_a_round_trip(message: ReachMessage) -> None:
    assert reach_message_from_bytes(reach_message_to_bytes(message)) == message


@pytest.mark.parametrize("read", READERS)
@given(st.data())
def test_damaged_bytes_are_decoded_or_refused(read: Callable[[bytes], object], data: st.DataObject) -> None:
    content = bytearray(data.draw(valid_bytes | st.binary(max_size=200)))
    for _ in range(data.draw(st.integers(0, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        read(bytes(content))
    except CodecError:
        return
