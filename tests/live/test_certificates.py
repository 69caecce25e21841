"""Certificates of running modules: requested, signed, renewed and revoked by commands, while tasks run."""

import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from messiahs.channel.certificates.fingerprints import certificates_in, key_fingerprint, pem_of
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.config.whole_files import write_whole
from tests.commands import Command
from tests.live.joiners import JOINED_BY_POLICY, Campus, Newcomer, campus, on
from tests.live.two_machines import open_folder
from tests.ports import free_port
from tests.waiting import PATIENCE_SECONDS, eventually

pytestmark = pytest.mark.live

BEHIND_HOURS = 23
"""Less than the day by which certificates are backdated."""
_ENDLESS = "while [ ! -e '{}' ]; do sleep 0.1; done"


@pytest.fixture
def open_campus(tmp_path: Path) -> Iterator[Campus]:
    """Start a federation whose policy lets everybody join."""
    with campus(tmp_path, join=JOINED_BY_POLICY) as made:
        yield made


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as made:
        yield made


def joined(made: Campus, name: str, *, machines: int = 2) -> Newcomer:
    """Let a module join that can be dialed, and return it when `cs` counts its machine."""
    newcomer = made.newcomer(name)
    newcomer.joined(made.token(), made.address, "--listen", f"127.0.0.1:{free_port()}")
    eventually(lambda: made.machines("up") == machines, lambda: newcomer.told)
    return newcomer


def succeeded(run: Callable[..., "subprocess.CompletedProcess[str]"], *words: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    done = run(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown(run: Callable[..., "subprocess.CompletedProcess[str]"], name: str) -> dict[str, object]:
    """Return what `certificate show` says about the certificate of a module."""
    found = json.loads(run("certificate", "show", "--json").stdout)["certificates"]
    return dict(next(each for each in found if each["name"] == name))


def in_force(newcomer: Newcomer) -> bytes:
    """Return the certificate (DER) that a module presents to a new connection."""
    with newcomer.client() as client:
        host, port = client.module()["address"].split(":")
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate((host, int(port))))


def use_due(made: Campus, newcomer: Newcomer) -> bytes:
    """Give a module a certificate in the last third of its lifetime, and return it (DER) when it is in force."""
    key = (newcomer.directory / "key.pem").read_bytes()
    _, request = make_request(federation="campus", name=newcomer.name, key=key)
    # Backdated by a day.
    signed = SiteRoot.load(made.federation.state / "campus").sign(request, newcomer.name, lifetime=timedelta(hours=6))
    before, (found,) = in_force(newcomer), certificates_in(signed)
    write_whole(newcomer.directory / "certificate.pem", signed)
    # The module may have renewed it already.
    eventually(lambda: in_force(newcomer) != before, "the certificate in force")
    return found


def linked(made: Campus) -> list[str]:
    with made.federation.client() as client:
        return sorted(client.module()["linked"])


def running(made: Campus, at: str, /, ends_with: Path) -> str:
    """Submit a task that runs at a module until a file exists, and return its id when it runs."""
    task = made.federation.submit(*on(at), "--", "sh", "-c", _ENDLESS.format(ends_with))
    eventually(lambda: made.federation.status(task)["substate"] == "running", task)
    return task


def finished(made: Campus, task: str) -> dict[str, object]:
    eventually(lambda: made.federation.status(task)["state"] == "finished", lambda: made.federation.status(task))
    return made.federation.status(task)


def test_a_certificate_is_requested_signed_used_renewed_and_shown_by_commands_alone(open_campus: Campus) -> None:
    xinu, root = joined(open_campus, "xinu"), open_campus.federation.run
    key, request, signed = xinu.directory / "key.pem", xinu.folder / "x.csr", xinu.folder / "x.pem"
    before, kept = in_force(xinu), key.read_bytes()
    succeeded(xinu.run, "certificate", "request", "xinu", "--out", str(request))
    assert b"PRIVATE" not in request.read_bytes()
    succeeded(root, "certificate", "sign", str(request), "--days", "40", "--out", str(signed))
    write_whole(xinu.directory / "certificate.pem", signed.read_bytes())
    (made,) = certificates_in(signed.read_bytes())
    eventually(lambda: in_force(xinu) == made, "the new certificate at new connections")
    assert made != before
    assert key.read_bytes() == kept
    assert (shown(xinu.run, "xinu")["state"], shown(xinu.run, "xinu")["days_left"]) == ("valid", 39)
    assert shown(root, "xinu")["serial"] == shown(xinu.run, "xinu")["serial"]
    # Before the last third the root gives no other one.
    assert "xinu: kept, valid until" in succeeded(xinu.run, "certificate", "renew", "xinu")
    assert in_force(xinu) == made
    assert "cs: renewed, valid until" in succeeded(root, "certificate", "renew", "cs")
    decided = ("audit", "decisions", "--kind", "member", "--module", "cs")
    eventually(lambda: "about the module's own" in succeeded(root, *decided), "the decision")
    assert "of a module below" not in succeeded(root, *decided)
    assert linked(open_campus) == ["xinu"]


def test_a_certificate_is_renewed_while_tasks_run_and_new_connections_present_it(
    open_campus: Campus, folder: Path
) -> None:
    xinu = joined(open_campus, "xinu")
    task = running(open_campus, "xinu", folder / "go")
    pid = pid_of(xinu)
    links = connections(pid, open_campus.address)
    due = use_due(open_campus, xinu)
    succeeded(xinu.run, "certificate", "renew", "xinu")
    renewed = in_force(xinu)
    assert renewed != due
    assert pem_of(renewed) == (xinu.directory / "certificate.pem").read_bytes()
    assert key_fingerprint(renewed) == key_fingerprint(due)
    days = shown(xinu.run, "xinu")["days_left"]
    assert isinstance(days, int)
    assert days > 800
    # The link is the one of before, and so is the process.
    assert links
    assert links <= connections(pid, open_campus.address)
    (folder / "go").touch()
    ended = finished(open_campus, task)
    assert (ended["attempt"], ended["executed_on"]) == (1, "xinu")
    assert succeeded(xinu.run, "run", *on("cs"), "--", "echo", "up") == "up\n"


def connections(pid: int, address: str) -> set[int]:
    """Return the local ports from which a process is connected to an address."""
    found = psutil.Process(pid).net_connections(kind="tcp")
    return {each.laddr.port for each in found if each.raddr and each.raddr.port == int(address.rsplit(":", 1)[1])}


def test_a_revoked_module_loses_everything_and_stays_away_and_others_stay(open_campus: Campus, folder: Path) -> None:
    xinu, blays = joined(open_campus, "xinu"), joined(open_campus, "blays", machines=3)
    kept = running(open_campus, "blays", folder / "go")
    running(open_campus, "xinu", folder / "never")
    # A task whose standard input is an open stream between the two.
    fed = fed_task(xinu, "cs")
    pid = pid_of(xinu)
    links = connections(pid_of(blays), open_campus.address)
    assert links
    try:
        held = connections(pid, open_campus.address)
        printed = succeeded(open_campus.federation.run, "certificate", "revoke", "xinu")
        assert "revoked xinu, serial number" in printed
        eventually(lambda: linked(open_campus) == ["blays"], "the end of the link")
        eventually(lambda: not held & connections(pid, open_campus.address), "the end of its other connections")
    finally:
        fed.kill()
        fed.communicate(timeout=PATIENCE_SECONDS)
    assert links <= connections(pid_of(blays), open_campus.address)
    # It cannot return, neither as it is nor after a restart or a renewal.
    refused = xinu.run("certificate", "renew", "xinu")
    assert refused.returncode == 1
    xinu.end()
    xinu.start()
    eventually(lambda: "was revoked" in notes(xinu), lambda: (xinu.told, notes(xinu)))
    assert linked(open_campus) == ["blays"]
    (folder / "go").touch()
    ended = finished(open_campus, kept)
    assert (ended["attempt"], ended["executed_on"]) == (1, "blays")


def notes(newcomer: Newcomer) -> str:
    with newcomer.client() as client:
        return " ".join(client.module()["notes"])


def pid_of(newcomer: Newcomer) -> int:
    assert newcomer.process is not None
    return newcomer.process.pid


def fed_task(newcomer: Newcomer, at: str) -> "subprocess.Popen[str]":
    """Run a task at another module that reads standard input, and return when it has read something."""
    script = 'read line; echo "got $line"; cat > /dev/null'
    words = [sys.executable, "-m", "messiahs.cli.main", "run", *on(at), "--", "sh", "-c", script]
    pipe = subprocess.PIPE
    process = Command(words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=newcomer.environment)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("this\n")
    process.stdin.flush()
    assert process.stdout.readline() == "got this\n"
    return process


@pytest.mark.parametrize(("hours", "is_accepted"), [(BEHIND_HOURS, True), (BEHIND_HOURS + 2, False)])
def test_a_certificate_is_valid_on_a_host_whose_clock_is_behind_by_less_than_a_day(
    open_campus: Campus, hours: int, *, is_accepted: bool
) -> None:
    xinu = joined(open_campus, "xinu")
    xinu.end()
    eventually(lambda: open_campus.machines("up") == 1)
    request, signed = xinu.folder / "x.csr", xinu.folder / "x.pem"
    succeeded(xinu.run, "certificate", "request", "xinu", "--out", str(request))
    state = open_campus.federation.state
    command = [sys.executable, "-m", "tests.live.fast_clock", str(hours)]
    words = ["certificate", "sign", str(request), "--out", str(signed), "--state", str(state)]
    subprocess.run([*command, *words], check=True, capture_output=True)
    write_whole(xinu.directory / "certificate.pem", signed.read_bytes())
    xinu.start()
    if is_accepted:
        eventually(lambda: open_campus.machines("up") == 2, lambda: xinu.told)
        assert succeeded(open_campus.federation.run, "run", *on("xinu"), "--", "echo", "down") == "down\n"
        assert succeeded(xinu.run, "run", *on("cs"), "--", "echo", "up") == "up\n"
    else:
        assert xinu.ended() == 1
        assert "is the clock right?" in xinu.told
