"""Where the certificates of a command are: the federations and modules under a state directory."""

from pathlib import Path

from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.cli.federation.private_folders import as_owner, check_federation
from messiahs.client.locating import check_permission, modules_of_host, state_directory
from messiahs.errors import ClientError


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


def module_folders(directory: Path) -> tuple[Path, ...]:
    """Return the folders of all modules in STATE/FEDERATION that have a certificate."""
    return tuple(sorted(each.parent for each in directory.glob("*/certificate.pem")))
