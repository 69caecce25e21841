"""Two sites with a root, a state directory and a topology file each, linked as parent and child (`module run`)."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.channel.certificates.tls import make_root
from tests.live.linked_pair import await_link, described_pair, kill
from tests.live.small_sites import Site, exchange_roots
from tests.waiting import eventually

ON = {"alpha": ("--require", '$site eq "alpha"'), "beta": ("--require", '$site eq "beta"')}


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """Describe two sites, the second of which is a child of the first; nothing runs yet."""
    with described_pair(tmp_path, slots=1) as pair:
        yield pair


def test_a_task_of_one_site_runs_at_the_other(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    exchange_roots(alpha, beta)
    for site in sites:
        site.start()
    eventually(lambda: alpha.machines("up") == 2 and beta.machines("down") == 2)
    there = alpha.run("run", *ON["beta"], "--", "sh", "-c", "echo from afar; exit 5")
    assert (there.returncode, there.stdout) == (5, "from afar\n")
    assert alpha.executed_on() == "beta"
    assert beta.run("run", *ON["alpha"], "--", "true").returncode == 0
    assert beta.executed_on() == "alpha"
    assert alpha.root.read_bytes() != beta.root.read_bytes()
    assert [site.end() for site in sites] == [0, 0]
    # The sockets stay: by them other accounts know that the modules exist and do not run.
    kept = {path.name for path in alpha.folder.parent.glob("*/state/pact/*.sock")}
    assert kept == {"alpha.sock", "beta.sock"}


def test_output_that_cannot_be_read_now_is_no_empty_output(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    exchange_roots(alpha, beta)
    for site in sites:
        site.start()
    await_link(alpha, beta)
    task = alpha.run("submit", *ON["beta"], "--", "sh", "-c", "echo begun; sleep 600").stdout.strip()
    eventually(lambda: alpha.run("logs", task).stdout == "begun\n")
    kill(beta)
    cut = alpha.run("logs", task)
    assert (cut.returncode, cut.stdout) == (1, "")
    assert f"the output of {task} cannot be read now: " in cut.stderr
    beta.start()
    eventually(lambda: alpha.run("logs", task).stdout == "begun\n")
    assert alpha.run("cancel", task).returncode == 0


def test_a_link_that_one_side_does_not_trust_is_explained_at_both_ends(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    exchange_roots(alpha, beta)
    # The root that alpha recorded for beta is not beta's, so beta's own root must not vouch for it either.
    (alpha.folder / "theirs.pem").write_bytes(make_root("a third site").certificate)
    alpha.start()
    eventually(lambda: alpha.machines("up") == 1)
    beta.start()
    eventually(lambda: "hung up on this module" in beta.reason("alpha"))
    assert f"give {beta.root} to its administrator, as a root for `beta`" in beta.reason("alpha")
    assert "do both sites record each other's root.pem?" in alpha.reason("beta")
    for site, other in ((alpha, "beta"), (beta, "alpha")):
        assert f"no link with {other}: {site.reason(other)}" in site.notes()
    assert (alpha.machines("up"), alpha.machines("beta")) == (1, 0)
    assert [site.end() for site in sites] == [0, 0]


def test_a_root_that_is_replaced_beside_the_old_one_makes_the_link(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    exchange_roots(alpha, beta)
    true = (beta.folder / "theirs.pem").read_bytes()
    (beta.folder / "theirs.pem").write_bytes(make_root("a third site").certificate)
    alpha.start()
    beta.start()
    eventually(lambda: "signed by no root recorded for it" in beta.reason("alpha"))
    assert beta.end() == 0
    (beta.folder / "new.pem").write_bytes(true)
    topology = beta.folder / "site.yaml"
    topology.write_text(topology.read_text().replace("trust: theirs.pem", "trust: [theirs.pem, new.pem]"))
    beta.start()
    eventually(lambda: alpha.machines("up") == 2)
    for site in sites:
        assert site.notes() == []
    assert beta.run("run", *ON["alpha"], "--", "true").returncode == 0
    assert [site.end() for site in sites] == [0, 0]


def test_a_module_that_nobody_introduced_neither_dials_nor_is_dialed(sites: tuple[Site, Site]) -> None:
    alpha, beta = sites
    exchange_roots(alpha, beta)
    topology = alpha.folder / "site.yaml"
    # Alpha's topology does not know beta, as a neighbor that beta dials, nor any root of its site.
    lines = topology.read_text().splitlines(keepends=True)
    topology.write_text("".join(line for line in lines if "beta:" not in line))
    alpha.start()
    eventually(lambda: alpha.machines("up") == 1)
    beta.start()
    eventually(lambda: "hung up on this module" in beta.reason("alpha"))
    assert alpha.notes() == []
    # With a certificate of alpha's site it is a stranger still.
    shutil.copytree(alpha.folder / "state" / "pact" / "tls", beta.root.parent, dirs_exist_ok=True)
    # A copy of the own root alone would be refused.
    (beta.folder / "theirs.pem").write_bytes(alpha.root.read_bytes() + make_root("a third site").certificate)
    assert beta.end() == 0
    beta.start()
    eventually(lambda: "beta is no neighbor of alpha" in beta.reason("alpha"))
    assert (alpha.machines("up"), alpha.notes()) == (1, [])
    assert [site.end() for site in sites] == [0, 0]
