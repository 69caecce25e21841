"""Finding the socket of a module: STATE/FEDERATION/MODULE.sock, from an explicit name or from existing modules."""

import os
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.client.local_sockets import connected
from messiahs.config.topology.units import SYSTEM_SOCKETS, SYSTEM_STATE
from messiahs.errors import ClientError

_CONNECT_SECONDS: Final = 1.0
_START: Final = (
    "start one with `messiahs up TOPOLOGY`, or, for a module at its own host and port, with "
    "`messiahs module run NAME --topology TOPOLOGY`"
)

_OF_HOST: Final = (Path(SYSTEM_STATE), Path(SYSTEM_SOCKETS))
"""Where root, and where other accounts find the modules of the host."""
SOCKET_PATH_LIMIT_BYTES = 107
"""Maximum length of the path of a Unix socket, without the closing zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """How a user names a module and a state directory where none of them is clear."""

    module: str
    state: str


BY_OPTIONS: Final = Naming(module="`--module`", state="`--state`")
BY_ARGUMENTS: Final = Naming(module="`module=`", state="`state=`")
"""In Python."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ModulePlace:
    """A module with a folder under a state directory, whether it runs or not."""

    federation: str
    module: str
    state_directory: Path

    @property
    def socket(self) -> Path:
        """Path of the local API's socket while the module runs."""
        return self.state_directory / self.federation / f"{self.module}.sock"

    @property
    def directory(self) -> Path:
        """The module's folder."""
        return self.state_directory / self.federation / self.module


def state_directory(explicit: Path | None = None, *, environment: Mapping[str, str] = os.environ) -> Path:
    """Return `explicit`, else MESSIAHS_STATE, else a folder under XDG_STATE_HOME or the user's home."""
    if explicit is not None:
        return explicit.absolute()
    if environment.get("MESSIAHS_STATE"):
        return Path(environment["MESSIAHS_STATE"]).absolute()
    base = environment.get("XDG_STATE_HOME", "")
    # The XDG specification requires that a relative path is ignored.
    home = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return home / "messiahs"


def state_words(directory: Path) -> str:
    """Return what a command needs to find a state directory: ` --state DIR`, or nothing if it looks there anyway."""
    return "" if directory == state_directory() else f" --state {shlex.quote(str(directory))}"


def searched_directory(explicit: Path | None = None, *, environment: Mapping[str, str] = os.environ) -> Path:
    """Return where modules are looked for: `state_directory`, or those of the host if that is the default and has none.

    Root finds the modules of the host by their state, and other accounts by their sockets.
    """
    own = state_directory(explicit, environment=environment)
    if explicit is not None or environment.get("MESSIAHS_STATE") or known_modules(own):
        return own
    return next((each for each in _OF_HOST if known_modules(each)), own)


def known_modules(state: Path) -> tuple[ModulePlace, ...]:
    """Return every module under a state directory, sorted by federation and name."""
    found = set()
    for settings in state.glob("*/*/settings.json"):
        found.add(ModulePlace(federation=settings.parts[-3], module=settings.parts[-2], state_directory=state))
    for path in state.glob("*/*.sock"):
        found.add(ModulePlace(federation=path.parts[-2], module=path.stem, state_directory=state))
    return tuple(sorted(found))


def running_modules(state: Path) -> tuple[ModulePlace, ...]:
    """Return every module under a state directory that answers; a `ClientError` if none does."""
    running = tuple(place for place in known_modules(state) if _answers(place))
    if not running:
        check_permission(state)
        raise ClientError(f"no module runs under {state}; start one with `messiahs up TOPOLOGY`")
    return running


def locate_module(
    name: str | None = None,
    *,
    task: str | None = None,
    state: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    naming: Naming = BY_OPTIONS,
) -> ModulePlace:
    """Return the module that is meant; a `ClientError` lists the choices, which `naming` says how to name.

    The first that applies: the module with `name`, the module in the task's id, MESSIAHS_MODULE, the only existing
    module, the only running module. A name that no own module has may be that of a module of the host, and so may the
    one in an id if that module answers.
    """
    directory = searched_directory(state, environment=environment)
    known = known_modules(directory)
    is_by_default = state is None and not environment.get("MESSIAHS_STATE")
    if name is None and task is not None:
        # A task's id that names no module here may still be known to the chosen module.
        named = tuple(place for place in known if place.module == module_of(task))
        if not named and is_by_default and (of_host := _of_host(module_of(task))) is not None:
            named = tuple(filter(_answers, _matching(known_modules(of_host), module_of(task))))
        if named:
            # Of several federations, the one that the environment names is meant.
            named = _matching(named, environment.get("MESSIAHS_MODULE", "")) or named
            return _checked(_only(named, module_of(task), naming), naming)
    wanted = name if name is not None else environment.get("MESSIAHS_MODULE") or None
    if wanted is not None:
        if is_by_default and not _matching(known, wanted):
            of_host = _of_host(wanted)
            directory, known = (directory, known) if of_host is None else (of_host, known_modules(of_host))
        return _checked(_named(known, wanted, directory, naming), naming)
    if not known:
        check_permission(directory)
        raise ClientError(
            f"no module has ever run under {directory}; {_START}, or name another state directory with {naming.state} "
            "or MESSIAHS_STATE"
        )
    candidates = known if len(known) == 1 else tuple(place for place in known if _answers(place)) or known
    if len(candidates) > 1:
        choices = _list(candidates)
        raise ClientError(f"which module? name one of {choices} with {naming.module} or MESSIAHS_MODULE")
    return _checked(candidates[0], naming)


def module_of(task: str) -> str:
    """Return the module in the id of a task or an attempt: `blays` for `blays.17`, `blays.17.3` and `blays.17.3#2`."""
    labels = task.partition("#")[0].split(".")
    while len(labels) > 1 and labels[-1].isdigit():
        labels.pop()
    return ".".join(labels)


def member_of(task: str) -> int:
    """Return the member in the id of a task or an attempt: 3 for `blays.17.3` and `blays.17.3#2`, 0 for `blays.17`."""
    numbers = task.partition("#")[0].removeprefix(module_of(task)).split(".")[1:]
    return int(numbers[1]) if len(numbers) > 1 else 0


def task_of(name: str) -> str:
    """Return the id of the task of an attempt: `blays.17` for `blays.17#2`; other ids stay as they are."""
    return name.partition("#")[0]


def array_of(task: str) -> str:
    """Return the id of the array of a member: `blays.17` for `blays.17.3`; other ids stay as they are."""
    member = member_of(task)
    return task_of(task).removesuffix(f".{member}") if member else task_of(task)


def _named(known: tuple[ModulePlace, ...], wanted: str, directory: Path, naming: Naming) -> ModulePlace:
    named = _matching(known, wanted)
    if not named:
        check_permission(directory)
        there = f"there are {_list(known)}" if known else f"there is none; {_START}"
        of_host = _of_host(wanted)
        if of_host is not None and of_host != directory:
            there = f"{there}; the installation for all users of this host has it: name {of_host} with {naming.state}"
        raise ClientError(f"no module `{wanted}` under {directory}: {there}")
    return _only(named, wanted, naming)


def _matching(known: Iterable[ModulePlace], wanted: str) -> tuple[ModulePlace, ...]:
    """Return the modules with a name, or with that name in a federation: `FEDERATION/NAME`."""
    federation, _, module = wanted.rpartition("/")
    return tuple(each for each in known if each.module == module and federation in ("", each.federation))


def _of_host(wanted: str) -> Path | None:
    """Return where the installation for all users of this host has a module; None if it has no such module."""
    return next((each for each in _OF_HOST if _matching(known_modules(each), wanted)), None)


def modules_of_host() -> tuple[str, ...]:
    """Return the names of the modules of the installation for all users of this host; none if there is none."""
    return tuple(sorted({place.module for each in _OF_HOST for place in known_modules(each)}))


def check_permission(state: Path) -> None:
    """Raise if this user may not read a state directory or a federation in it; otherwise it would look empty."""
    try:
        federations = sorted(state.iterdir())
    except PermissionError:
        raise _closed(state, state / "FEDERATION") from None
    except OSError:
        return
    closed = [each for each in federations if each.is_dir() and not os.access(each, os.R_OK | os.X_OK)]
    if closed:
        raise _closed(*closed)


def with_settings(places: Iterable[ModulePlace]) -> tuple[ModulePlace, ...]:
    """Return those of some modules that have been set up; a `ClientError` if this user may not see that.

    The folder of a module has its keys, so it is open to the account of the module alone.
    """
    found = []
    for place in places:
        try:
            (place.directory / "settings.json").stat()
        except FileNotFoundError:
            if place.socket.exists():
                text = f"{place.socket.parent} has the socket of `{place.module}`, and its state is elsewhere"
                raise ClientError(f"{text}: name it with `--state`, as the account of the module or as root") from None
            continue
        except PermissionError:
            text = f"you have no permission to read {place.directory}, which has the keys of `{place.module}`"
            raise ClientError(f"{text}: run this command as the account of the module, or as root") from None
        found.append(place)
    return tuple(found)


def _closed(folder: Path, *others: Path) -> ClientError:
    folders = " ".join(map(str, (folder, *others)))
    return ClientError(
        f"you have no permission to read {folder}: its modules are for the account of its owner. Run this command as "
        f"that account. It opens them to others with `users: everyone` in the topology, and `--sockets` with a folder "
        f"that all can read, or by opening these folders and those above them (`chmod o+rx {folders}`)"
    )


def _only(named: tuple[ModulePlace, ...], wanted: str, naming: Naming) -> ModulePlace:
    if len(named) > 1:
        choices = ", ".join(f"{place.federation}/{place.module}" for place in named)
        raise ClientError(f"module `{wanted}` is in several federations: name one of {choices} with {naming.module}")
    return named[0]


def _checked(place: ModulePlace, naming: Naming) -> ModulePlace:
    check_socket_path(place.socket, naming)
    return place


def check_socket_path(path: Path, naming: Naming = BY_OPTIONS) -> None:
    """Refuse a path that is too long for a Unix socket; the kernel's own message would be unclear."""
    length = len(os.fsencode(path))
    if length > SOCKET_PATH_LIMIT_BYTES:
        raise ClientError(
            f"the socket's path {path} has {length} bytes, and a Unix socket can have {SOCKET_PATH_LIMIT_BYTES}: "
            f"choose a shorter state directory with {naming.state} or MESSIAHS_STATE"
        )


def _list(places: tuple[ModulePlace, ...]) -> str:
    """Return the names to choose from, with their federations where several have modules of one name."""
    names = [place.module for place in places]
    return ", ".join(
        f"{place.federation}/{place.module}" if names.count(place.module) > 1 else place.module for place in places
    )


def _answers(place: ModulePlace) -> bool:
    try:
        connected(place.socket, seconds=_CONNECT_SECONDS).close()
    except TimeoutError:
        # It runs, and many requests wait for it.
        return True
    except OSError:
        return False
    return True
