"""Renewing the certificate of one module: by itself if it runs, else with the root's key."""

from pathlib import Path

from messiahs.channel.certificates.fingerprints import certificates_in
from messiahs.channel.certificates.own_certificate import OwnCertificate
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.client.module import ModuleClient
from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.daemon.certificates.renewing import signed_by_hand
from messiahs.daemon.process.pid_files import recorded_process
from messiahs.errors import ClientError, explained


def renew_one(folder: Path) -> str:
    """Renew the certificate in a folder STATE/FEDERATION/NAME; return a text that says until when it is valid.

    Raises a `MessiahsError` if nobody can sign it, or if it was revoked.
    """
    directory, name, file = folder.parent, folder.name, folder / "certificate.pem"
    is_running = recorded_process(folder / "daemon.pid") is not None
    if not is_running and not SiteRoot.is_at(directory):
        text = f"there is no tls/root.key here, and {name} does not run, so that it could ask a parent: start it"
        raise ClientError(f"{text}; or {signed_by_hand(name)}")
    try:
        before = read_regular(file)
        if is_running:
            with ModuleClient(directory / f"{name}.sock") as client:
                client.renew_certificate()
        else:
            key, present = read_regular(folder / "key.pem"), certificates_in(before)[:1]
            _, request = make_request(federation=directory.name, name=name, key=key)
            root = SiteRoot.load(directory)
            write_whole(file, root.renew_here(request, name, present=present[0] if present else b""))
        now = read_regular(file)
        until = OwnCertificate.read(now, file).ends_at.isoformat()
    except OSError as error:
        raise ClientError(explained(error)) from error
    except (ValueError, TypeError) as error:
        raise ClientError(f"{folder}: {error}") from error
    if now == before:
        return f"kept, valid until {until}: another host renews it in the last third of its lifetime"
    return f"renewed, valid until {until}"
