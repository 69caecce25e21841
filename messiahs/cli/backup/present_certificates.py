"""Which certificates a restored module uses, and which files of its site come from the backup.

What is in place may be newer than the backup: the site may have got a new root since, and the module a new certificate
or key. It stays where it can be used.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.channel.certificates.own_certificate import READMITTANCE, problem_with_files
from messiahs.channel.certificates.revocations import LIST_LIMIT_BYTES, REVOKED_FILE, read_revocations
from messiahs.channel.certificates.site_root import FOLDER, ROOT_FILE, ROOT_KEY_FILE
from messiahs.cli.backup.making import OF_FEDERATION
from messiahs.config.regular_files import read_regular
from messiahs.errors import CertificateError

_PAIR: Final = ("certificate.pem", "key.pem")
_SECRET: Final = 0o600


def keep_pair(unpacked: Path, present: Path, /, tls: Path) -> Iterator[str]:
    """Put certificate and key of the module in place (`present`) into the unpacked one, if it can use them.

    They are for each other and this module, valid now, not revoked, and signed by a root in the folder `tls`. Yields a
    note if the backup has others.
    """
    if not all((present / name).is_file() for name in _PAIR) or _problem(present, tls) or _is_revoked(present, tls):
        return
    differ = [name for name in _PAIR if not _is_same(present / name, unpacked / name)]
    for name in differ:
        (unpacked / name).write_bytes(read_regular(present / name))
        (unpacked / name).chmod(_SECRET)
    if differ:
        files = " and ".join(differ)
        yield f"`{present.name}` keeps its {files}, which the site accepts, instead of what the backup has"


def pair_note(folder: Path, tls: Path) -> Iterator[str]:
    """Yield why the certificate of a restored module cannot be used, and what to do; nothing if it can be."""
    problem, name = _problem(folder, tls), folder.name
    if not problem:
        if _is_revoked(folder, tls):
            yield f"the certificate of `{name}` was revoked; {READMITTANCE}"
        return
    if (tls / ROOT_KEY_FILE).exists():
        remedy = f"`messiahs certificate renew {name}` makes another one, as `up` and `module run` do"
    else:
        remedy = (
            f"`messiahs certificate request {name}` here, `messiahs certificate sign {name}.csr` where "
            f"{FOLDER}/{ROOT_KEY_FILE} lies, and copy the certificate to {folder / _PAIR[0]} before you start it"
        )
    yield f"`{name}` has no certificate that the site accepts: {problem}; {remedy}"


def _problem(folder: Path, tls: Path) -> str:
    """Return why the modules of a site, whose roots are in `tls`, do not accept the certificate in a module's folder.

    Empty if they do, and if there are no roots.
    """
    from cryptography import x509

    from messiahs.cli.certificate.signers import signing_root

    certificate, key = (folder / name for name in _PAIR)
    problem = problem_with_files(certificate, key, federation=folder.parent.name, name=folder.name)
    if problem or not (tls / ROOT_FILE).exists():
        return problem
    roots = read_regular(tls / ROOT_FILE)
    try:
        chain = x509.load_pem_x509_certificates(read_regular(certificate))
        signer = signing_root(chain, x509.load_pem_x509_certificates(roots))
    except ValueError as error:
        return f"{tls / ROOT_FILE} or {certificate} cannot be read: {error}"
    return "" if signer is not None else f"no root in {tls / ROOT_FILE} has signed {certificate}"


def _is_revoked(folder: Path, tls: Path) -> bool:
    """Whether the certificate in a module's folder, which has no other problem, is on the list of the site."""
    # Without a list, or with one that is of no use, nothing is known to be revoked.
    with suppress(FileNotFoundError, CertificateError):
        listed = read_regular(tls / REVOKED_FILE, limit_bytes=LIST_LIMIT_BYTES)
        revocations = read_revocations(listed, read_regular(tls / ROOT_FILE))
        return revocations.holds_any(read_regular(folder / _PAIR[0]))
    return False


def put_shared(tree: Path, directory: Path) -> Iterator[str]:
    """Add what all modules of a site share where it is missing; what is there may be newer, and stays.

    Of an older root neither the key nor the list of revoked certificates is put beside a newer root: modules would not
    start with them. Yields a note for each file of the backup that is not in place.
    """
    root_file = directory / FOLDER / ROOT_FILE
    has_roots = root_file.exists()
    for path in (*sorted((tree / FOLDER).glob("*")), *(tree / name for name in OF_FEDERATION)):
        target = directory / path.relative_to(tree)
        if not path.exists():
            continue
        if target.exists():
            if target.read_bytes() != path.read_bytes():
                yield f"{target} is another file than in the backup, and stays as it is"
        elif has_roots and not _fits(path, root_file):
            yield f"{path.relative_to(tree)} of the backup is left out: it belongs to no root in {root_file}"
        else:
            target.parent.mkdir(exist_ok=True, mode=0o700)
            path.rename(target)


def _fits(path: Path, root_file: Path) -> bool:
    """Whether a file of a backup can lie beside the roots in another file."""
    from messiahs.channel.certificates.tls import KeyAndCertificate, signer_in

    if path.name not in (ROOT_KEY_FILE, REVOKED_FILE):
        return True
    content, roots = path.read_bytes(), read_regular(root_file)
    try:
        if path.name == REVOKED_FILE:
            read_revocations(content, roots)
        else:
            signer_in(KeyAndCertificate(key=content, certificate=roots))
    except (ValueError, TypeError, AssertionError, CertificateError):
        return False
    return True


def _is_same(file: Path, other: Path) -> bool:
    return other.is_file() and file.read_bytes() == other.read_bytes()
