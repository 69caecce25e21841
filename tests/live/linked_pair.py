"""Two sites with a machine each, `alpha` and `beta`, linked as parent and child; beta dials."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from messiahs.daemon.process.pid_files import recorded_process
from messiahs.executor.linux import processes
from tests.live.small_sites import Site, exchange_roots
from tests.ports import free_port
from tests.waiting import eventually

LEASE_SECONDS = 5
POLICY = """
policy "a short lease" version 1;
accept from any {{ }}
accept from users {{ }}
timeouts {{ lease {seconds}s; }}
"""


@contextmanager
def described_pair(folder: Path, *, slots: int, defaults: str = "update_period: 200ms") -> Iterator[tuple[Site, Site]]:
    """Write the files of both sites, which do not know each other's root yet; end those that run afterwards."""
    alpha, beta = Site(name="alpha", folder=folder / "a"), Site(name="beta", folder=folder / "b")
    head = f"version: 1\nfederation: pact\ndefaults: {{{defaults}}}\nsystems:\n"
    upper = f"host: 127.0.0.1, port: {free_port()}"
    lower = f"host: 127.0.0.1, port: {free_port()}, parent: alpha"
    for site in (alpha, beta):
        site.folder.mkdir()
        machine = f"machine: {{isolation: process, slots: {slots}, attributes: {{site: {site.name}}}}}"
        theirs = "external: true, trust: theirs.pem"
        a, b = (machine, theirs) if site is alpha else (theirs, machine)
        (site.folder / "site.yaml").write_text(f"{head}  alpha: {{{upper}, {a}}}\n  beta: {{{lower}, {b}}}\n")
    try:
        yield alpha, beta
    finally:
        for site in (alpha, beta):
            if site.process is not None and site.process.poll() is None:
                site.end()
            _end_starter(site)


@contextmanager
def linked_pair(folder: Path, *, lease_seconds: int = LEASE_SECONDS) -> Iterator[tuple[Site, Site]]:
    """Start both sites with a short lease, and end them afterwards if they still run."""
    with described_pair(folder, slots=2, defaults="update_period: 200ms, policy: short.policy") as (alpha, beta):
        for site in (alpha, beta):
            (site.folder / "short.policy").write_text(POLICY.format(seconds=lease_seconds))
        exchange_roots(alpha, beta)
        for site in (alpha, beta):
            site.start()
        await_link(alpha, beta)
        yield alpha, beta


def await_link(alpha: Site, beta: Site) -> None:
    """Return once each site counts the machine of the other."""
    eventually(lambda: alpha.machines("up") == 2 and beta.machines("down") == 2)


def kill(site: Site) -> None:
    """Kill -9 the module of a site."""
    assert site.process is not None
    site.process.kill()
    site.process.communicate()


def _end_starter(site: Site) -> None:
    """End the starter, and so the tasks, that a killed daemon has left."""
    starter = recorded_process(site.folder / "state" / "pact" / site.name / "starter.pid")
    if starter is not None:
        processes.kill(starter)
        eventually(lambda: not processes.is_alive(starter))


def only_on(site: Site) -> tuple[str, str]:
    """Return the options of a task that runs at one of the sites."""
    return "--require", f'$site eq "{site.name}"'
