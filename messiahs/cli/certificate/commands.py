"""`messiahs certificate …`: keys are made where they are used and never travel; requests go in, certificates out."""

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from messiahs.cli.exit_codes import USAGE
from messiahs.cli.options import JSON, STATE
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.client.connection import Document
from messiahs.client.locating import state_directory
from messiahs.errors import CertificateError, ClientError, MessiahsError, RevocationListError

if TYPE_CHECKING:
    from messiahs.channel.certificates.issued import Issued

_FEDERATION = click.option("--federation", default="", metavar="NAME", help="The federation, if STATE has several.")
_HEADER = ("NAME", "KIND", "ISSUER", "FINGERPRINT", "FROM", "UNTIL", "DAYS LEFT", "STATE")


@click.group()
def certificate() -> None:
    """Request, sign, renew, revoke and show the certificates of modules."""


@certificate.command()
@click.argument("name", metavar="NAME")
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Where the request goes [NAME.csr].")
@click.option("--new-key", "is_new_key", is_flag=True, help="Replace the key of NAME, after a revocation or a theft.")
@_FEDERATION
@STATE
@JSON
def request(
    name: str, *, out: Path | None, is_new_key: bool, federation: str, state: Path | None, as_json: bool
) -> None:
    """Make the key of the module NAME on this host, and write a request for its certificate.

    The key stays in STATE/FEDERATION/NAME/key.pem. An existing key is used again, unless --new-key; a module whose key
    was replaced runs on with the old one, and cannot be restarted before its new certificate is here. What root
    makes belongs to the account that owns STATE/FEDERATION, or the nearest folder above it that is there.
    """
    from messiahs.channel.certificates.requests import make_request
    from messiahs.cli.federation.certificates import tls_paths
    from messiahs.cli.federation.deployment import federation_directory
    from messiahs.cli.federation.private_folders import as_owner, name_of
    from messiahs.config.regular_files import read_regular
    from messiahs.config.whole_files import write_whole

    place = state_directory(state)
    named = federation or _only_federation(place)
    with as_owner(place / named):
        directory = federation_directory(place, named)
        paths = tls_paths(directory, _checked_name(name))
        paths.key_file.parent.mkdir(exist_ok=True, mode=0o700)
        known = read_regular(paths.key_file) if paths.key_file.exists() and not is_new_key else None
        try:
            key, made = make_request(federation=directory.name, name=name, key=known)
        except (ValueError, TypeError) as error:
            raise ClientError(f"{paths.key_file}: {error}; `--new-key` replaces it") from error
        write_whole(paths.key_file, key, mode=0o600)
        owner = paths.key_file.stat().st_uid
    target = out or Path(f"{name}.csr")
    write_whole(target, made)
    if as_json:
        place_of_key = str(paths.key_file.absolute())
        written = {"federation": named, "name": name, "file": str(target), "key": place_of_key}
        print_document({**written, "new_key": known is None})
        return
    print_text(
        f"wrote {target}; take it to the host with the root's key, and there: messiahs certificate sign {target}"
    )
    if owner != os.geteuid():
        print_text(f"the key {paths.key_file} belongs to {name_of(owner)}, as its folder does")
    if is_new_key and paths.certificate_file.exists():
        print_text(f"the key of `{name}` is replaced: until the new certificate is here, do not restart the module")


@certificate.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Where the certificate goes [NAME.pem].")
@click.option("--new-key", "is_new_key", is_flag=True, help="Sign although NAME has a certificate for another key.")
@click.option("--days", type=click.IntRange(1, 3650), help="Days for which it is valid [825].")
@STATE
@JSON
def sign(
    file: Path, *, out: Path | None, is_new_key: bool, days: int | None, state: Path | None, as_json: bool
) -> None:
    """Sign a request for a certificate, on the host with the key of the site's root.

    Only the name and the key in FILE count. A name that has a certificate for another key is refused, unless --new-key.
    """
    from messiahs.channel.certificates.fingerprints import certificates_in
    from messiahs.channel.certificates.issued import Issued
    from messiahs.channel.certificates.requests import requested_name
    from messiahs.channel.certificates.site_root import SiteRoot
    from messiahs.channel.certificates.tls import MODULE_LIFETIME
    from messiahs.cli.certificate.places import root_directory
    from messiahs.cli.federation.private_folders import as_owner
    from messiahs.config.regular_files import read_regular
    from messiahs.config.whole_files import write_whole

    content = read_regular(file)
    try:
        federation, name = requested_name(content)
    except ValueError as error:
        raise ClientError(f"{file}: {error}") from error
    target = out or Path(f"{name}.pem")
    if out is None and target.exists():
        raise ClientError(f"{target} exists already: `--out FILE` says where the certificate goes")
    directory = root_directory(state_directory(state), federation)
    lifetime = MODULE_LIFETIME if days is None else timedelta(days=days)
    try:
        with as_owner(directory):
            made = SiteRoot.load(directory).sign(content, name, is_new_key=is_new_key, lifetime=lifetime)
    except CertificateError as error:
        raise ClientError(f"{file}: {error}") from error
    write_whole(target, made)
    if as_json:
        signed = _document(Issued.of(certificates_in(made)[0], name))
        print_document({"federation": federation, "file": str(target), **signed})
        return
    print_text(
        f"wrote {target}, the certificate of `{name}`; take it to the host of `{name}` as "
        f"STATE/{federation}/{name}/certificate.pem, and tls/root.pem with it; if `{name}` has asked to join, its "
        f"parent takes it by `messiahs join approve {name} --certificate {target}`"
    )


@certificate.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@_FEDERATION
@STATE
def renew(names: tuple[str, ...], *, federation: str, state: Path | None) -> None:
    """Renew the certificates of modules here (all of them without NAME) now, for the same keys.

    Modules do so by themselves in the last third of the lifetime. Where the key of the site's root lies, it signs at
    once; elsewhere a running module asks its parents, and keeps its certificate before that last third, unless the site
    has a new root. No module is restarted, and no link ends.
    """
    from messiahs.cli.certificate.places import federations, module_folders
    from messiahs.cli.certificate.renewing import renew_one
    from messiahs.cli.federation.private_folders import as_owner

    place = state_directory(state)
    folders = [each for directory in federations(place, federation) for each in module_folders(directory)]
    unknown = sorted({*names} - {each.name for each in folders})
    if unknown:
        raise ClientError(f"under {place} is no certificate of {', '.join(unknown)}")
    failed = False
    for folder in folders:
        if names and folder.name not in names:
            continue
        try:
            with as_owner(folder):
                renewed = renew_one(folder)
            print_text(f"{folder.name}: {renewed}")
        except MessiahsError as error:
            failed = True
            print_text(f"messiahs: {folder.name}: {error}", err=True)
    if failed:
        raise click.exceptions.Exit(1)


@certificate.command()
@click.argument("what", metavar="[NAME|SERIAL|FILE]...", nargs=-1)
@_FEDERATION
@STATE
@JSON
def revoke(what: tuple[str, ...], *, federation: str, state: Path | None, as_json: bool) -> None:
    """Revoke certificates, on the host with the key of the site's root: by module, by serial number, or by file.

    All modules of the site end their connections with it within seconds, as the list of revoked certificates
    (STATE/FEDERATION/tls/revoked.pem) passes along their links. The key gets no other certificate. Without an argument
    the list is only signed again, as a new root needs.
    """
    from messiahs.channel.certificates.revocations import REVOKED_FILE
    from messiahs.channel.certificates.site_root import SiteRoot
    from messiahs.cli.certificate.places import root_directory
    from messiahs.cli.certificate.revoking import meant_by
    from messiahs.cli.certificate.revoking import revoke as revoked_by
    from messiahs.cli.federation.private_folders import as_owner
    from messiahs.core.model.counts import counted

    directory = root_directory(state_directory(state), federation)
    root = SiteRoot.load(directory)
    meant = meant_by(root, directory, what)
    try:
        _ = root.revocations
    except RevocationListError as error:
        print_text(f"messiahs: {error}, with the certificates that tls/issued.json notes as revoked", err=True)
    with as_owner(directory):
        made, revoked, others = revoked_by(root, meant)
    file = directory / "tls" / REVOKED_FILE
    if as_json:
        listed = {"file": str(file), "number": made.number, "serials": sorted(f"{each:x}" for each in made.serials)}
        documents = [_document(each) for each in revoked]
        print_document({"federation": directory.name, "revoked": documents, "still_valid": list(others), **listed})
        return
    for each in revoked:
        print_text(f"revoked {each.name}, serial number {each.serial}")
    for name in others:
        print_text(
            f"`{name}` has another certificate, which is valid: `messiahs certificate revoke {name}` revokes all"
        )
    print_text(f"wrote {file}, list {made.number} with {counted(len(made.serials), 'certificate')}")


@certificate.command()
@_FEDERATION
@STATE
@JSON
def show(*, federation: str, state: Path | None, as_json: bool) -> None:
    """Show the certificates of STATE: roots, modules here, and those that the root here has signed for other hosts.

    With several roots it also says which certificates each has signed, and which the list of revoked ones. The exit
    code is 1 if a root or a module here has one that is revoked, expired, not yet valid, signed by no root here, or
    expires soon, if the list is of no use, and if there are files that this account cannot read.
    """
    from messiahs.cli.certificate.places import closed_in, closed_text, federations
    from messiahs.cli.certificate.showing import roots_in_use, shown_in

    directories = federations(state_directory(state), federation)
    closed = closed_in(state_directory(state), federation)
    places = [list(shown_in(directory)) for directory in directories]
    found = [each for place in places for each in place]
    warnings = [each.warning for each in found if each.warning]
    if as_json:
        print_document({"certificates": [each.document for each in found]})
    elif found or not closed:
        rows = [
            (
                *(each.name, each.kind, each.signed_by, each.fingerprint or "-"),
                *(f"{each.begins_at:%Y-%m-%d}", f"{each.ends_at:%Y-%m-%d}", each.days_left, each.state),
            )
            for each in found
        ]
        print_table(_HEADER, rows)
        for text in (*(text for place in places for text in roots_in_use(place)), *warnings):
            print_text(text)
    if closed:
        raise ClientError(closed_text(closed))
    if warnings:
        raise click.exceptions.Exit(1)


def _document(issued: "Issued") -> Document:
    """Return a signed certificate as JSON, with the names that `certificate show` uses."""
    return {
        "name": issued.name,
        "fingerprint": issued.fingerprint,
        "serial": issued.serial,
        "valid_from": issued.begins_at.isoformat(),
        "valid_until": issued.ends_at.isoformat(),
    }


def _checked_name(name: str) -> str:
    from messiahs.core.model.names import problem_with_name

    problem = problem_with_name(name)
    if problem or len(name) > os.pathconf("/", "PC_NAME_MAX"):
        text = problem or "it is too long for a folder"
        raise ClientError(f"`{name[:80]}` cannot be the name of a system: {text}", code=USAGE)
    return name


def _only_federation(state: Path) -> str:
    found = sorted({each.relative_to(state).parts[0] for each in (*state.glob("*/tls"), *state.glob("*/*/key.pem"))})
    if len(found) != 1:
        which = f"several are under {state} ({', '.join(found)})" if found else f"none is under {state} yet"
        raise ClientError(f"`--federation` must name the federation: {which}")
    return found[0]
