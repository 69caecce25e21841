"""Systems join a running federation with tokens: real daemons, certificates and restarts on both sides."""

import asyncio
import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import grpc
import grpc.aio
import pytest

from messiahs.channel.certificates.site_root import SiteRoot
from messiahs.channel.membership.tokens import JoinToken
from tests.contract.raw_calls import status_of
from tests.live.joiners import JOINED_BY_POLICY, Campus, campus, on
from tests.ports import free_port
from tests.waiting import eventually

pytestmark = pytest.mark.live

METHODS = (
    *("Control/Exchange", "Control/Wanted", "Update/Exchange"),
    *("Task/Transfer", "Task/Put", "Task/Read", "Task/Feed", "Task/Pipe"),
)


@pytest.fixture
def open_campus(tmp_path: Path) -> Iterator[Campus]:
    """Start a federation whose policy lets everybody join but `never`."""
    with campus(tmp_path, join=JOINED_BY_POLICY) as made:
        yield made


@pytest.fixture
def asking_campus(tmp_path: Path) -> Iterator[Campus]:
    """Start a federation whose administrator decides."""
    with campus(tmp_path) as made:
        yield made


def test_a_newcomer_runs_tasks_in_both_directions_also_after_both_sides_started_again(open_campus: Campus) -> None:
    xinu = open_campus.newcomer("xinu")
    xinu.joined(open_campus.token(), open_campus.address)
    _are_linked(open_campus, 2)
    eventually(lambda: xinu.machines("down") == 2)
    _run_both_ways(open_campus)

    xinu.end()
    open_campus.federation.down()
    open_campus.federation.up()
    xinu.start()
    _are_linked(open_campus, 2)
    _run_both_ways(open_campus)
    (listed,) = open_campus.federation.document("module", "list")["modules"]
    assert listed["children"] == ["xinu"]
    # The key has stayed where it was made.
    assert not list(open_campus.federation.state.rglob("xinu/key.pem"))


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
@pytest.mark.parametrize("at_once", [False, True], ids=["one after the other", "at once"])
def test_two_newcomers_are_both_linked(open_campus: Campus, names: tuple[str, str], *, at_once: bool) -> None:
    for number, name in enumerate(names):
        # Those that come at once can be dialed, so they can also have a link with each other.
        words = ("--listen", f"127.0.0.1:{free_port()}") if at_once else ()
        open_campus.newcomer(name).joined(open_campus.token(), open_campus.address, *words)
        if not at_once:
            _are_linked(open_campus, number + 2)
    _are_linked(open_campus, 3)
    eventually(lambda: [each.machines("down") for each in open_campus.newcomers] == [3, 3])
    for name in names:
        done = open_campus.federation.run("run", *on(name), "--", "true")
        assert done.returncode == 0, done.stderr


def test_an_administrator_approves_and_denies(asking_campus: Campus) -> None:
    xinu, blays = asking_campus.newcomer("xinu"), asking_campus.newcomer("blays")
    for newcomer in (xinu, blays):
        newcomer.joined(asking_campus.token(), asking_campus.address)
        asking_campus.waits_for(newcomer.name)
    asking_campus.decide("deny", "blays", "--text", "not before May")
    assert blays.ended() == 1
    assert "`blays` may not join `cs`: not before May" in blays.told
    assert not (blays.directory / "certificate.pem").exists()
    asking_campus.decide("approve", "xinu")
    _are_linked(asking_campus, 2)


def test_a_token_is_used_once_and_expires(asking_campus: Campus) -> None:
    used, brief = asking_campus.token(), asking_campus.token("--expires", "2s")
    xinu, blays, late = (asking_campus.newcomer(name) for name in ("xinu", "blays", "late"))
    late.joined(brief, asking_campus.address)
    xinu.joined(used, asking_campus.address)
    asking_campus.waits_for("xinu")
    blays.joined(used, asking_campus.address)
    assert blays.ended() == late.ended() == 1
    assert "this token was used by xinu already, with its own key" in blays.told
    assert "this token has expired by the clock of the module that made it" in late.told
    asking_campus.decide("approve", "xinu")
    _are_linked(asking_campus, 2)


def test_a_name_of_another_system_is_refused(open_campus: Campus) -> None:
    xinu, again, never = (open_campus.newcomer(*each) for each in (("xinu",), ("never",), ("other",)))
    again.name, again.folder = "xinu", open_campus.folder / "state-again"
    never.name = "never"
    xinu.joined(open_campus.token(), open_campus.address)
    _are_linked(open_campus, 2)
    again.joined(open_campus.token(), open_campus.address)
    never.joined(open_campus.token(), open_campus.address)
    assert again.ended() == never.ended() == 1
    assert "cs has a neighbor xinu already" in again.told
    assert "nobody may join as child" in never.told


def test_a_name_that_exists_below_another_parent_of_the_site_is_refused(tmp_path: Path) -> None:
    with campus(tmp_path, join=JOINED_BY_POLICY, others="  ee: {parent: cs}\n  lab: {parent: ee}\n") as made:
        xinu = made.newcomer("xinu")
        xinu.joined(made.token(), made.address)
        _are_linked(made, 2)
        again = made.newcomer("xinu", state="again")
        again.joined(made.token("--module", "lab"), made.address_of("lab"))
        assert again.ended() == 1
        assert "`xinu` has a certificate for another key" in again.told


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
@pytest.mark.parametrize("path", ["/v1/join/tokens", "/v1/join/decide", "/v1/join/revoke", "/v1/parents"])
def test_only_the_modules_own_user_and_root_decide_who_joins(asking_campus: Campus, path: str) -> None:
    office = asking_campus.federation
    office.folder("cs").parent.chmod(0o711)
    assert office.status_code_for(65533, "POST", path=path, module="cs") == 403
    assert office.status_code_for(0, "POST", path=path, module="cs") in {400, 409}


def test_nothing_is_asked_where_another_module_answers_and_nothing_is_given_for_a_revoked_token(
    open_campus: Campus,
) -> None:
    file = open_campus.token()
    token = JoinToken.from_text(file.read_bytes())
    file.write_text(replace(token, parent_key=bytes(16)).to_text())
    xinu = open_campus.newcomer("xinu")
    xinu.joined(file, open_campus.address)
    assert xinu.ended() == 1
    assert "has another key than the module cs that made this token" in xinu.told
    with open_campus.federation.client() as client:
        (listed,) = client.joining()["tokens"]
    assert listed["state"] == "unused"
    open_campus.decide("revoke", listed["id"][:8])
    file.write_text(token.to_text())
    xinu.joined(file, open_campus.address)
    assert xinu.ended() == 1
    assert "this token is not known" in xinu.told


def test_the_certificate_of_a_token_opens_nothing_else_and_a_flood_of_calls_stops_nobody(open_campus: Campus) -> None:
    token = JoinToken.from_text(open_campus.token().read_bytes())
    address, own = open_campus.address, (open_campus.federation.folder("cs") / "certificate.pem").read_bytes()

    async def code_of(method: str) -> object:
        credentials = grpc.ssl_channel_credentials(own, token.key, token.certificate)
        options = (("grpc.ssl_target_name_override", "cs"), ("grpc.use_local_subchannel_pool", 1))
        async with grpc.aio.secure_channel(address, credentials, options=options) as channel:
            return (await status_of(channel, method))[0]

    async def scene() -> None:
        for method in METHODS:
            assert await code_of(method) is grpc.StatusCode.PERMISSION_DENIED, method
        flood = asyncio.gather(*(code_of("Membership/Join") for _ in range(300)))
        done = await asyncio.to_thread(open_campus.federation.run, "run", "--", "echo", "served")
        assert done.stdout == "served\n", done.stderr
        allowed = {grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE}
        assert set(await flood) <= allowed

    asyncio.run(scene())


def test_a_newcomer_that_is_killed_while_it_waits_joins_with_the_same_key(asking_campus: Campus) -> None:
    xinu, token, address = asking_campus.newcomer("xinu"), asking_campus.token(), asking_campus.address
    xinu.joined(token, address)
    asking_campus.waits_for("xinu")
    key = (xinu.directory / "key.pem").read_bytes()
    xinu.end(signal.SIGKILL)
    asking_campus.decide("approve", "xinu")
    xinu.joined(token, address)
    _are_linked(asking_campus, 2)
    assert (xinu.directory / "key.pem").read_bytes() == key


def test_a_newcomer_that_is_killed_before_it_has_stored_its_settings_asks_again(open_campus: Campus) -> None:
    xinu, token, address = open_campus.newcomer("xinu"), open_campus.token(), open_campus.address
    xinu.joined(token, address)
    _are_linked(open_campus, 2)
    xinu.end(signal.SIGKILL)
    # The state in which it is if it ends before the settings are stored.
    certificate = (xinu.directory / "certificate.pem").read_bytes()
    for name in ("settings.json", "certificate.pem"):
        (xinu.directory / name).unlink()
    eventually(lambda: open_campus.machines("up") == 1)
    xinu.joined(token, address)
    _are_linked(open_campus, 2)
    assert (xinu.directory / "certificate.pem").read_bytes() == certificate


def test_a_newcomer_that_has_joined_only_runs_when_it_is_started_with_its_token(open_campus: Campus) -> None:
    xinu, token, address = open_campus.newcomer("xinu"), open_campus.token(), open_campus.address
    xinu.joined(token, address)
    _are_linked(open_campus, 2)
    xinu.end()
    eventually(lambda: open_campus.machines("up") == 1)
    xinu.joined(token, address)
    _are_linked(open_campus, 2)
    again = "has joined `cs` before, and runs as it ran last; if it has left since, get a token and type"
    assert f"`xinu` {again} `messiahs module parent add {address} --token FILE --module xinu`\n" in xinu.told


def test_a_parent_that_is_killed_while_a_request_waits_knows_it_when_it_is_back(asking_campus: Campus) -> None:
    xinu = asking_campus.newcomer("xinu")
    xinu.joined(asking_campus.token(), asking_campus.address)
    asking_campus.waits_for("xinu")
    asking_campus.federation.kill("cs", "daemon")
    asking_campus.decide("approve", "xinu")
    _are_linked(asking_campus, 2)


def test_where_the_key_of_the_root_is_elsewhere_the_certificate_is_signed_there(asking_campus: Campus) -> None:
    folder = asking_campus.federation.state / "campus" / "tls"
    elsewhere = asking_campus.folder / "elsewhere" / "campus" / "tls"
    elsewhere.mkdir(parents=True, mode=0o700)
    for name in ("root.pem", "root.key"):
        (elsewhere / name).write_bytes((folder / name).read_bytes())
        (elsewhere / name).chmod(0o600)
    (folder / "root.key").unlink()
    try:
        xinu = asking_campus.newcomer("xinu")
        xinu.joined(asking_campus.token(), asking_campus.address)
        asking_campus.waits_for("xinu")
        refused = asking_campus.federation.run("join", "approve", "xinu")
        assert "no key of a root is here" in refused.stderr
        request, certificate = asking_campus.folder / "xinu.csr", asking_campus.folder / "xinu.pem"
        request.write_text(asking_campus.federation.run("join", "list", "--request", "xinu").stdout)
        _sign(elsewhere.parent, request, certificate)
        asking_campus.decide("approve", "xinu", "--certificate", str(certificate))
        _are_linked(asking_campus, 2)
    finally:
        (folder / "root.key").write_bytes((elsewhere / "root.key").read_bytes())


def test_a_running_module_gets_a_second_parent_which_counts_it_when_it_is_to_be_the_primary_one(tmp_path: Path) -> None:
    with campus(tmp_path, join=JOINED_BY_POLICY, others="  ee: {parent: cs}\n") as made:
        xinu = made.newcomer("xinu")
        xinu.joined(made.token(), made.address)
        _are_linked(made, 2)
        token = made.token("--module", "ee")
        for _ in range(2):
            done = xinu.run("module", "parent", "add", made.address_of("ee"), "--token", str(token))
            assert done.stdout == "ee is a parent of xinu\n", done.stderr
        _has_two_parents(made)
        xinu.end()
        made.federation.kill("ee", "daemon")
        xinu.start()
        _has_two_parents(made)
        changed = xinu.run("module", "parent", "primary", "ee", "--reason", "cs is shut down")
        assert changed.stdout == "ee counts xinu\n", changed.stderr
        with made.federation.client("ee") as client:
            eventually(lambda: client.vectors()["up"]["machines"] == 1)
        refused = xinu.run("module", "parent", "primary", "blays")
        assert refused.returncode == 1
        assert "blays" in refused.stderr
        refused = made.federation.run("module", "parent", "add", made.address_of("ee"), "--token", str(token))
        assert "ee is a child of this module" in refused.stderr


def test_a_sibling_joins_without_a_parent_and_leaves_when_it_gets_one(tmp_path: Path) -> None:
    join = 'join { allow child when $peer.name ne ""; allow sibling when $peer.name eq "xinu"; }'
    with campus(tmp_path, join=join, others="  ee: {parent: cs}\n") as made:
        xinu = made.newcomer("xinu")
        xinu.joined(made.token("--role", "sibling"), made.address)
        for _ in range(2):
            # Each sees the machine of the other, and neither counts it: nor does a system above.
            eventually(lambda: made.machines("down") == 2 and xinu.machines("down") == 2, lambda: xinu.told)
            assert made.machines("up") == xinu.machines("up") == 1
            with xinu.client() as client:
                module = client.module()
            assert (module["parents"], module["siblings"]) == ([], ["cs"])
            _run_both_ways(made)
            xinu.end()
            made.federation.kill("cs", "daemon")
            xinu.start()
        token = str(made.token("--module", "ee"))
        added = xinu.run("module", "parent", "add", made.address_of("ee"), "--token", token, "--json")
        assert added.returncode == 0, added.stderr
        assert json.loads(added.stdout) == {"schema": 1, "parent": "ee", "module": "xinu"}
        # Else `cs` would count it twice: as a sibling, and below its child.
        eventually(lambda: made.machines("up") == 2 and made.machines("down") == 1)
        with xinu.client() as client:
            eventually(lambda: client.module()["siblings"] == [])


def test_a_system_that_listens_leaves_and_joins_again(open_campus: Campus) -> None:
    xinu = open_campus.newcomer("xinu")
    xinu.joined(open_campus.token(), open_campus.address, "--listen", f"127.0.0.1:{free_port()}")
    _are_linked(open_campus, 2)
    left = xinu.run("module", "leave", "cs")
    assert left.returncode == 0, left.stderr
    eventually(lambda: _children(open_campus) == [] and open_campus.machines("up") == 1)

    def joins() -> bool:
        token = open_campus.token()
        done = xinu.run("module", "parent", "add", open_campus.address, "--token", str(token))
        # Until the old link has ended on both sides, it is refused.
        assert done.returncode == 0 or "ended" in done.stderr or "already" in done.stderr, done.stderr
        return done.returncode == 0

    eventually(joins)
    _are_linked(open_campus, 2)
    _run_both_ways(open_campus)


def test_a_system_that_was_removed_while_it_was_away_returns_with_another_token(open_campus: Campus) -> None:
    xinu = open_campus.newcomer("xinu")
    xinu.joined(open_campus.token(), open_campus.address)
    _are_linked(open_campus, 2)
    xinu.end()
    removed = open_campus.federation.run("module", "remove", "xinu", "--now")
    assert removed.returncode == 0, removed.stderr
    with open_campus.federation.client() as client:
        eventually(lambda: client.neighbors() == [])
    xinu.start()
    with xinu.client() as client:
        # It has not learned of its removal.
        eventually(lambda: ["xinu is no neighbor of cs" in each["text"] for each in client.neighbors()] == [True])
    added = xinu.run("module", "parent", "add", open_campus.address, "--token", str(open_campus.token()))
    assert (added.returncode, added.stdout) == (0, "cs is a parent of xinu\n"), added.stderr
    _are_linked(open_campus, 2)


def test_a_newcomer_behind_a_border_that_shares_its_state_runs_tasks_of_the_outside(tmp_path: Path) -> None:
    with campus(tmp_path, join=JOINED_BY_POLICY, others="  gate: {parent: cs, reach: proxy}\n") as made:
        xinu = made.newcomer("xinu")
        xinu.folder = made.federation.state
        xinu.joined(made.token("--module", "gate"), made.address_of("gate"))
        _are_linked(made, 2)
        task = made.federation.submit(*on("xinu"), "--", "true")
        with made.federation.client() as client:
            client.wait(task)
        # Outside, the border stands for it.
        assert made.federation.status(task)["executed_on"] == "gate"
        done = xinu.run("run", *on("cs"), "--", "echo", "out")
        assert done.stdout == "out\n", done.stderr


def _children(campus: Campus) -> list[str]:
    with campus.federation.client() as client:
        return list(client.module()["children"])


def _has_two_parents(made: Campus) -> None:
    (xinu,) = made.newcomers

    def parents() -> tuple[list[str], object]:
        with xinu.client() as client:
            module = client.module()
            return sorted(set(module["parents"]) & set(module["linked"])), module["primary_parent"]

    eventually(lambda: parents() == (["cs", "ee"], "cs"), parents)
    with made.federation.client("ee") as client:
        assert client.module()["children"] == ["xinu"]
        # It hears the machine of xinu, and leaves it to cs to count it.
        eventually(lambda: client.vectors()["views"].get("xinu", {}).get("machines") == 1)
        assert client.vectors()["up"]["machines"] == 0
    eventually(lambda: made.machines("up") == 2)


def _sign(directory: Path, request: Path, certificate: Path) -> None:
    certificate.write_bytes(SiteRoot.load(directory).sign(request.read_bytes(), "xinu"))


def _are_linked(campus: Campus, machines: int) -> None:
    """Return when `cs` counts so many machines; fail at once if a newcomer has ended."""

    def is_so() -> bool:
        ended = [each.told for each in campus.newcomers if each.process is not None and each.process.poll() is not None]
        assert not ended, ended
        return campus.machines("up") == machines

    eventually(is_so, lambda: [each.told for each in campus.newcomers])


def _run_both_ways(campus: Campus) -> None:
    (xinu,) = campus.newcomers
    down = campus.federation.run("run", *on("xinu"), "--", "echo", "down")
    assert down.stdout == "down\n", down.stderr
    up = xinu.run("run", *on("cs"), "--", "echo", "up")
    assert up.stdout == "up\n", up.stderr
