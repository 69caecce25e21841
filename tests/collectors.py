"""Collectors of spans on loopback: one that decodes what it gets, and some that are of no use."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

PATH = "/v1/traces"


@dataclass(slots=True)
class Collector:
    """What a collector has taken, and how it answers (mutable)."""

    endpoint: str = ""
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)
    """Types of contents."""
    statuses: list[int] = field(default_factory=list)
    """Of the next answers; 200 afterwards."""
    location: str = ""
    """Where it sends whoever asks, if it answers with a redirection."""

    @property
    def spans(self) -> list[Span]:
        """Return all spans in the order of their arrival."""
        scopes = (scope for each in self.requests for found in each.resource_spans for scope in found.scope_spans)
        return [span for scope in scopes for span in scope.spans]

    def attributes(self) -> list[dict[str, str | int]]:
        """Return the attributes of all spans."""
        return [attributes_of(span) for span in self.spans]


def attributes_of(span: Span) -> dict[str, str | int]:
    """Return the attributes of a span."""
    return {
        each.key: each.value.string_value if each.value.HasField("string_value") else each.value.int_value
        for each in span.attributes
    }


@contextmanager
def collecting(certificate: tuple[Path, Path] | None = None) -> Iterator[Collector]:
    """Run a collector until the context ends; with a certificate and its key it speaks TLS."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = collector.statuses.pop(0) if collector.statuses else 200
            if status == 200 and self.path == PATH:
                collector.kinds.add(self.headers["Content-Type"])
                collector.requests.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(status)
            if collector.location:
                self.send_header("Location", collector.location)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "http" if certificate is None else "https"
    collector.endpoint = f"{scheme}://127.0.0.1:{server.server_port}{PATH}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def silent_collector() -> Iterator[str]:
    """Yield the endpoint of a collector that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"


@contextmanager
def endless_collector(answer: bytes) -> Iterator[str]:
    """Yield the endpoint of a collector that repeats the same bytes until nobody reads them any more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        is_over = threading.Event()

        def flood(connection: socket.socket) -> None:
            with connection:
                while not is_over.is_set():
                    try:
                        connection.sendall(answer)
                    except OSError:
                        return

        def accept() -> None:
            while not is_over.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                threading.Thread(target=flood, args=(connection,), daemon=True).start()

        listener.settimeout(0.1)
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}"
        finally:
            is_over.set()
            accepting.join()


def certificate_of_loopback(folder: Path, name: str) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that vouches for itself, and its key; return their files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / f"{name}.pem", folder / f"{name}.key"
    files[0].write_bytes(built.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return files
