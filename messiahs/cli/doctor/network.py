"""Checks of ports and links, from this host."""

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any, Final

import psutil

from messiahs.cli.doctor.findings import Finding, Patient, fail, ok, warn
from messiahs.cli.doctor.other_side import reaching
from messiahs.cli.federation.deployment import refuse_taken
from messiahs.client.connection import Document
from messiahs.client.locating import state_words
from messiahs.config.settings import ModuleSettings
from messiahs.errors import ClientError

_HANDSHAKE_SECONDS: Final = 20.0
_SLOW_SECONDS: Final = 5.0
"""A handshake takes milliseconds; on a host that is busy with other things, it may take seconds."""
_REMEDIES: Final = (
    (
        "revoked",
        "with a new key it returns: `messiahs certificate request --new-key`, and `sign --new-key` at the root",
    ),
    ("shut this module off", "ask the administrator there; `messiahs neighbor on` there readmits this module"),
    (
        "is no neighbor of",
        "the file in force there does not list this module, or its administrator removed it: ask the administrator",
    ),
    ("refused", "start the module there, or let the firewall on the way admit its port"),
    ("does not answer", "let the firewalls on the way admit its port, and check its host"),
    ("signed by no root", "exchange the files root.pem, as the text says"),
    ("hung up", "give your root.pem to the other site, as the text says"),
    ("cannot be resolved", "check its `host` in the topology, and the name service"),
    ("nobody has connected", "start the module there; it dials this one, so let firewalls admit this module's port"),
)


def check_ports(
    patient: Patient, *, most_seconds: float = _HANDSHAKE_SECONDS, slow_seconds: float = _SLOW_SECONDS
) -> Iterator[Finding]:
    """See whether this module holds its port, and answers there as it should; a slow answer is no failure."""
    settings = patient.settings
    if not settings.listen:
        yield ok("port", "it listens nowhere (`reach: outbound`): nobody has to dial it")
        return
    if patient.pid is None:
        try:
            refuse_taken(settings.listen)
        except ClientError as error:
            yield fail("port", f"{error}: end what holds it, or change `port` in the topology")
        else:
            yield ok("port", f"{settings.listen} is free for it")
        return
    port = int(settings.listen.rpartition(":")[2])
    if port not in _ports_of(patient.pid):
        yield fail("port", f"the daemon does not listen at {settings.listen}: restart it")
        return
    if patient.document is None:
        yield warn(
            "port", f"the daemon listens at {settings.listen}; whether it answers there is seen when it answers here"
        )
        return
    yield _handshake(patient, most_seconds=most_seconds, slow_seconds=slow_seconds)


def _handshake(patient: Patient, *, most_seconds: float, slow_seconds: float) -> Finding:
    settings, since = patient.settings, time.monotonic()
    busy = "this host is busy (`uptime`), or the module is: see"
    log = f"{settings.directory}/module.log"
    try:
        problem = _handshake_problem(settings, most_seconds)
    except TimeoutError:
        reached_by = reaching(patient)
        text = f"{settings.listen} answered no handshake from here within {most_seconds:.0f} s"
        if reached_by:
            return warn("port", f"{text}, but {', '.join(sorted(reached_by))} reaches it: {busy} {log}")
        return fail("port", f"{text}: {busy} {log}")
    if problem:
        return fail("port", f"{settings.listen} answers no handshake ({problem}): see {log}")
    took_seconds = time.monotonic() - since
    if took_seconds >= slow_seconds:
        return warn("port", f"the daemon answers at {settings.listen}, after {took_seconds:.1f} s: {busy} {log}")
    return ok("port", f"the daemon answers at {settings.listen}")


def _ports_of(pid: int) -> set[int]:
    try:
        found = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return set()
    return {each.laddr.port for each in found if each.status == psutil.CONN_LISTEN}


def _handshake_problem(settings: ModuleSettings, most_seconds: float) -> str:
    """Return why no handshake succeeds; empty if one does. Raises `TimeoutError` if it takes longer."""
    host, _, port = settings.listen.rpartition(":")
    try:
        context = ssl.create_default_context(cafile=str(settings.trust_file))
        context.load_cert_chain(settings.certificate_file, settings.key_file)
        # The certificate names the system, not its host.
        context.check_hostname = False
        address = (host.strip("[]"), int(port))
        with (
            socket.create_connection(address, timeout=most_seconds) as raw,
            context.wrap_socket(raw, server_hostname=settings.name) as secured,
        ):
            certificate: dict[str, Any] = dict(secured.getpeercert() or {})
            names = [str(pair[1]) for pair in certificate.get("subjectAltName", ())]
    except TimeoutError:
        raise
    except (OSError, ValueError) as error:
        return str(error)
    return "" if settings.name in names else f"the certificate there is that of {', '.join(names)}"


def check_links(patient: Patient) -> Iterator[Finding]:
    """List the links with all neighbors, and what to do about those that are down."""
    settings = patient.settings
    if patient.pid is None:
        start = f"`messiahs module run {settings.name}{state_words(patient.place.state_directory)}`"
        yield fail("daemon", f"the module is not running, so its links are not known: {start}")
        return
    if patient.document is None:
        yield fail("daemon", patient.silence)
        return
    yield ok("daemon", f"process {patient.pid}, release {patient.document['release']}")
    for note in patient.document["notes"]:
        if not note.startswith(("no link with", "the certificate of")):
            yield warn("module", str(note))
    for each in patient.neighbors:
        yield _reach_of(each)
    known = {each["name"] for each in patient.neighbors}
    removed = {each["name"]: each for each in patient.removed}
    for name in (str(link.neighbor.system) for link in settings.neighbors):
        if name not in known:
            yield _ended(name, removed.get(name))


def _ended(name: str, removed: Document | None) -> Finding:
    """Describe the end of a link that a module began with, by its file or token."""
    reason = f" ({removed['reason']})" if removed is not None and removed["reason"] else ""
    if removed is not None and removed["by"] == "people":
        text = f"ended by an administrator here{reason}; if that is to change, `messiahs neighbor on {name}` brings "
        text += f"back whom the file lists, and a token of {name} others (`messiahs module parent add`)"
        return ok(f"link {name}", text)
    text = "it was a neighbor by the file or a token, and an administrator, or the file in force there, "
    text += f"ended the link{reason}. If the file of {name} lists this module, `messiahs neighbor on {name}` brings it "
    text += f"back, also there if it was removed at both ends; else a token of {name} does (`messiahs module parent "
    return warn(f"link {name}", f"{text}add`), or apply a file without it here")


def _reach_of(neighbor: dict[str, object]) -> Finding:
    name, text = neighbor["name"], str(neighbor["text"])
    way = f"dialed at {neighbor['dialed_at']}" if neighbor["dialed_at"] else "it dials this module"
    match neighbor["state"]:
        case "linked":
            return ok(f"link {name}", way)
        case "shut_off":
            return warn(f"link {name}", f"shut off here: `messiahs neighbor on {name}` readmits it")
    if neighbor["leaving"] is not None:
        return warn(f"link {name}", "removed by an administrator, here or there: it ends when nothing is left on it")
    remedies = (remedy for word, remedy in _REMEDIES if word in text)
    other = "start the module there, and see the log of each side" if neighbor["dialed_at"] else _REMEDIES[-1][1]
    return fail(f"link {name}", f"{text or 'it has not connected yet'} ({way}): {next(remedies, other)}")
