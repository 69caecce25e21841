"""`messiahs topology bundle`: a folder for each host, with all that its modules need but their keys."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final

import click

from messiahs.cli.options import JSON, TOPOLOGY
from messiahs.cli.output import print_document, print_text
from messiahs.errors import ClientError, explained

if TYPE_CHECKING:
    from messiahs.config.topology.bundles import Files

_RECORD: Final = "bundle.json"


@click.command()
@TOPOLOGY
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder to write, new or a bundle.")
@click.option("--command", metavar="PATH", help="Where `messiahs` is on the hosts [/usr/local/bin/messiahs].")
@JSON
def bundle(topology_file: Path, *, out: Path, command: str | None, as_json: bool) -> None:
    """Write a folder for each host of TOPOLOGY into --out: topology, policies, trust, units, and a page of five steps.

    A system without `host` has a folder of its own name; external systems have none. No file contains a key. An earlier
    bundle is replaced; files that were put beside its own stay.
    """
    from messiahs.config.regular_files import read_regular
    from messiahs.config.topology.bundles import Commands, bundles, hosts_of
    from messiahs.config.topology.reading import load_topology

    topology = load_topology(topology_file, reads_trust=True)
    lacking = [system.name for system in topology.systems if system.host is None and system.reach != "outbound"]
    if lacking:
        raise ClientError(
            f"nobody could dial {', '.join(lacking)}: they need a `host` and `port`, or `reach: outbound`"
        )
    commands = Commands() if command is None else Commands(system=command, user=command)
    made = bundles(topology, read_regular(topology_file).decode(), folder=topology_file.parent, commands=commands)
    try:
        _write(out, topology.federation, made)
    except OSError as error:
        needed_bytes = sum(len(data) for files in made.values() for data in files.values())
        text = f"the bundle of {needed_bytes / (1 << 10):.0f} KiB cannot be written to {out}: {explained(error)}"
        raise ClientError(text) from error
    hosts = {host: [system.name for system in systems] for host, systems in hosts_of(topology).items()}
    if as_json:
        print_document({"federation": topology.federation, "out": str(out), "hosts": hosts})
        return
    for host, names in hosts.items():
        print_text(f"{out / host}: {', '.join(names)}")


def _write(out: Path, federation: str, made: "Mapping[str, Files]") -> None:
    """Write the files, and remove those of the earlier bundle that are in none any more."""
    content = {f"{host}/{path}": data for host, files in made.items() for path, data in files.items()}
    _refuse_links(out, (*content, _RECORD))
    earlier = _recorded(out)
    out.mkdir(parents=True, exist_ok=True)
    hashes = {path: sha256(data).hexdigest() for path, data in sorted(content.items())}
    # Recorded first: after a crash in the middle, the folder still counts as a bundle, and can be written again.
    _record(out, federation, {**earlier, **hashes})
    for path in set(earlier) - set(content):
        (out / path).unlink(missing_ok=True)
        _remove_if_empty(out, (out / path).parent)
    for path, data in content.items():
        (out / path).parent.mkdir(parents=True, exist_ok=True)
        (out / path).write_bytes(data)
    _record(out, federation, hashes)


def _refuse_links(out: Path, paths: Iterable[str]) -> None:
    """Raise a `ClientError` if a symbolic link would lead the writing of one of these files out of a folder."""
    for path in paths:
        way = [out / path, *(out / each for each in PurePath(path).parents)][:-1]
        link = next((each for each in way if each.is_symlink()), None)
        if link is not None:
            raise ClientError(f"{link} is a symbolic link, which no bundle follows: remove it")


def _record(out: Path, federation: str, hashes: Mapping[str, str]) -> None:
    text = json.dumps({"federation": federation, "files": dict(sorted(hashes.items()))}, indent=1)
    (out / _RECORD).write_text(f"{text}\n", encoding="utf-8")


def _recorded(out: Path) -> dict[str, str]:
    """Return the files of the earlier bundle in a folder; a `ClientError` if the folder contains something else."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return {}
    try:
        found = json.loads((out / _RECORD).read_bytes())["files"]
        paths = {str(path): str(digest) for path, digest in found.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ClientError(f"{out} is not empty and holds no bundle: choose another folder, or empty it") from error
    root = out.resolve()
    if not all((root / path).resolve().is_relative_to(root) for path in paths):
        raise ClientError(f"{out / _RECORD} names files outside of {out}: choose another folder")
    return paths


def _remove_if_empty(out: Path, folder: Path) -> None:
    while folder != out and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
