"""Where the certificates of a command are: the federations and modules under a state directory."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from messiahs.channel.certificates.issued import ISSUED_FILE
from messiahs.channel.certificates.revocations import REVOKED_FILE
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.cli.federation.private_folders import as_owner, check_federation, name_of
from messiahs.client.locating import check_permission, modules_of_host, state_directory
from messiahs.errors import ClientError

_TLS_FILES: Final = ("root.pem", REVOKED_FILE, ISSUED_FILE)


def federations(state: Path, federation: str = "") -> tuple[Path, ...]:
    """Return STATE/FEDERATION of every federation with certificates, or of one; a `ClientError` if there is none."""
    found = tuple(sorted(each.parent for each in state.glob("*/tls") if federation in ("", each.parent.name)))
    if not found:
        check_permission(state)
        if state == state_directory() and (of_host := modules_of_host()):
            text = f"the certificates of {', '.join(of_host)}, modules of this host, are for root"
            raise ClientError(f"{text}: run this command as root, or name another state directory with `--state`")
        of_it = f" of `{federation}`" if federation else ""
        raise ClientError(f"there are no certificates{of_it} under {state}; `--state` names another state directory")
    return found


def root_directory(state: Path, federation: str) -> Path:
    """Return the STATE/FEDERATION with the key of a root; a `ClientError` if there is none, or more than one."""
    found = [each for each in federations(state, federation) if SiteRoot.is_at(each)]
    if not found:
        raise ClientError(
            f"no key of a root (tls/root.key) is under {state}: this is done where the key of the site's root lies"
        )
    if len(found) > 1:
        names = ", ".join(each.name for each in found)
        raise ClientError(f"the roots of several federations are under {state} ({names}): `--federation` names one")
    with as_owner(found[0]):
        check_federation(found[0])
    return found[0]


def closed_in(state: Path, federation: str = "") -> tuple[Path, ...]:
    """Return the folders and files under STATE that may have certificates, and that this account cannot read.

    They are those of every federation, or of one.
    """
    return tuple(
        closed
        for directory in sorted(state.iterdir())
        if directory.is_dir() and federation in ("", directory.name)
        for closed in _closed_below(directory)
    )


def closed_text(closed: Sequence[Path]) -> str:
    """Return as whom to run a command that cannot read some folders and files."""
    uids = sorted({each.stat().st_uid for each in closed})
    accounts = "root" if uids == [0] else f"{' or '.join(name_of(uid) for uid in uids if uid)}, or as root"
    return f"you have no permission to read {', '.join(map(str, closed))}: run this command as {accounts}"


def is_open(path: Path) -> bool:
    """Whether this account can read a file, or what is in a folder, or it does not exist."""
    try:
        path.stat()
    except FileNotFoundError:
        return True
    except PermissionError:
        return False
    return os.access(path, os.R_OK | os.X_OK if path.is_dir() else os.R_OK, effective_ids=True)


def _closed_below(directory: Path) -> Iterator[Path]:
    if not is_open(directory):
        yield directory
        return
    if not (tls := directory / "tls").is_dir():
        return
    yield from (each for each in sorted(directory.iterdir()) if each.is_dir() and not is_open(each))
    files = [tls / name for name in _TLS_FILES] if is_open(tls) else []
    yield from (file for file in (*files, *sorted(directory.glob("*/certificate.pem"))) if not is_open(file))


def module_folders(directory: Path) -> tuple[Path, ...]:
    """Return the folders of all modules in STATE/FEDERATION that have a certificate."""
    return tuple(sorted(each.parent for each in directory.glob("*/certificate.pem")))
