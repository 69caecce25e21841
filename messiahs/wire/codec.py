"""Conversion between core messages and the wire format: the interface of this package.

`encode_` and `decode_` work on protobuf messages, `_to_bytes` and `_from_bytes` on their serialised form. They raise
`CodecError` and nothing else. Decoding returns what was encoded, except that texts and lists of reasons are cut to
their limits.
"""

from messiahs.wire.control import (
    control_from_bytes,
    control_to_bytes,
    decode_control,
    encode_control,
    joined_control,
)
from messiahs.wire.feeding import (
    FEED_PIECE_BYTES,
    FeedAnswer,
    FeedPiece,
    FeedRequest,
    feed_answer_from_bytes,
    feed_answer_to_bytes,
    feed_piece_from_bytes,
    feed_piece_to_bytes,
    feed_request_from_bytes,
    feed_request_to_bytes,
)
from messiahs.wire.files import (
    PutAnswer,
    PutFile,
    PutRequest,
    ReadChunk,
    chunk_from_bytes,
    chunk_to_bytes,
    put_answer_from_bytes,
    put_answer_to_bytes,
    put_content_from_bytes,
    put_content_to_bytes,
    put_request_from_bytes,
    put_request_to_bytes,
)
from messiahs.wire.task import (
    ReadRequest,
    answer_from_bytes,
    answer_to_bytes,
    decode_transfer,
    encode_transfer,
    joined_transfers,
    read_request_from_bytes,
    read_request_to_bytes,
    transfer_and_files_from_bytes,
    transfer_from_bytes,
    transfer_to_bytes,
)
from messiahs.wire.update import (
    decode_status_vector,
    encode_status_vector,
    status_vector_from_bytes,
    status_vector_to_bytes,
)

__all__ = [
    "FEED_PIECE_BYTES",
    "FeedAnswer",
    "FeedPiece",
    "FeedRequest",
    "PutAnswer",
    "PutFile",
    "PutRequest",
    "ReadChunk",
    "ReadRequest",
    "answer_from_bytes",
    "answer_to_bytes",
    "chunk_from_bytes",
    "chunk_to_bytes",
    "control_from_bytes",
    "control_to_bytes",
    "decode_control",
    "decode_status_vector",
    "decode_transfer",
    "encode_control",
    "encode_status_vector",
    "encode_transfer",
    "feed_answer_from_bytes",
    "feed_answer_to_bytes",
    "feed_piece_from_bytes",
    "feed_piece_to_bytes",
    "feed_request_from_bytes",
    "feed_request_to_bytes",
    "joined_control",
    "joined_transfers",
    "put_answer_from_bytes",
    "put_answer_to_bytes",
    "put_content_from_bytes",
    "put_content_to_bytes",
    "put_request_from_bytes",
    "put_request_to_bytes",
    "read_request_from_bytes",
    "read_request_to_bytes",
    "status_vector_from_bytes",
    "status_vector_to_bytes",
    "transfer_and_files_from_bytes",
    "transfer_from_bytes",
    "transfer_to_bytes",
]
