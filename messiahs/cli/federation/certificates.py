"""Certificates made by `up` and `module run`: one root for each site, kept under STATE/FEDERATION/tls.

A module with its own `certificate.pem` and `key.pem`, and its trusted roots in tls/root.pem, needs no root key here,
and none is made.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from messiahs.config.topology.neighbors import TlsPaths
from messiahs.errors import CertificateError, ClientError


def tls_paths(directory: Path, name: str) -> TlsPaths:
    """Return the paths of a module's key and certificate and of its site's root; the files need not exist."""
    return TlsPaths(
        certificate_file=directory / name / "certificate.pem",
        key_file=directory / name / "key.pem",
        trust_file=directory / "tls" / "root.pem",
    )


def make_certificates(directory: Path, names: Iterable[str]) -> tuple[str, ...]:
    """Give each module of a site a certificate signed by the site's root, which is made if missing.

    A certificate that can be used stays until the last third of its lifetime. A module keeps its key, because neighbors
    may have bound tickets to it; a key that cannot be read is replaced, a revoked one gets no other certificate.
    Returns what was wrong with certificates. Without the key of the root, a `ClientError` says what is wrong with one
    that cannot be used.
    """
    from messiahs.channel.certificates.issued import alone
    from messiahs.channel.certificates.own_certificate import RENEWAL
    from messiahs.channel.certificates.tls import make_root, write

    trust_file, root_key_file = directory / "tls" / "root.pem", directory / "tls" / "root.key"
    wanted = {name: tls_paths(directory, name) for name in names}
    trust_file.parent.mkdir(exist_ok=True, mode=0o700)
    with alone(trust_file.parent):
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
        return _certified(directory, wanted)


def _certified(directory: Path, wanted: Mapping[str, TlsPaths]) -> tuple[str, ...]:
    """Make the certificates that are needed, and note all of them; the caller is `alone`."""
    from messiahs.channel.certificates.fingerprints import certificates_in
    from messiahs.channel.certificates.issued import Issued
    from messiahs.channel.certificates.own_certificate import READMITTANCE
    from messiahs.channel.certificates.site_root import SiteRoot
    from messiahs.channel.certificates.tls import KeyAndCertificate, issue, write

    try:
        root = SiteRoot.load(directory)
    except CertificateError as error:
        raise ClientError(str(error)) from error
    issued, problems = root.issued, []
    for name, paths in wanted.items():
        if name in issued.elsewhere and not paths.key_file.exists():
            raise ClientError(_elsewhere(name, paths.key_file))
    signer = KeyAndCertificate(key=(directory / "tls" / "root.key").read_bytes(), certificate=root.roots)
    for name, paths in wanted.items():
        problem = _problem(directory, name, paths)
        content = b"" if problem else paths.certificate_file.read_bytes()
        if content and root.is_revoked(content):
            problems.append(f"the certificate of `{name}` was revoked, and no other module accepts it; {READMITTANCE}")
            continue
        present = certificates_in(content)[0] if content else b""
        if present and not root.is_current(present):
            # It stays valid, and may have been copied: revoking the module must find it.
            issued = issued.knowing(Issued.of(present, name))
        if not present or not root.is_current(present):
            if paths.certificate_file.exists() and problem:
                problems.append(f"{problem}; it was made anew")
            made = issue(signer, federation=directory.name, name=name, key=_key_in(paths.key_file))
            write(made, certificate_file=paths.certificate_file, key_file=paths.key_file)
            present = certificates_in(made.certificate)[0]
        issued = issued.having(Issued.of(present, name))
    if issued != root.issued:
        issued.write(directory / "tls")
    return tuple(problems)


def _elsewhere(name: str, key_file: Path) -> str:
    return (
        f"`{name}` has its key on another host, where it is to run; there is no {key_file} here. If it is to move "
        f"here: `messiahs certificate request {name}`, and `messiahs certificate sign --new-key`"
    )


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
