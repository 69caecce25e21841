"""Certificates made by `up` and `module run`: one root for each site, kept under STATE/FEDERATION/tls.

A module with its own `certificate.pem` and `key.pem`, and its trusted roots in tls/root.pem, needs no root key here,
and none is made.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from messiahs.config.topology.neighbors import TlsPaths
from messiahs.errors import ClientError


def tls_paths(directory: Path, name: str) -> TlsPaths:
    """Return the paths of a module's key and certificate and of its site's root; the files need not exist."""
    return TlsPaths(
        certificate_file=directory / name / "certificate.pem",
        key_file=directory / name / "key.pem",
        trust_file=directory / "tls" / "root.pem",
    )


def make_certificates(directory: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Give each module of a site a new certificate signed by the site's root, which is made if missing.

    A module keeps its key, because neighbors may have bound tickets to it. A key that cannot be read is replaced.
    Returns what was wrong with certificates that were replaced. Without the key of the root, a `ClientError` says what
    is wrong with one that cannot be used.
    """
    from messiahs.channel.certificates.own_certificate import RENEWAL
    from messiahs.channel.certificates.tls import KeyAndCertificate, issue, make_root, write

    trust_file, root_key_file = directory / "tls" / "root.pem", directory / "tls" / "root.key"
    wanted = {name: tls_paths(directory, name) for name in names}
    trust_file.parent.mkdir(exist_ok=True, mode=0o700)
    with _alone(trust_file.parent / "lock"):
        if trust_file.exists() and not root_key_file.exists():
            for name, paths in wanted.items():
                problem = _problem(directory, name, paths)
                if problem:
                    raise ClientError(
                        f"`{name}` cannot run: {problem}; there is no {root_key_file} here, so: {RENEWAL}"
                    )
            return ()
        if not (root_key_file.exists() and trust_file.exists()):
            write(make_root(directory.name), certificate_file=trust_file, key_file=root_key_file)
        root = KeyAndCertificate(key=root_key_file.read_bytes(), certificate=trust_file.read_bytes())
        replaced = []
        for name, paths in wanted.items():
            if paths.certificate_file.exists():
                replaced.append(_problem(directory, name, paths))
            try:
                made = issue(root, federation=directory.name, name=name, key=_key_in(paths.key_file))
            except ValueError as error:
                raise ClientError(f"{trust_file} and {root_key_file} contain no root: {error}") from error
            write(made, certificate_file=paths.certificate_file, key_file=paths.key_file)
    return tuple(f"{problem}; it was made anew" for problem in replaced if problem)


def _problem(directory: Path, name: str, paths: TlsPaths) -> str:
    from messiahs.channel.certificates.own_certificate import problem_with_files

    return problem_with_files(paths.certificate_file, paths.key_file, federation=directory.name, name=name)


def _key_in(file: Path) -> bytes | None:
    """Return the private key (PEM) in a file; None without one."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = file.read_bytes()
        load_pem_private_key(key, password=None)
    except (OSError, ValueError):
        return None
    return key


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Prevent two modules that start at once from making two roots."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
