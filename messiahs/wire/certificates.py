"""Certificates between neighbors of one site (MESSIAHS 5.3): revoked ones, and renewals through parents."""

from dataclasses import dataclass
from typing import Final

from messiahs.errors import CodecError
from messiahs.wire.limits import (
    CERTIFICATE_LIMIT_BYTES,
    CERTIFICATE_REQUEST_LIMIT_BYTES,
    TEXT_LIMIT_BYTES,
    at_most,
    counter,
    line,
    shortened,
)
from messiahs.wire.parsing import parsed, serialized
from messiahs.wire.v1 import certificates_pb2

REVOKED_LIMIT_BYTES: Final = 1_000_000
RENEWAL_HOP_LIMIT: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokedCertificates:
    """A list of revoked certificates (PEM)."""

    pem: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewRequest:
    """Asks for another certificate with a request and the present certificate (both PEM)."""

    number: int
    certificate_request: bytes
    certificate: bytes
    hops: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RenewAnswer:
    """Answers with a certificate (PEM), or with the reason for which there is none."""

    number: int
    certificate: bytes = b""
    text: str = ""


CertificateMessage = RevokedCertificates | RenewRequest | RenewAnswer


def certificate_message_to_bytes(message: CertificateMessage) -> bytes:
    """Serialise a message; a `CodecError` if it exceeds a limit."""
    wire = certificates_pb2.CertificateMessage()
    match message:
        case RevokedCertificates():
            at_most(len(message.pem), REVOKED_LIMIT_BYTES, what="bytes of revoked certificates")
            wire.revoked.list = message.pem
        case RenewRequest():
            wire.request.number, wire.request.hops = message.number, message.hops
            wire.request.certificate_request, wire.request.certificate = (
                message.certificate_request,
                message.certificate,
            )
        case RenewAnswer():
            wire.answer.number, wire.answer.certificate = message.number, message.certificate
            wire.answer.text = shortened(message.text, TEXT_LIMIT_BYTES)
    return serialized(wire)


def certificate_message_from_bytes(content: bytes) -> CertificateMessage | None:
    """Parse a message; None if its kind is unknown, and a `CodecError` if a value is outside its bound."""
    wire = parsed(certificates_pb2.CertificateMessage(), content)
    match wire.WhichOneof("kind"):
        case "revoked":
            at_most(len(wire.revoked.list), REVOKED_LIMIT_BYTES, what="bytes of revoked certificates")
            return RevokedCertificates(pem=wire.revoked.list)
        case "request":
            return _request(wire.request)
        case "answer":
            at_most(len(wire.answer.certificate), CERTIFICATE_LIMIT_BYTES, what="bytes of certificate")
            return RenewAnswer(
                number=counter(wire.answer.number),
                certificate=wire.answer.certificate,
                text=line(wire.answer.text, TEXT_LIMIT_BYTES),
            )
        case _:
            return None


def _request(wire: certificates_pb2.RenewRequest) -> RenewRequest:
    if wire.hops > RENEWAL_HOP_LIMIT:
        raise CodecError(f"a renewal has passed {wire.hops} modules, at most {RENEWAL_HOP_LIMIT} are allowed")
    at_most(len(wire.certificate_request), CERTIFICATE_REQUEST_LIMIT_BYTES, what="bytes of certificate request")
    at_most(len(wire.certificate), CERTIFICATE_LIMIT_BYTES, what="bytes of certificate")
    return RenewRequest(
        number=counter(wire.number),
        certificate_request=wire.certificate_request,
        certificate=wire.certificate,
        hops=wire.hops,
    )
