"""A module that joins a running federation: it makes its key here, asks with a token, and stores what it is given.

The settings are written last. A newcomer that was interrupted before repeats its request with the same key and gets the
same answer; one that has settings has joined.
"""

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from messiahs import __version__
from messiahs.channel.certificates.fingerprints import certificates_in
from messiahs.channel.certificates.renewals import problem_with_new
from messiahs.channel.certificates.requests import make_request
from messiahs.channel.membership.asking import ask_to_join
from messiahs.channel.membership.tokens import ROLES, TOKEN_LIMIT_BYTES, JoinToken
from messiahs.cli.exit_codes import USAGE
from messiahs.cli.federation.certificates import tls_paths
from messiahs.cli.federation.deployment import make_folder, refuse_taken, writing
from messiahs.config.regular_files import read_at_most, read_regular
from messiahs.config.settings import MachineSettings, ModuleSettings, NeighborSettings, load_settings, save_settings
from messiahs.config.topology.counted import COUNTED_KEY
from messiahs.config.topology.machine import MACHINE_KEYS
from messiahs.config.topology.neighbors import TlsPaths, module_settings
from messiahs.config.topology.reading import read_topology
from messiahs.config.whole_files import write_whole
from messiahs.core.model.counted import GPUS
from messiahs.core.model.descriptions import Pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.names import problem_with_name
from messiahs.core.model.neighbors import Neighbor, Relation
from messiahs.daemon.process.pid_files import recorded_process
from messiahs.errors import ChannelError, ClientError, CodecError, MessiahsError, TopologyError, UntrustedError
from messiahs.executor.protocol.layout import find_work_folders
from messiahs.probe.make import make_probe
from messiahs.wire.codec import JoinAccept, JoinAnswer, JoinDeny, JoinPending, JoinRequest
from messiahs.wire.limits import MACHINE_LIMIT

_COMMAND_LINE: Final = "the command line"
_PATIENCE_SECONDS: Final = 60.0
"""How long the parent is tried before it has answered for the first time."""
_LONGEST_PAUSE_SECONDS: Final = 10.0
_IN_FILE: Final = re.compile(rf"^{_COMMAND_LINE}:\d+:\d+: ")
_INTEGER: Final = re.compile(r"-?[0-9]{1,19}")
_PORT: Final = re.compile(r"[0-9]{1,5}")

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomer:
    """What an administrator says about a module that is to join.

    `listen` (host:port) is where it listens, empty if nobody can dial it. `machine` has the keys of `machine:` in a
    topology file (those of mappings as `counted.gpus`), and attributes; None: it has no machine.
    """

    name: str
    listen: str = ""
    machine: Mapping[str, str] | None = None
    policy_file: Path | None = None


def read_token(file: Path, *, address: str = "") -> JoinToken:
    """Read a token from a file, or from a pipe of the shell; `address` replaces the one in it.

    Raises a `ClientError`, with the exit code of a mistake of usage if `address` is none.
    """
    if address:
        _place(address)
    try:
        token = JoinToken.from_text(read_at_most(file, TOKEN_LIMIT_BYTES))
    except OSError as error:
        raise ClientError(f"the token {file} cannot be read: {error.strerror or error}") from error
    except MessiahsError as error:
        raise ClientError(f"the token in {file} cannot be used: {error}") from error
    return replace(token, address=address) if address else token


def joined_settings(newcomer: Newcomer, token: JoinToken, *, directory: Path, report: Report) -> Path:
    """Join the federation in STATE/FEDERATION unless that was done, and return the file of the module's settings.

    Raises a `ClientError` if the module is running, may not join, or belongs to another parent or site already; for a
    newcomer that is described wrongly it has the exit code of a mistake of usage. `report` gets lines about what is
    waited for.
    """
    problem = problem_with_name(newcomer.name)
    if problem:
        raise ClientError(f"`{newcomer.name}` cannot be the name of a system: {problem}", code=USAGE)
    with writing(directory):
        make_folder(directory, newcomer.name)
        paths = tls_paths(directory, newcomer.name)
        file = directory / newcomer.name / "settings.json"
        running = recorded_process(file.parent / "daemon.pid")
        if running is not None:
            raise ClientError(f"`{newcomer.name}` is already running (process {running.pid})")
        if file.exists():
            _check_joined(load_settings(file), token)
            report(_only_runs(newcomer.name, token))
            return file
        _check_roots(paths.trust_file, token)
        settings = _settings(newcomer, token, directory=directory, paths=paths)
        if settings.listen:
            refuse_taken(settings.listen)
        request = _request(settings, key_file=paths.key_file, role=ROLES[token.role])
        accept = asyncio.run(_accepted(token, request, report=report))
        _store(settings, accept, paths=paths)
        save_settings(replace(settings, update_period_ns=accept.update_period_ns), file)
    report(f"`{newcomer.name}` has joined `{token.parent}`")
    return file


def _only_runs(name: str, token: JoinToken) -> str:
    text = (
        f"`{name}` has joined `{token.parent}` before, and runs as it ran last; if it has left since, get a token and"
    )
    return f"{text} type `messiahs module parent add {token.address} --token FILE --module {name}`"


def _check_joined(settings: ModuleSettings, token: JoinToken) -> None:
    parents = [link.neighbor.system for link in settings.neighbors if link.neighbor.is_parent]
    if token.parent not in [link.neighbor.system for link in settings.neighbors]:
        known = ", ".join(f"`{parent}`" for parent in parents) or "no parent"
        text = f"`{settings.name}` has settings already, with {known}: run it without --join, and add a parent with"
        raise ClientError(f"{text} `messiahs module parent add`, or choose another location with --state")


def _check_roots(file: Path, token: JoinToken) -> None:
    """Raise a `ClientError` if the state belongs to another site than the token."""
    try:
        here = set(certificates_in(read_regular(file)))
    except FileNotFoundError:
        return
    if here.isdisjoint(certificates_in(token.roots)):
        text = f"{file} is the root of another site than that of `{token.parent}`"
        raise ClientError(f"{text}: choose another location with --state")


def _settings(newcomer: Newcomer, token: JoinToken, *, directory: Path, paths: TlsPaths) -> ModuleSettings:
    """Return the settings that the module has once it has joined; a `ClientError` lists what is wrong."""
    place = _place(newcomer.listen) if newcomer.listen else {"reach": "outbound"}
    own: dict[str, object] = {"parent": str(token.parent), **place}
    if newcomer.machine is not None:
        own["machine"] = _machine(newcomer.machine)
    if newcomer.policy_file is not None:
        own["policy"] = str(newcomer.policy_file.absolute())
    systems = {str(token.parent): _place(token.address), newcomer.name: own}
    described = {"version": 1, "federation": token.federation, "systems": systems}
    try:
        topology = read_topology(json.dumps(described, indent=1), _COMMAND_LINE)
    except TopologyError as error:
        # Lines and columns are those of a text that nobody has written.
        problems = (_IN_FILE.sub("", problem) for problem in error.problems)
        raise ClientError("\n".join(f"{_COMMAND_LINE}: {problem}" for problem in problems), code=USAGE) from error
    addresses = {str(token.parent): token.address, newcomer.name: newcomer.listen}
    settings = module_settings(topology, newcomer.name, addresses=addresses, state_directory=directory, tls=paths)
    settings = replace(settings, has_joined=True)
    if ROLES[token.role] is Relation.CHILD:
        return replace(settings, borders=token.borders)
    # No topology file has siblings without a parent.
    sibling = NeighborSettings(neighbor=Neighbor(system=token.parent, is_sibling=True), address=token.address)
    return replace(settings, neighbors=(sibling,))


def _place(address: str) -> dict[str, object]:
    host, _, port = address.rpartition(":")
    if not host or not _PORT.fullmatch(port):
        raise ClientError(f"`{address}` is not HOST:PORT, such as cs.example:7101", code=USAGE)
    return {"host": host.removeprefix("[").removesuffix("]"), "port": int(port)}


def _machine(told: Mapping[str, str]) -> dict[str, object]:
    """Return the `machine:` of a topology file: `at_most.mem` stands for `mem` in `at_most`.

    GPUs are counted things, because an attribute of that name would be shown, and assigned to nobody.
    """
    keys: dict[str, object] = {}
    below: dict[str, dict[str, object]] = {}
    for name, text in told.items():
        value = int(text) if _INTEGER.fullmatch(text) else text
        group, dot, key = name.partition(".")
        if name in MACHINE_KEYS:
            keys[name] = value
        elif dot:
            below.setdefault(group, {})[key] = value
        else:
            below.setdefault(COUNTED_KEY if name == GPUS else "attributes", {})[name] = value
    return {**keys, **below}


def _request(settings: ModuleSettings, *, key_file: Path, role: Relation) -> JoinRequest:
    """Make the key of the module, unless it has one, and return its request."""
    key = key_file.read_bytes() if key_file.exists() else None
    try:
        made, wanted = make_request(federation=settings.federation, name=settings.name, key=key)
    except ValueError as error:
        raise ClientError(f"{key_file} contains no key that can be used: {error}; remove it") from error
    if key is None:
        write_whole(key_file, made, mode=0o600)
    machine = () if settings.machine is None else _measured(settings.machine, settings.directory)
    return JoinRequest(
        name=SystemId(settings.name),
        role=role,
        certificate_request=wanted,
        address=settings.listen,
        machine=machine[:MACHINE_LIMIT],
        release=__version__,
        is_primary=role is Relation.CHILD,
    )


def _measured(machine: MachineSettings, directory: Path) -> Pairs:
    """Return the attributes of the machine as its module will measure them."""
    folders = find_work_folders(directory, machine.task_uids)
    return make_probe(machine, lambda: folders.tasks or folders.state).measure().pairs


async def _accepted(token: JoinToken, request: JoinRequest, *, report: Report) -> JoinAccept:
    """Ask until the parent has decided; a `ClientError` if it denies, or if it is not reached."""
    until, told = time.monotonic() + _PATIENCE_SECONDS, ""
    while True:
        pause_seconds, text = 2.0, ""
        try:
            answer: JoinAnswer = await ask_to_join(token, request)
        except (UntrustedError, CodecError) as error:
            raise ClientError(str(error)) from error
        except ChannelError as error:
            if time.monotonic() > until:
                raise ClientError(str(error)) from error
            text = f"{error}; trying again"
        else:
            match answer:
                case JoinAccept():
                    return answer
                case JoinDeny():
                    rule = f" ({answer.rule})" if answer.rule else ""
                    raise ClientError(f"`{request.name}` may not join `{token.parent}`: {answer.text}{rule}")
                case JoinPending():
                    # It is known there: from now on its administrators decide how long this takes.
                    until, text = float("inf"), answer.text
                    pause_seconds = max(0.1, answer.again_ns / SECOND)
        if text != told:
            told = text
            report(text)
        await asyncio.sleep(min(pause_seconds, _LONGEST_PAUSE_SECONDS))


def _store(settings: ModuleSettings, accept: JoinAccept, *, paths: TlsPaths) -> None:
    """Write the certificate, and the roots unless they are here, after a check that they can be used."""
    if not paths.trust_file.exists():
        paths.trust_file.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(paths.trust_file, accept.roots)
    problem = problem_with_new(
        accept.certificate,
        key=read_regular(paths.key_file),
        roots=read_regular(paths.trust_file),
        federation=settings.federation,
        name=settings.name,
    )
    if problem:
        raise ClientError(f"`{settings.name}` was given a certificate that is of no use: {problem}")
    write_whole(paths.certificate_file, accept.certificate)
