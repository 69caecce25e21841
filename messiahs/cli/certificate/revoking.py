"""Which certificates `messiahs certificate revoke` means."""

from datetime import UTC, datetime
from pathlib import Path

from messiahs.channel.certificates.issued import Issued
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.config.regular_files import read_regular
from messiahs.errors import ClientError


def serials_of(root: SiteRoot, directory: Path, /, what: str) -> list[tuple[str, str]]:
    """Return names and serial numbers of the certificates that a word means: those of a module, one, or a file's.

    Raises a `ClientError` if it means none that the root has signed.
    """
    if "/" in what or what.endswith((".pem", ".crt")):
        found = _issued_in(root, Path(what))
        return [(found.name, found.serial)]
    now = datetime.now(UTC)
    known = [each for each in root.issued.of(what) if each.ends_at > now]
    own = directory / what / "certificate.pem"
    if own.exists():
        known.append(_issued_in(root, own))
    if known:
        return [(what, serial) for serial in dict.fromkeys(each.serial for each in known)]
    numbered = [each for each in root.issued.certificates if each.serial == what.lower().lstrip("0")]
    if numbered:
        return [(each.name, each.serial) for each in numbered]
    names = ", ".join(sorted({each.name for each in root.issued.certificates})) or "nobody"
    raise ClientError(f"the root of {root.federation} has signed no certificate of {what}; it has for {names}")


def _issued_in(root: SiteRoot, file: Path) -> Issued:
    from messiahs.channel.certificates.renewals import name_of_signed

    try:
        content = read_regular(file)
        return Issued.of(content, name_of_signed(content, roots=root.roots, federation=root.federation))
    except OSError as error:
        raise ClientError(f"{file}: {error.strerror}") from error
    except ValueError as error:
        raise ClientError(f"{file}: {error}") from error
