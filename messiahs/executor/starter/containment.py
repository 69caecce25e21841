"""How a starter contains its tasks: in its own sandboxes, in boxes of bubblewrap, or as processes of an account."""

import argparse
import os
import sys
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from messiahs.config.settings import BUBBLEWRAP, OUTBOUND, PROCESS, SANDBOX
from messiahs.executor.attempt_values import TASK_PATH
from messiahs.executor.linux.cgroups.finding import Place, find_place
from messiahs.executor.linux.kernel import give_up_new_privileges, keep_capabilities
from messiahs.executor.linux.local_accounts import Ranges, uid_of_release_1
from messiahs.executor.linux.namespaces import bound_capabilities, show_own_processes, why_too_old
from messiahs.executor.linux.seccomp import why_not
from messiahs.executor.linux.strays import Children
from messiahs.executor.linux.uid_locks import lock_one
from messiahs.executor.protocol.layout import SLOTS, TRASH, VIEW, Account, group_name, numbered_account, own_account
from messiahs.executor.starter.bubblewrap.boxes import FILES as BOX_FILES
from messiahs.executor.starter.bubblewrap.boxes import Boxes, make_boxes
from messiahs.executor.starter.bubblewrap.equipped import EquippedProcesses
from messiahs.executor.starter.bubblewrap.view import BoxView
from messiahs.executor.starter.capabilities import (
    CHOWN,
    DAC_OVERRIDE,
    FOWNER,
    KILL,
    NET_ADMIN,
    SETGID,
    SETPCAP,
    SETUID,
    SYS_ADMIN,
    SYS_PTRACE,
    Capabilities,
    is_permitted,
    keep_only,
)
from messiahs.executor.starter.grouped_processes import GroupedProcesses
from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.pool_owner import Owner
from messiahs.executor.starter.sandbox.images import Images
from messiahs.executor.starter.sandbox.outbound import NAME_SERVER, why_no_outbound
from messiahs.executor.starter.sandbox.processes import SandboxedProcesses
from messiahs.executor.starter.sandbox.slots import Site
from messiahs.executor.starter.sandbox.view import View
from messiahs.executor.starter.sandbox.zygote import HOST
from messiahs.executor.starter.spawn import Spawner
from messiahs.executor.starter.taking_over import take_over
from messiahs.executor.starter.task_groups import TaskGroups
from messiahs.executor.starter.task_processes import TaskProcesses

_OF_A_SANDBOXING_STARTER: Final = (
    CHOWN,
    DAC_OVERRIDE,
    FOWNER,
    KILL,
    SETGID,
    SETUID,
    SETPCAP,
    NET_ADMIN,
    SYS_ADMIN,
)
_NO_OPEN_FILES: Final = "deleted files that tasks keep open do not count as their disk (that needs CAP_SYS_PTRACE)"


class NoSandboxError(Exception):
    """Sandboxes are required and cannot be set up; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contained:
    """The parts of a starter that depend on how it contains tasks; `accounts` are those of the tasks' files."""

    isolation: str
    pool: Pool
    tasks: TaskProcesses
    groups: TaskGroups
    accounts: Ranges
    degraded: str = ""


def contain(options: argparse.Namespace) -> Contained:
    """Set up the way of containing tasks that the options ask for, and give up all powers that it does not need.

    Without a choice it is sandboxes where they work, else processes. Raises `NoSandboxError` if sandboxes or boxes were
    chosen and do not work, or a network that only sandboxes have.
    """
    root = Path(options.attempts)
    _set_slots_aside(root)
    problem, place = "", find_place()
    if options.isolation in ("", SANDBOX):
        contained = _sandboxes(options, root, place=place)
        if isinstance(contained, Contained):
            return contained
        if options.isolation == SANDBOX or options.network == OUTBOUND:
            raise NoSandboxError(contained)
        problem = f"no sandboxes: {contained}"
    elif options.network == OUTBOUND:
        lacks = "" if options.isolation == BUBBLEWRAP else f"`isolation: {SANDBOX}` or `{BUBBLEWRAP}`"
        why = f"`network: {OUTBOUND}` needs {lacks}" if lacks else why_no_outbound(options.programs)
        if why:
            raise NoSandboxError(why)
    return _processes(options, root, place=place, problem=problem)


def _processes(options: argparse.Namespace, root: Path, *, place: Place, problem: str) -> Contained:
    """Return processes of the tasks' account, in boxes if these were chosen. Raises `NoSandboxError`."""
    account, of_files, former = _account(options), _accounts_of_files(options), uid_of_release_1()
    if os.geteuid() == 0:
        take_over(root, account.uid, former=of_files)
    if options.namespace:
        _match_numbers()
    # From here on /proc has the numbers that tasks find there.
    children = Children()
    # Opened while the account may still do so.
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    daemon_uid = os.geteuid()
    capabilities = _become(account)
    boxes = _boxes(options) if options.isolation == BUBBLEWRAP else None
    owner = None
    if capabilities is not None:
        owner = Owner(uid=daemon_uid, gid=account.gid, capabilities=capabilities, former=former)
    # Outside of boxes, tasks read through /proc what others of their account have open.
    pool = Pool(root, owner, is_open_to_tasks=boxes is None)
    spawner = Spawner(
        user=account.name,
        path=TASK_PATH,
        nothing=nothing,
        kept_files=0 if boxes is None else BOX_FILES,
        boxes=boxes,
    )
    groups = TaskGroups(place, group_name(options.directory), capabilities=capabilities)
    grouped = GroupedProcesses(spawner=spawner, children=children, pool=pool, groups=groups)
    tasks: TaskProcesses = grouped
    if boxes is not None:
        tasks = EquippedProcesses(grouped, images=Images(pool), view=boxes.view, path=TASK_PATH)
    return Contained(
        isolation=PROCESS if boxes is None else BUBBLEWRAP,
        pool=pool,
        tasks=tasks,
        groups=groups,
        accounts=((account.uid, account.uid), *of_files),
        degraded="; ".join(filter(None, (problem, tasks.degraded))),
    )


def _match_numbers() -> None:
    """Let /proc show processes by the numbers that they have in the starter's namespace, where the machine lets it.

    Otherwise a task without a sandbox, which does not bring its own, finds other processes there in place of its own.
    An ordinary account has capabilities in its namespace for that alone, and drops them.
    """
    try:
        show_own_processes()
    except OSError as error:
        sys.stderr.write(f"tasks see all processes of the machine, by other numbers than theirs: {error}\n")
    if os.geteuid() != 0:
        keep_only(())


def _boxes(options: argparse.Namespace) -> Boxes:
    """Return boxes of bubblewrap, in which tasks do not see what belongs to the module. Raises `NoSandboxError`."""
    view = BoxView(folders=tuple(options.show), hidden=_of_module(options), resolves_names=options.network == HOST)
    boxes = make_boxes(view, network=options.network, path=options.programs)
    if isinstance(boxes, str):
        raise NoSandboxError(boxes)
    return boxes


def _of_module(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the folders of the module: its state, beside which others have theirs, its tasks, and its sockets."""
    own = Path(options.directory).resolve()
    return tuple(sorted({str(own), str(own.parent), str(Path(options.attempts).resolve()), *options.hide}))


def _sandboxes(options: argparse.Namespace, root: Path, *, place: Place) -> Contained | str:
    """Return sandboxes, one of which was tried, or why there are none."""
    problem = "only root can set them up" if os.geteuid() != 0 else why_not() or why_too_old()
    is_outbound = options.network == OUTBOUND
    problem = problem or (why_no_outbound(options.programs) if is_outbound else "")
    if problem:
        return problem
    first, last = _range(options)
    base = root / VIEW
    for folder in (base, root / SLOTS):
        folder.mkdir(mode=0o700, exist_ok=True)
    groups = TaskGroups(place, group_name(options.directory))
    view = View(
        base=str(base),
        folders=tuple(options.show),
        resolves_names=options.network == HOST,
        name_server=NAME_SERVER if is_outbound else "",
    )
    site = Site(
        uids=range(first, last + 1),
        view=view,
        network=options.network,
        path=TASK_PATH,
        inputs=options.files,
        groups=groups,
        hidden=_of_module(options),
        others=((first, last),),
    )
    owner = Owner(
        uid=os.geteuid(),
        gid=os.getegid(),
        capabilities=nullcontext(),
        passable=0o700,
        former=uid_of_release_1(),
    )
    pool = Pool(root, owner)
    tasks = SandboxedProcesses(site, pool=pool, children=Children(), images=Images(pool))
    problem = tasks.try_out()
    if problem:
        groups.close()
        return problem
    os.setgroups([])
    # It can become every account anyway, but a process that is not dumpable shows its files to this capability alone.
    can_see_files = is_permitted(SYS_PTRACE)
    kept = (*_OF_A_SANDBOXING_STARTER, SYS_PTRACE) if can_see_files else _OF_A_SANDBOXING_STARTER
    bound_capabilities(kept)
    keep_only(kept)
    give_up_new_privileges()
    return Contained(
        isolation=SANDBOX,
        pool=pool,
        tasks=tasks,
        groups=groups,
        accounts=_accounts_of_files(options),
        degraded="; ".join(filter(None, (groups.degraded, "" if can_see_files else _NO_OPEN_FILES))),
    )


def _account(options: argparse.Namespace) -> Account:
    """Return the account that all tasks of this starter share, which no other starter of root has meanwhile.

    Raises `OSError` if there is none.
    """
    if os.geteuid() != 0:
        return own_account()
    first, last = _range(options)
    return numbered_account(lock_one(range(first, last + 1), owner=str(Path(options.directory).resolve())))


def _accounts_of_files(options: argparse.Namespace) -> Ranges:
    """Return the accounts to which files of tasks of root's module may belong: also those of release 0.1.0."""
    former = uid_of_release_1()
    return (_range(options), *(() if former is None else ((former, former),)))


def _range(options: argparse.Namespace) -> tuple[int, int]:
    first, _, last = options.task_uids.partition("-")
    return int(first), int(last)


def _become(account: Account) -> Capabilities | None:
    """Switch to the tasks' account permanently.

    A former root keeps the capabilities that it needs for its folders. It also keeps its group as the saved group,
    which started programs do not inherit, so that the kernel lets no task change the starter's limits (prlimit).
    """
    if os.geteuid() != 0:
        return None
    assert account.uid != 0
    os.setgroups([account.gid])
    os.setresgid(account.gid, account.gid, os.getegid())
    keep_capabilities(keeps=True)
    os.setresuid(account.uid, account.uid, account.uid)
    capabilities = Capabilities((CHOWN, DAC_OVERRIDE, FOWNER))
    keep_capabilities(keeps=False)
    give_up_new_privileges()
    return capabilities


def _set_slots_aside(root: Path) -> None:
    """Move what an earlier starter left in slots to the trash: its attempts are lost."""
    with suppress(FileNotFoundError):
        os.listdir(root / SLOTS)  # noqa: PTH208 - only whether it is there
        (root / TRASH).mkdir(mode=0o711, exist_ok=True)
        (root / SLOTS).rename(root / TRASH / f"{SLOTS}-{time.time_ns():x}")
