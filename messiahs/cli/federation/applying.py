"""What `topology apply` has to do in a state directory: all of it is checked before anything is changed."""

import fcntl
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from messiahs.cli.federation.certificates import make_certificates
from messiahs.cli.federation.deployment import (
    LOOPBACK,
    assigned_ports,
    check_roots,
    check_users,
    make_folder,
    settings_of,
    write_plan,
    writing,
)
from messiahs.client.locating import check_socket_path
from messiahs.config.regular_files import read_regular
from messiahs.config.settings import ModuleSettings, NeighborSettings, load_settings, save_settings
from messiahs.config.topology.reach import is_dialable
from messiahs.config.topology.topology import Topology
from messiahs.daemon.process.pid_files import PID_FILE, recorded_process
from messiahs.daemon.supervision.supervisor import PLAN_FILE
from messiahs.errors import ClientError
from messiahs.executor.linux.processes import ProcessIdentity

_LOCK: Final = "apply.lock"
_AT_START: Final = "it takes the file over with `messiahs module run NAME --topology FILE`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A topology for the modules of one federation in one state directory.

    `running` are to take it over. Where `messiahs up` runs them, under the `supervisor`, `planned` are all that it
    runs, `new` are to be started, `gone` to be ended, and `down` do not run at the moment. `notes` are for people.
    """

    topology: Topology
    file: Path
    directory: Path
    running: tuple[str, ...]
    planned: frozenset[str] = frozenset()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    down: tuple[str, ...] = ()
    supervisor: ProcessIdentity | None = None
    notes: tuple[str, ...] = ()

    def settings(self, addresses: dict[str, str], *, staying: Collection[str] = ()) -> dict[str, ModuleSettings]:
        """Return the settings of all modules here, with the addresses of all systems that they dial.

        A module that is gone has no neighbors any more, and ends its links when their claims have ended. Those that are
        `staying` keep theirs, because their users have tasks that are to run elsewhere.
        """
        listed = (*self.new, *self.running, *self.down)
        made = {
            name: settings_of(self.topology, name, directory=self.directory, addresses=addresses) for name in listed
        }
        stored = {name: self._stored(name) for name in (*self.running, *self.down, *self.gone)}
        for name in (*self.running, *self.down):
            kept = links_with(staying, before=stored[name].neighbors, after=made[name].neighbors)
            neighbors = (*made[name].neighbors, *kept)
            made[name] = replace(made[name], neighbors=neighbors, sockets=stored[name].sockets)
        # Modules that `up` runs have their sockets in one folder.
        sockets = next((each.sockets for each in stored.values()), None) if self.supervisor is not None else None
        for name in self.new:
            made[name] = replace(made[name], sockets=sockets)
        for name in self.gone:
            linked = {other for other, each in made.items() if name in _neighbors(each)}
            dropped = {*made, *self.gone} - linked - set(staying) if name in staying else _neighbors(stored[name])
            kept = tuple(link for link in stored[name].neighbors if link.neighbor.system not in dropped)
            made[name] = replace(stored[name], neighbors=kept)
        return made

    def _stored(self, name: str) -> ModuleSettings:
        return load_settings(self.directory / name / "settings.json")

    def addresses(self) -> dict[str, str]:
        """Return the address of each module: as the file gives them, or of loopback with a port for each new one."""
        if self.supervisor is None:
            return {str(system.name): system.address for system in self.topology.systems if system.address is not None}
        dialable = [str(system.name) for system in self.topology.systems if is_dialable(system)]
        with writing(self.directory):
            ports = assigned_ports(self.directory / "ports.json", dialable, running=self.planned)
        return {name: f"{LOOPBACK}:{port}" for name, port in ports.items()}

    def begin(self, settings: dict[str, ModuleSettings]) -> None:
        """Write the files of new modules, and name them in the supervisor's plan beside those that run."""
        with writing(self.directory):
            for name in self.new:
                make_folder(self.directory, name)
            if self.new:
                make_certificates(self.directory, self.new)
            for name in (*self.new, *self.down):
                save_settings(settings[name], settings[name].directory / "settings.json")
            if self.supervisor is not None:
                write_plan(self.directory, sorted(self.planned.union(self.new)), file=self.file)

    def end(self, kept: Collection[str]) -> None:
        """Name in the supervisor's plan only what stays, and modules that cannot end yet."""
        with writing(self.directory):
            names = self.planned.union(self.new) - {name for name in self.gone if name not in kept}
            write_plan(self.directory, sorted(names), file=self.file)


def application_of(topology: Topology, file: Path, *, directory: Path, only: Collection[str]) -> Application:
    """Return what is to be done; raises ClientError if no module of the federation runs here, or one cannot follow.

    `only` names the modules that are concerned (empty: all).
    """
    running = {place.parent.name for place in directory.glob("*/daemon.pid") if recorded_process(place) is not None}
    if not running:
        raise ClientError(f"no module of `{directory.name}` runs here: {directory} has none that could take it over")
    supervisor = recorded_process(directory / PID_FILE)
    if supervisor is not None:
        topology = topology.without_externals()
    planned = _planned(directory) if supervisor is not None else frozenset()
    own = [str(system.name) for system in topology.systems if not system.is_external]
    unknown = sorted(set(only) - set(own) - running)
    if unknown:
        raise ClientError(f"{', '.join(unknown)}: neither in {file} nor running here")
    if supervisor is None and running.isdisjoint(own):
        here, known = ", ".join(sorted(running)), {str(system.name) for system in topology.systems}
        what = "lists what runs here as external" if running & known else "lists nothing of what runs here"
        raise ClientError(f"{file} {what} ({here}): it may be the file of another site; nothing was changed")
    stopped = sorted(set(own) - running) if supervisor is None else []
    missing = sorted(set(only) & set(stopped))
    if missing:
        names = ", ".join(missing)
        raise ClientError(f"{names}: not running here, or still starting; {_AT_START}; nothing was changed")
    chosen = set(only) or {*own, *running}
    return Application(
        topology=topology,
        file=file,
        directory=directory,
        running=tuple(name for name in own if name in running and name in chosen),
        planned=planned,
        new=tuple(name for name in own if supervisor is not None and name not in planned and name in chosen),
        gone=tuple(sorted(name for name in planned - set(own) if name in chosen)),
        down=tuple(name for name in own if name in planned - running and name in chosen),
        supervisor=supervisor,
        notes=(
            *_notes(own, running, planned, chosen),
            *(
                f"{name}: not running here, or still starting; {_AT_START}"
                for name in stopped
                if name in chosen and (directory / name / "settings.json").exists()
            ),
        ),
    )


def links_with(
    staying: Collection[str], *, before: tuple[NeighborSettings, ...], after: tuple[NeighborSettings, ...]
) -> tuple[NeighborSettings, ...]:
    """Return the links of before with systems that stay for a while, to be kept beside those of the new file.

    Where the primary parent changes, that of before and its children go at once: sums would count machines twice.
    """
    kept = tuple(link for link in before if link.neighbor.system in staying)
    if _primary(before) == _primary(after):
        return kept
    return tuple(link for link in kept if not (link.neighbor.is_primary_parent or link.neighbor.is_sibling))


def _primary(links: tuple[NeighborSettings, ...]) -> str | None:
    return next((link.neighbor.system for link in links if link.neighbor.is_primary_parent), None)


def _neighbors(settings: ModuleSettings) -> set[str]:
    return {link.neighbor.system for link in settings.neighbors}


def check(settings: dict[str, ModuleSettings]) -> None:
    """Raise a ClientError if one of the settings cannot be used here; nothing has been changed then."""
    for name, each in settings.items():
        check_socket_path(each.socket)
        check_roots(each)
        check_users(each)
        stored = each.directory / "settings.json"
        if stored.exists() and load_settings(stored).federation != each.federation:
            raise ClientError(f"{stored} is of another federation than `{name}` of the file")


@contextmanager
def alone(directory: Path) -> Iterator[None]:
    """Let one `apply` at a time change a federation; raises ClientError if another one does."""
    with writing(directory):
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise ClientError(f"another `topology apply` changes `{directory.name}` now") from None
    try:
        yield
    finally:
        os.close(descriptor)


def _planned(directory: Path) -> frozenset[str]:
    try:
        return frozenset(map(str, json.loads(read_regular(directory / PLAN_FILE))["modules"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClientError(f"{directory / PLAN_FILE} cannot be read: {error}; end it by `messiahs down`") from error


def _notes(own: list[str], running: set[str], planned: frozenset[str], chosen: set[str]) -> Iterator[str]:
    for name in sorted((running - set(own) - planned) & chosen):
        yield f"{name}: runs here and is not in the file: drain it by `messiahs module drain`, then stop it"
    for name in sorted((planned & set(own)) - running):
        yield f"{name}: does not run now; it takes the file over when it starts"
