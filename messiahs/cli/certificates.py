"""The convenience of `up`: one root for the whole federation, kept under STATE/FEDERATION/tls.

A module that brings its own `certificate.pem` and `key.pem`, with the roots that it trusts in tls/root.pem, needs no
root key here, and then none is made.
"""

from collections.abc import Iterable
from pathlib import Path

from messiahs.config.topology_neighbors import TlsPaths
from messiahs.errors import ClientError


def tls_files(directory: Path, names: Iterable[str]) -> dict[str, TlsPaths]:
    """Give each module of a federation its key and a certificate by the federation's root, both made anew."""
    from messiahs.channel.tls import KeyAndCertificate, issue, make_root, write

    trust_file, root_key_file = directory / "tls" / "root.pem", directory / "tls" / "root.key"
    found = {name: _paths(directory, name) for name in names}
    if trust_file.exists() and not root_key_file.exists():
        lacking = ", ".join(name for name, paths in found.items() if not paths.certificate_file.exists())
        if lacking:
            raise ClientError(f"there is no certificate for {lacking}, and no key at {root_key_file} to sign one")
        return found
    trust_file.parent.mkdir(exist_ok=True, mode=0o700)
    if not root_key_file.exists():
        write(make_root(directory.name), certificate_file=trust_file, key_file=root_key_file)
    root = KeyAndCertificate(key=root_key_file.read_bytes(), certificate=trust_file.read_bytes())
    for name, paths in found.items():
        made = issue(root, federation=directory.name, name=name)
        write(made, certificate_file=paths.certificate_file, key_file=paths.key_file)
    return found


def _paths(directory: Path, name: str) -> TlsPaths:
    return TlsPaths(
        certificate_file=directory / name / "certificate.pem",
        key_file=directory / name / "key.pem",
        trust_file=directory / "tls" / "root.pem",
    )
