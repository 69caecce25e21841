"""Certificates between neighbors of one site on the wire."""

import pytest

from messiahs.errors import CodecError
from messiahs.wire.certificates import (
    CertificateMessage,
    RenewAnswer,
    RenewRequest,
    RevokedCertificates,
    certificate_message_from_bytes,
    certificate_message_to_bytes,
)
from messiahs.wire.v1 import certificates_pb2


@pytest.mark.parametrize(
    "message",
    [
        RevokedCertificates(pem=bytes(1_000_000)),
        RenewRequest(number=(1 << 63) - 1, certificate_request=b"request", certificate=b"certificate", hops=32),
        RenewAnswer(number=7, certificate=b"certificate"),
        RenewAnswer(number=7, text="why not"),
    ],
)
def test_a_message_is_read_as_it_was_written(message: CertificateMessage) -> None:
    assert certificate_message_from_bytes(certificate_message_to_bytes(message)) == message


@pytest.mark.parametrize(
    "wire",
    [
        {"revoked": certificates_pb2.RevokedCertificates(list=bytes(1_000_001))},
        {"request": certificates_pb2.RenewRequest(hops=33)},
        {"request": certificates_pb2.RenewRequest(number=1 << 63)},
        {"request": certificates_pb2.RenewRequest(certificate_request=bytes(16_385))},
        {"request": certificates_pb2.RenewRequest(certificate=bytes(65_537))},
        {"answer": certificates_pb2.RenewAnswer(certificate=bytes(65_537))},
        {"answer": certificates_pb2.RenewAnswer(text="a\nb")},
    ],
)
def test_a_value_outside_its_bound_is_refused(wire: dict[str, certificates_pb2.RenewRequest]) -> None:
    content = certificates_pb2.CertificateMessage(**wire).SerializeToString()  # type: ignore[arg-type] # one of three
    with pytest.raises(CodecError):
        certificate_message_from_bytes(content)


def test_what_is_no_message_is_refused_and_an_unknown_kind_is_none() -> None:
    with pytest.raises(CodecError):
        certificate_message_from_bytes(b"\xff")
    assert certificate_message_from_bytes(b"") is None
