"""Two sites that nobody can dial, `alpha` and `beta`, below `pact`, the module of a third site."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from messiahs.cli.federation.certificates import make_certificates
from messiahs.cli.federation.deployment import federation_directory
from tests.live.small_sites import Site, leave
from tests.ports import free_port
from tests.waiting import eventually

NAMES = ("pact", "alpha", "beta")
Three = dict[str, Site]


@contextmanager
def three_sites(folder: Path, *, networks: Mapping[str, str] | None = None) -> Iterator[Three]:
    """Make folders, roots and certificates for the three, and end their modules after the block, also if it fails.

    `networks` are the network namespaces of their hosts.
    """
    made = {name: Site(name=name, folder=folder / name, netns=(networks or {}).get(name, "")) for name in NAMES}
    for name, site in made.items():
        site.folder.mkdir()
        make_certificates(federation_directory(site.folder / "state", "pact"), (name,))
    for site in made.values():
        for other in made.values():
            shutil.copy(other.root, site.folder / f"{other.name}.pem")
    try:
        yield made
    finally:
        leave(made)


def describe(sites: Three, *, are_introduced: bool, trusts_relays: str = "", address: str = "") -> None:
    """Write the file of each site; `pact` listens at host:port, by default of this machine."""
    host, _, port = (address or f"127.0.0.1:{free_port()}").rpartition(":")
    for name, site in sites.items():
        lines = ["version: 1", "federation: pact", "defaults: {update_period: 200ms}"]
        other = {"alpha": "beta", "beta": "alpha"}.get(name, "")
        if other and are_introduced:
            lines.append(f"introductions: [{{file: {other}.pem, names: [{other}]}}]")
        if name in trusts_relays.split():
            lines.append("trusts_relays: true")
        lines.append("systems:")
        for each in NAMES:
            if each == other:
                continue
            words = [f"host: {host}, port: {port}"] if each == "pact" else ["parent: pact", "reach: outbound"]
            if each != name:
                words.append(f"external: true, trust: {each}.pem")
            elif each != "pact":
                words.append(f"machine: {{isolation: process, slots: 2, attributes: {{site: {each}}}}}")
            lines.append(f"  {each}: {{{', '.join(words)}}}")
        (site.folder / "site.yaml").write_text("\n".join(lines) + "\n")


def start(sites: Three) -> None:
    """Start the three modules; each machine is known at the other site afterwards."""
    for site in sites.values():
        site.start()
    eventually(lambda: [sites[name].machines("down") for name in ("alpha", "beta")] == [2, 2])


def seen_by(site: Site, *secrets: bytes) -> list[str]:
    """Return the files of a module that hold one of some bytes, and its memory if that does."""
    assert site.process is not None
    found = [
        str(path)
        for path in (site.folder / "state").rglob("*")
        if path.is_file() and any(secret in path.read_bytes() for secret in secrets)
    ]
    with Path(f"/proc/{site.process.pid}/maps").open() as maps, Path(f"/proc/{site.process.pid}/mem").open("rb") as mem:
        for line in maps:
            span, rights = line.split()[:2]
            if not rights.startswith("rw") or "[vvar" in line:
                continue
            begin, end = (int(each, 16) for each in span.split("-"))
            mem.seek(begin)
            try:
                content = mem.read(end - begin)
            except OSError:
                continue
            if any(secret in content for secret in secrets):
                found.append(line.strip())
    return found
