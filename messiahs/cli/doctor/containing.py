"""Checks of how a module contains its tasks: isolation, processes that hide, limits. None needs the daemon."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from messiahs.cli.doctor.findings import Finding, Patient, fail, ok, warn
from messiahs.cli.doctor.here import name_of
from messiahs.client.connection import Document
from messiahs.config.device_files import DeviceError, DeviceFile, device_at, problems_of_things
from messiahs.config.settings import BUBBLEWRAP, OUTBOUND, PROCESS, SANDBOX, MachineSettings
from messiahs.config.topology.isolation import problem_of_uids
from messiahs.core.model.counted import GPUS
from messiahs.core.model.task_limits import at_most_text
from messiahs.daemon.host.contained import problems_of_shown
from messiahs.executor.linux.cgroups.finding import Place, find_place
from messiahs.executor.linux.namespaces import why_too_old
from messiahs.executor.linux.seccomp import why_not
from messiahs.executor.os_process.launch import programs_path
from messiahs.executor.starter.sandbox.outbound import why_no_outbound

_NAMESPACE_AS_ROOT: Final = ("unshare", "--pid", "--fork", "--kill-child", "true")
_NAMESPACE: Final = ("unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "true")
_SANDBOX: Final = (
    *("unshare", "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--net", "--fork", "--kill-child"),
    *("mount", "-t", "tmpfs", "none", "/tmp"),  # noqa: S108 - in a mount namespace of its own
)
_COMMAND_SECONDS: Final = 10
_REMEDY: Final = "allow namespaces and mounts to this module (capabilities, containers), or run it as root elsewhere"


def check_isolation(patient: Patient) -> Iterator[Finding]:
    """Say how tasks are contained, whether they can outlive their end, and which of their limits hold."""
    settings = patient.settings
    if settings.machine is None:
        yield ok("isolation", "no machine of its own: no tasks run here")
        return
    owner = settings.directory.stat().st_uid
    yield _isolation(patient, settings.machine, owner)
    if settings.machine.isolation != PROCESS:
        yield from (warn("show", problem) for problem in problems_of_shown(settings.machine.shown))
    text = _why_no_namespace()
    if text:
        yield warn("namespaces", f"{text}: processes of a task may outlive it; install util-linux and allow namespaces")
    else:
        yield ok("namespaces", "each task ends with all of its processes")
    if settings.machine.at_most:
        yield ok(
            "maxima", f"a task has at most {at_most_text(settings.machine.at_most)}: one that states more is denied"
        )
    yield from _devices(settings.machine, owner)
    lacks = _groups_lacking(patient)
    if lacks:
        yield _limits(Place(problem=lacks))
    elif owner == os.geteuid():
        yield _limits(find_place(prepares=False))


def _isolation(patient: Patient, machine: MachineSettings, owner: int) -> Finding:
    """Say what the module's starter found; while it is down, what it would find."""
    found: Document | None = (patient.document or {}).get("containment")
    first, last = machine.task_uids
    text = f"tasks run in sandboxes with accounts {first} to {last}, network: {machine.network}"
    problem = problem_of_uids(first, last) if owner == 0 else ""
    if problem:
        return fail("isolation", f"task_uids: {problem}")
    problem = why_no_outbound(programs_path(owner)) if machine.network == OUTBOUND else ""
    if problem:
        return fail("isolation", f"{problem}: the module does not start without it")
    if found is not None and found["isolation"] == SANDBOX:
        return ok("isolation", text)
    if BUBBLEWRAP in (machine.isolation, found and found["isolation"]):
        return _boxes(machine)
    if owner != 0 and machine.isolation == SANDBOX:
        text = "only root can set up sandboxes, and the module does not start without them"
        return fail("isolation", f"{text}: run it as root, or write `isolation: bubblewrap`")
    if owner != 0:
        others = "also those" if machine.lends_account else "but none"
        text = f"tasks run as {name_of(owner)}, the module's own account, and can read its keys and database"
        remedy = "write `isolation: bubblewrap`, or run it as root, or as an account that owns nothing else"
        return warn("isolation", f"{text}, {others} of other sites: {remedy}")
    if machine.isolation == PROCESS:
        return _account(machine, "")
    why = found["lacks"] if found is not None else _why_no_sandbox()
    if not why:
        return ok("isolation", text)
    if machine.isolation == SANDBOX:
        return fail("isolation", f"{why}: the module does not start without sandboxes; {_REMEDY}")
    return _account(machine, f"{why}; {_REMEDY}")


def _devices(machine: MachineSettings, owner: int) -> Iterator[Finding]:
    """Say which device files of counted things are not there, or not open to tasks, and which GPUs have none."""
    for name, number, problem in problems_of_things(machine.devices):
        yield warn("devices", f"{name} {number} is not offered to tasks: {problem}")
    named = {path for files in machine.devices.values() for paths in files.values() for path in paths}
    for path in sorted(named):
        # Others are reported above.
        with suppress(DeviceError):
            yield _device(device_at(path), owner)
    has_sandboxes = machine.isolation == BUBBLEWRAP or (owner == 0 and machine.isolation != PROCESS)
    if has_sandboxes and GPUS not in machine.devices and any(each.name == GPUS for each in machine.counted):
        yield warn("devices", "gpus: tasks in sandboxes find no device of them: name the device files of each")


def _device(device: DeviceFile, owner: int) -> Finding:
    """Say whether tasks can open a device: those of root's module have no groups, and others those of its account."""
    mode, is_own = f"{stat.S_IMODE(device.mode):03o}", owner != 0 and owner == os.geteuid()
    if os.access(device.actual, os.R_OK | os.W_OK) if is_own else device.is_open_to_others:
        return ok("devices", f"{device.named} is open to tasks")
    whom = f"{name_of(owner)}, as which tasks run," if is_own else "tasks, which have no groups,"
    remedy = 'change that with a rule of udev, such as MODE="0666"'
    return warn("devices", f"{device.named} has the mode {mode}, with which {whom} cannot read and write it: {remedy}")


def _boxes(machine: MachineSettings) -> Finding:
    """Say whether bubblewrap is there, which contains the tasks."""
    if shutil.which("bwrap") is None:
        return fail("isolation", "bubblewrap is not installed, and the module does not start without it")
    return ok("isolation", f"tasks run in sandboxes of bubblewrap, network: {machine.network}")


def _account(machine: MachineSettings, why: str) -> Finding:
    """Say which account all tasks share, and why they have no sandboxes; empty: because that was chosen."""
    first, last = machine.task_uids
    text = f"tasks are processes of one account from {first} to {last}, which no other module has"
    return warn("isolation", f"{text}, and no sandboxes separate them: {why}") if why else ok("isolation", text)


def _why_no_sandbox() -> str:
    """Return why root cannot set up sandboxes; empty if it can, or if this is not root."""
    if os.geteuid() != 0:
        return ""
    problem = why_not() or why_too_old()
    return f"no sandboxes: {problem}" if problem else _problem_with(_SANDBOX, "no sandboxes")


def _groups_lacking(patient: Patient) -> str:
    """Return what the module's starter found missing of control groups; this command may reach others than it does."""
    found: Document | None = (patient.document or {}).get("containment")
    texts = [] if found is None else found["lacks"].split("; ")
    return "; ".join(text for text in texts if "control groups" in text)


def _limits(place: Place) -> Finding:
    """Say what tasks can be limited to."""
    if place.problem:
        text = f"{place.problem}: --mem, --cpus and the number of processes of a task are not enforced"
        return warn("limits", f"{text}; run the module as root, or see Limits of tasks in docs/administrators.md")
    missing = {"memory", "processes", "processors"} - set(place.limits.split(", "))
    version = "2" if place.version2 else "1"
    if missing:
        return warn("limits", f"control groups (version {version}) do not limit {', '.join(sorted(missing))} here")
    return ok("limits", f"control groups (version {version}) limit the {place.limits} of each task")


def _why_no_namespace() -> str:
    return _problem_with(_NAMESPACE_AS_ROOT if os.geteuid() == 0 else _NAMESPACE, "no process namespace")


def _problem_with(command: tuple[str, ...], what: str) -> str:
    """Return why a command fails; empty if it does not."""
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{what}: {error}"
    return "" if done.returncode == 0 else f"{what}: {done.stderr.decode(errors='replace').strip()}"
