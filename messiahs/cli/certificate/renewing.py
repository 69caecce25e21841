"""Renewing the certificate of one module: by itself if it runs, else with the root's key."""

from pathlib import Path

from messiahs.channel.certificates.own_certificate import OwnCertificate
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.client.module import ModuleClient
from messiahs.config.regular_files import read_regular
from messiahs.config.whole_files import write_whole
from messiahs.daemon.process.pid_files import recorded_process
from messiahs.errors import ClientError


def renew_one(folder: Path) -> str:
    """Renew the certificate in a folder STATE/FEDERATION/NAME; return until when it is valid.

    Raises a `MessiahsError` if nobody can sign it, or if it was revoked.
    """
    directory, name = folder.parent, folder.name
    if recorded_process(folder / "daemon.pid") is not None:
        with ModuleClient(directory / f"{name}.sock") as client:
            return str(client.renew_certificate()["valid_until"])
    if not SiteRoot.is_at(directory):
        raise ClientError(f"there is no tls/root.key here, and {name} does not run, so that it could ask a parent")
    file = folder / "certificate.pem"
    try:
        _, request = make_request(federation=directory.name, name=name, key=read_regular(folder / "key.pem"))
        made = SiteRoot.load(directory).sign(request, name)
        write_whole(file, made)
        return OwnCertificate.read(made, file).ends_at.isoformat()
    except OSError as error:
        raise ClientError(f"{error.filename}: {error.strerror}") from error
    except (ValueError, TypeError) as error:
        raise ClientError(f"{folder / 'key.pem'}: {error}") from error
