"""A site gets a new root while its modules, and those of a linked site, run: "A new root" in docs/administrators.md.

The site of `uni` and `phys` changes its root. The gates `uni` and `chem` of both sites are linked (small_sites.py).
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import KeyAndCertificate, make_root
from messiahs.errors import ClientError
from tests.live.small_sites import Site, Sites, described, on, started
from tests.ports import free_port
from tests.waiting import eventually

__all__ = ["described"]

ACROSS = (("phys", "lab"), ("lab", "phys"), ("uni", "chem"), ("chem", "uni"))


@pytest.fixture
def sites(described: Sites) -> Sites:
    """Start all four, each site with its own root."""
    return started(described)


@pytest.fixture
def late(sites: Sites, tmp_path: Path) -> Iterator[Site]:
    """Describe a module that joins later, on a host of its own."""
    made = Site(name="late", folder=tmp_path / "late")
    made.folder.mkdir()
    yield made
    if made.process is not None and made.process.poll() is None:
        made.end()


def test_work_crosses_the_link_at_every_stage_of_a_new_root_and_after_a_restart_of_any_module(
    sites: Sites, late: Site
) -> None:
    uni, phys, chem = (sites[name] for name in ("uni", "phys", "chem"))
    old, new = uni.root.read_bytes(), make_root("pact")
    stays_possible(sites)
    in_force_after((uni, phys, chem), lambda: trust(sites, old + new.certificate))
    stays_possible(sites)
    uni.root.with_name("root.key").write_bytes(new.key)
    # Both roots are in force, and each module of the site has a certificate of another one.
    in_force_after((uni,), lambda: succeed(uni, "certificate", "renew", "uni"))
    stays_possible(sites, "phys", "uni", "chem")
    in_force_after((phys,), lambda: succeed(uni, "certificate", "renew", "phys"))
    succeed(uni, "certificate", "revoke")
    eventually(lambda: "has signed none that is valid" in uni.run("certificate", "show").stdout)
    stays_possible(sites, "phys")
    remove_old(sites, new)
    stays_possible(sites, "phys", "uni", "lab", "chem")
    takes_part(sites, late)


def test_modules_that_keep_running_get_a_new_root_and_a_sibling_that_joins_after_it(sites: Sites, late: Site) -> None:
    uni, phys, chem = (sites[name] for name in ("uni", "phys", "chem"))
    old, new = uni.root.read_bytes(), make_root("pact")
    in_force_after((uni, phys, chem), lambda: trust(sites, old + new.certificate))
    uni.root.with_name("root.key").write_bytes(new.key)
    in_force_after((uni, phys), lambda: succeed(uni, "certificate", "renew"))
    succeed(uni, "certificate", "revoke")
    remove_old(sites, new)
    stays_possible(sites)
    takes_part(sites, late)


def trust(sites: Sites, roots: bytes) -> None:
    """Replace the roots of the first site there, and the copy at the second one."""
    sites["uni"].root.write_bytes(roots)
    (sites["chem"].folder / "theirs.pem").write_bytes(roots)


def remove_old(sites: Sites, new: KeyAndCertificate) -> None:
    """Leave the new root alone in force, as soon as the list of revoked certificates is signed by it."""
    in_force_after([sites[name] for name in ("uni", "phys", "chem")], lambda: trust(sites, new.certificate))


def stays_possible(sites: Sites, *restarted: str) -> None:
    """Run tasks over the link both ways: now, and after each of these modules alone was restarted."""
    for name in ("", *restarted):
        if name:
            sites[name].end()
            sites[name].start()
            eventually(lambda: [sites[each].machines("down") for each in ("phys", "lab")] == [4, 4])
        for origin, machine in ACROSS:
            runs(sites[origin], machine)


def runs(origin: Site, machine: str) -> None:
    """Run a task on a machine, without waiting for a place."""
    done = origin.run("run", "--no-wait", *on(machine), "--", "echo", f"at {machine}")
    assert (done.returncode, done.stdout) == (0, f"at {machine}\n"), (origin.name, machine, done.stderr)


def succeed(site: Site, *words: str) -> None:
    done = site.run(*words)
    assert done.returncode == 0, done.stderr


def in_force_after(sites: "tuple[Site, ...] | list[Site]", change: Callable[[], object]) -> None:
    """Make a change, and wait until each of these modules has read its files again."""
    before = {site.name: readings(site) for site in sites}
    change()
    eventually(lambda: all(readings(site) > before[site.name] for site in sites))


def readings(site: Site) -> int:
    """Return how often a module has noted the certificates in force."""
    shown = site.run("audit", "decisions", "--json", "--kind", "member").stdout.splitlines()
    return sum(json.loads(line)["what"] == "certificates in force" for line in shown)


def join(late: Site, uni: Site) -> None:
    """Let a module with one slot join, with a token."""
    token = late.folder / "token"
    token.write_text(uni.run("join", "token").stdout)
    with uni.client() as client:
        address = str(client.module()["address"])
    listen = ("--listen", f"127.0.0.1:{free_port()}", "--machine", "isolation=process,slots=1,site=late")
    late.process = late.begin("module", "run", "late", "--join", address, "--token", str(token), *listen)
    eventually(lambda: "late" in uni.run("join", "list").stdout)
    succeed(uni, "join", "approve", "late")


def takes_part(sites: Sites, late: Site) -> None:
    """Let a module join: it gets the other child as a sibling, and exchanges work with the other site."""
    uni, phys = sites["uni"], sites["phys"]
    join(late, uni)
    eventually(lambda: (siblings(late), siblings(phys)) == (["phys"], ["late"]), lambda: (uni.notes(), phys.notes()))
    eventually(lambda: late.machines("down") == 5)
    runs(late, "lab")
    runs(sites["lab"], "late")
    assert "removed" not in phys.run("doctor").stdout


def siblings(site: Site) -> object:
    try:
        with site.client(patience=0) as client:
            return client.module()["siblings"]
    except ClientError:
        # It has not joined yet.
        return None
