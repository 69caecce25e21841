"""The daemon of one module: `python -m messiahs.daemon SETTINGS [--apply]`."""

import asyncio
import faulthandler
import fcntl
import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from aiohttp import web

from messiahs.config.settings import ModuleSettings, load_settings
from messiahs.core import queries
from messiahs.daemon.api.accounting import AccountingApi
from messiahs.daemon.api.attempts import AttemptsApi
from messiahs.daemon.api.audit import AuditApi
from messiahs.daemon.api.by_hand import ByHandApi
from messiahs.daemon.api.certificate import CertificateApi
from messiahs.daemon.api.clean import CleanApi
from messiahs.daemon.api.connection_limits import limits_of_this_process, raise_file_limit
from messiahs.daemon.api.decisions import DecisionsApi
from messiahs.daemon.api.files import FilesApi
from messiahs.daemon.api.join import JoinApi
from messiahs.daemon.api.lending import LendingApi
from messiahs.daemon.api.logs import Logs
from messiahs.daemon.api.member_logs import MemberLogsApi
from messiahs.daemon.api.membership import MembershipApi
from messiahs.daemon.api.neighbors import NeighborsApi
from messiahs.daemon.api.parents import ParentsApi
from messiahs.daemon.api.policy import PolicyApi
from messiahs.daemon.api.reach import ReachApi
from messiahs.daemon.api.server import ModuleApi, serve
from messiahs.daemon.api.settings import SettingsApi
from messiahs.daemon.api.socket_access import access_of
from messiahs.daemon.api.stdin import StdinApi
from messiahs.daemon.api.stdin_sources import Sources
from messiahs.daemon.api.tasks import TasksApi
from messiahs.daemon.api.vectors import VectorsApi
from messiahs.daemon.api.workflows import WorkflowsApi
from messiahs.daemon.audit.files import AUDIT_FOLDER
from messiahs.daemon.host.assembly import Assembly
from messiahs.daemon.host.host import Host
from messiahs.daemon.metrics.module_metrics import ServedMetrics
from messiahs.daemon.otlp.exported_spans import ExportedSpans
from messiahs.daemon.policies.in_force import Policies
from messiahs.daemon.process.hangup import Held, hold_hangups, on_hangup
from messiahs.daemon.process.log_lines import log_to
from messiahs.daemon.process.notify import Notifier
from messiahs.daemon.process.pid_files import record_this_process
from messiahs.daemon.process.refusal_log import RefusalLog
from messiahs.daemon.storage.disk_reserve import release_reserve
from messiahs.errors import MessiahsError, UnusableStateError, explained
from messiahs.executor.linux.kernel import see_children_end
from messiahs.executor.protocol.left_folders import remove_left_folders
from messiahs.language.predicate.predicates import predicate_parser

_LOG = logging.getLogger("messiahs.daemon")
APPLY = "--apply"
"""Applies the neighbors of the settings as `topology apply` does: a person has named the topology file."""
_USAGE = 2
_STDERR = 2
_GARBAGE = 2_000
"""New objects after which the collector looks for cycles."""


def main() -> int:
    """Run the module whose settings file the command line names."""
    match sys.argv[1:]:
        case [file]:
            return run_daemon(Path(file))
        case [file, option] if option == APPLY:
            return run_daemon(Path(file), applies=True)
        case _:
            sys.stderr.write(f"usage: python -m messiahs.daemon SETTINGS [{APPLY}]\n")
            return _USAGE


def run_daemon(settings_file: Path, *, applies: bool = False) -> int:
    """Run a module until SIGTERM or SIGINT; its starter and tasks end with it. SIGHUP reloads its policy file.

    Returns 1 after an error that a later start may not have, and `UnusableStateError.EXIT_CODE` for one that stays; the
    reason is on stderr.
    """
    hold_hangups()
    see_children_end()
    # A service manager that finds the event loop frozen ends the process by SIGABRT; its stacks are then on stderr.
    faulthandler.enable(file=_STDERR)
    notifier = Notifier.of_environment()
    try:
        settings = load_settings(settings_file)
        settings.directory.mkdir(mode=0o711, parents=True, exist_ok=True)
        release_reserve(settings.directory)
        lock = _lock(settings)
        log_to(settings.directory / "module.log")
        access_of(settings).have_folder()
        prepare()
        open_files = raise_file_limit()
        with asyncio.Runner() as runner:
            runner.run(_run(settings, open_files, notifier, applies=applies))
        os.close(lock)
    except UnusableStateError as error:
        _log(error)
        return error.EXIT_CODE
    except MessiahsError as error:
        _log(error)
        return 1
    except OSError as error:
        _log(explained(error))
        return 1
    return 0


def _log(error: Exception | str) -> None:
    """Write the error to the log as well, if it is open, because stderr may be on a full disk."""
    if logging.getLogger().handlers:
        _LOG.critical("%s", error)
    with suppress(OSError):
        sys.stderr.write(f"{error}\n")
        sys.stderr.flush()


def prepare() -> None:
    """Build the tables of the predicate language, so that no search waits for them; a repetition does nothing."""
    predicate_parser("")


async def _run(settings: ModuleSettings, open_files: int, notifier: Notifier, *, applies: bool) -> None:
    stop, reload = _stop_at_signals(), Held()
    on_hangup(reload, stop.set)
    assembly = Assembly(settings, refusals=RefusalLog(), open_files=open_files)
    spans = ExportedSpans(settings, assembly.host)
    metrics = ServedMetrics(
        settings, assembly.host, assembly.budgets, tls=assembly.certificates.tls, spans=spans.counts
    )
    assembly.tracing.go_on()
    await assembly.host.start()
    sources = Sources(assembly.host, assembly.feeds)
    sources.start()
    changing = SettingsApi(assembly.host, assembly.policies, settings)
    if applies:
        await changing.apply_at_start()
    routes = _routes(assembly, settings, sources=sources, changing=changing)
    access = access_of(settings)
    api = await serve(routes, access, limits_of_this_process(), assembly.host.driver.users)
    _LOG.info("%s serves users at %s, and neighbors at %s", settings.name, access.path, settings.listen or "no address")
    await metrics.start()
    spans.start()
    notifier.ready()
    upkeep = asyncio.create_task(assembly.certificates.keep())
    removal = asyncio.create_task(_remove_left_folders(assembly.fallback))
    watching = asyncio.create_task(notifier.watch(partial(_status, assembly.host, settings)))
    # Until here the core had not resumed and could not accept another policy.
    reload.release(partial(_reload, assembly.policies, notifier))
    _collect_new_objects()
    await stop.wait()
    _LOG.info("%s stops", settings.name)
    notifier.stopping()
    upkeep.cancel()
    removal.cancel()
    await metrics.stop()
    await api.cleanup()
    access.close()
    await sources.stop()
    await assembly.host.stop()
    await spans.stop()
    watching.cancel()


def _routes(
    assembly: Assembly, settings: ModuleSettings, /, *, sources: Sources, changing: SettingsApi
) -> Iterator[web.RouteDef]:
    logs = Logs(assembly.host, assembly.outputs)
    apis = (
        ModuleApi(assembly.host, settings, assembly.tracing),
        TasksApi(assembly.host, logs),
        WorkflowsApi(assembly.host),
        MemberLogsApi(assembly.host, logs),
        ByHandApi(assembly.host),
        CleanApi(assembly.host, assembly.outputs),
        StdinApi(assembly.host, sources),
        FilesApi(assembly.host, assembly.outputs),
        PolicyApi(assembly.policies),
        AttemptsApi(assembly.host),
        VectorsApi(assembly.host, assembly.policies),
        NeighborsApi(assembly.host, changing.listed),
        ReachApi(assembly.host, assembly.reach),
        AuditApi(assembly.host),
        DecisionsApi(assembly.host, settings.directory / AUDIT_FOLDER),
        AccountingApi(assembly.host),
        CertificateApi(assembly.certificates, assembly.host),
        JoinApi(assembly.door, assembly.host),
        ParentsApi(assembly.host, assembly.parents),
        changing,
        MembershipApi(assembly.host),
        LendingApi(assembly.host, settings.machine),
    )
    return (route for each in apis for route in each.routes())


def _collect_new_objects() -> None:
    # Existing objects live as long as the process, so the collector need not visit them. It is to visit waiting tasks
    # rarely; but what a neighbor or a user has sent, up to 8 MiB, may be in a cycle and must not wait for long.
    gc.freeze()
    gc.set_threshold(_GARBAGE)


def _stop_at_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _remove_left_folders(fallback: Path) -> None:
    for root in await asyncio.to_thread(remove_left_folders, fallback):
        _LOG.info("%s was removed: its module is gone", root)


def _reload(policies: Policies, notifier: Notifier) -> None:
    notifier.reloading()
    policies.try_to_reload()
    notifier.ready()


def _status(host: Host, settings: ModuleSettings) -> str:
    """Return one line about a module for the service manager."""
    module = queries.summary_of(host.module.state)
    place = settings.listen or "no address"
    return f"{settings.name} at {place}, linked with {len(module.linked)} of {len(module.neighbors)} neighbors"


def _lock(settings: ModuleSettings) -> int:
    """Lock the module's state, and record the process that holds the lock."""
    descriptor = os.open(settings.directory / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MessiahsError(f"the module {settings.name} runs already with the state in {settings.directory}") from None
    record_this_process(settings.directory / "daemon.pid")
    return descriptor


if __name__ == "__main__":
    sys.exit(main())
