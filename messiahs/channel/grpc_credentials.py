"""The credentials of a server of gRPC, which change without a restart (MESSIAHS 5.3)."""

from collections.abc import Callable

import grpc

from messiahs.channel.certificates.in_force import TlsInForce
from messiahs.channel.certificates.tls import TlsMaterial


def server_credentials(tls: TlsInForce, more_roots: Callable[[], bytes]) -> grpc.ServerCredentials:
    """Return credentials that use, in each handshake, what is in force then, and more roots (PEM, may be empty)."""
    current = [(tls.now, more_roots())]

    def fetch() -> grpc.ServerCertificateConfiguration | None:
        # gRPC calls this in its own threads, for each handshake.
        wanted = (tls.now, more_roots())
        if wanted[0] is current[0][0] and wanted[1] == current[0][1]:
            return None
        current[0] = wanted
        return _configuration(*wanted)

    first = _configuration(*current[0])
    # None, which leaves everything as it is, is missing in the library's types.
    return grpc.dynamic_ssl_server_credentials(first, fetch, require_client_authentication=True)  # type: ignore[arg-type]


def _configuration(material: TlsMaterial, more_roots: bytes) -> grpc.ServerCertificateConfiguration:
    roots = b"\n".join(filter(None, (material.all_roots, more_roots)))
    return grpc.ssl_server_certificate_configuration([(material.key, material.certificate)], root_certificates=roots)
