"""Whether a backup is of the site whose `tls/` is in the state directory already, also if that got a new root since.

A site replaces its root (docs/administrators.md, "A new root"), and its modules stay: a root in common, or a module of
the backup that is known here by its key, shows that both are of one site.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint
from messiahs.channel.certificates.issued import IssuedCertificates
from messiahs.channel.certificates.site_root import FOLDER, ROOT_FILE
from messiahs.cli.backup.making import MODULES
from messiahs.config.regular_files import read_regular
from messiahs.errors import ClientError, StoreError


def check_site(tree: Path, directory: Path, /, names: Iterable[str]) -> None:
    """Refuse an unpacked backup of which nothing shows that it is of the site in STATE/FEDERATION.

    `names` are the modules in the backup. Without roots in one of both there is nothing to compare. Raises ClientError,
    and OSError if a file cannot be read.
    """
    stored, present = tree / FOLDER / ROOT_FILE, directory / FOLDER / ROOT_FILE
    if not (stored.exists() and present.exists()):
        return
    roots_before, roots = read_regular(stored), read_regular(present)
    if roots_before == roots or not set(_keys_in(roots_before)).isdisjoint(_keys_in(roots)):
        return
    record = IssuedCertificates()
    with suppress(StoreError):
        # A damaged record shows nothing; who signs with the root learns of it.
        record = IssuedCertificates.read(directory / FOLDER)
    if any(_is_known(tree / MODULES / name, directory / name, record) for name in names):
        return
    raise ClientError(
        f"{present} is another root than that of the backup, and nothing shows that both are of one site: no module of "
        f"the backup is in {directory} with its key, or in {FOLDER}/issued.json. If the backup is of this site, from "
        f"before it got a new root, add `--same-site`, which keeps the files in {present.parent}; if it is of another "
        "site, restore it into another state directory (`--state`); nothing was changed"
    )


def _is_known(stored: Path, present: Path, record: IssuedCertificates) -> bool:
    """Whether a module of the backup has the key of the one in its place, or one that the record has for its name."""
    with suppress(FileNotFoundError):
        if read_regular(stored / "key.pem") == read_regular(present / "key.pem"):
            return True
    keys: tuple[str, ...] = ()
    with suppress(FileNotFoundError):
        keys = tuple(key.hex() for key in _keys_in(read_regular(stored / "certificate.pem"))[:1])
    noted = {record.keys.get(stored.name), *(each.key for each in record.of(stored.name))}
    return not noted.isdisjoint(keys)


def _keys_in(pem: bytes) -> tuple[bytes, ...]:
    """Return the fingerprints of the keys of certificates (PEM); none if one of them cannot be read."""
    try:
        return tuple(map(key_fingerprint, certificates_in(pem)))
    except ValueError:
        return ()
