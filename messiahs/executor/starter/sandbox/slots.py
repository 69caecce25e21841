"""The slots of a sandboxed machine: opened when they are needed, and used again if they see the machine's root."""

import errno
import os
import select
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush

from messiahs.config.device_files import DeviceFile
from messiahs.config.settings import OUTBOUND
from messiahs.executor.linux.local_accounts import LocalAccount, Ranges
from messiahs.executor.linux.strays import Children
from messiahs.executor.linux.uid_locks import ALL_TAKEN, lock_uid
from messiahs.executor.protocol.layout import SLOTS, USER, WORK
from messiahs.executor.starter.pool import Pool
from messiahs.executor.starter.sandbox.environments import bound
from messiahs.executor.starter.sandbox.images import Images, Unpacked
from messiahs.executor.starter.sandbox.messages import Ready, ToStarter, Unusable
from messiahs.executor.starter.sandbox.outbound import NAME_SERVER, Joining, OutboundNetworks, close_files
from messiahs.executor.starter.sandbox.slot import Slot, open_slot
from messiahs.executor.starter.sandbox.view import View
from messiahs.executor.starter.sandbox.work_folder import WorkFolder
from messiahs.executor.starter.sandbox.zygote import Plan
from messiahs.executor.starter.task_groups import TaskGroups

_TRIAL_SECONDS = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What all slots of a machine share; slot n has the account `uids[n]`, unless its task has one of the host.

    `groups` has a control group for each slot, in which its zygote and tasks are. A task with an account of the host
    does not see the folders `hidden`, in which that account may reach more than one of a slot; it is none of `others`.
    """

    uids: range
    view: View
    network: str
    path: str
    inputs: str | None
    groups: TaskGroups
    hidden: tuple[str, ...] = ()
    others: Ranges = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """What is special about the slot of an attempt; a `network` is narrower than the machine's, and empty: that one."""

    archive: Unpacked | None = None
    account: LocalAccount | None = None
    network: str = ""
    devices: tuple[DeviceFile, ...] = ()

    @property
    def is_for_one(self) -> bool:
        """Whether no other attempt can have the slot."""
        return self.archive is not None or self.account is not None or bool(self.devices)


class Slots:
    """All slots (mutable).

    `_slots` has every slot whose zygote is not reaped yet, by the zygote's number; `_idle` those that take an attempt,
    by their narrower network or, with the machine's, the empty text; `_free` the numbers of all others, the lowest
    first. A slot with an image, an environment, devices or an account of the host has one attempt, and is never
    idle.
    """

    def __init__(self, site: Site, *, pool: Pool, children: Children, images: Images) -> None:
        self._site, self._pool, self._children, self._images = site, pool, children, images
        self._slots: dict[int, Slot] = {}
        self._by_link: dict[int, Slot] = {}
        self._idle = defaultdict[str, list[Slot]](list)
        self._free = list(range(len(site.uids)))
        heapify(self._free)
        self._links = select.epoll()
        self._networks = OutboundNetworks(site.path)

    @property
    def room(self) -> int:
        """The slots without an attempt."""
        return sum(map(len, self._idle.values())) + len(self._free)

    def fileno(self) -> int:
        """Return a descriptor that is readable when a zygote has sent something."""
        return self._links.fileno()

    def try_out(self) -> str:
        """Return why no slot can be set up here; empty if one can, which then waits for an attempt."""
        try:
            slot = self._opened(Special())
        except OSError as error:
            return error.strerror or str(error)
        self._links.poll(_TRIAL_SECONDS)
        match slot.received():
            case [Ready(), *_]:
                self._idle[slot.reaches].append(slot)
                return ""
            case [Unusable(text), *_]:
                self._close(slot)
                return text
            case _:
                slot.end()
                return "the first slot gives no sign"

    def next_account(self, network: str) -> int:
        """Return the account of the next slot with a network for an attempt that brings none. Raises `OSError`."""
        idle = self._idle[network]
        if not idle:
            idle.append(self._room_for(Special(network=network)))
        return idle[-1].uid

    def take(self, special: Special) -> Slot:
        """Return a slot for an attempt, a new one if nobody else can have it. Raises `OSError`."""
        idle = self._idle[special.network]
        return idle.pop() if idle and not special.is_for_one else self._room_for(special)

    def give_back(self, slot: Slot) -> None:
        """Take back a slot that is empty."""
        if slot.is_for_one or slot.network or slot.is_spent:
            # Its root, account or connections would be those of the next task.
            slot.end()
        else:
            self._idle[slot.reaches].append(slot)

    def received(self) -> Iterator[tuple[Slot, ToStarter]]:
        """Yield what the zygotes have sent."""
        for link, _ in self._links.poll(0):
            slot = self._by_link[link]
            for message in slot.received():
                yield slot, message
            if slot.is_closed:
                self._leave(slot)

    def reaped(self, zygote: int) -> Slot | None:
        """Return the slot whose zygote was reaped: nothing is left of it, and its number is free."""
        slot = self._slots.pop(zygote, None)
        if slot is not None:
            self._leave(slot)
            slot.link.close()
            os.close(slot.lock)
            self._networks.end(slot.network)
            if slot in self._idle[slot.reaches]:
                self._idle[slot.reaches].remove(slot)
            if slot.archive:
                self._images.release(slot.archive)
            heappush(self._free, slot.number)
        return slot

    def cut_off(self, process: int) -> None:
        """End the slot whose network was reaped, if one was: no task runs without the network that it was promised."""
        text = self._networks.reaped(process)
        for slot in self._slots.values() if text is not None else ():
            if slot.network == process:
                slot.problem = slot.problem or f"the network of the sandbox ended: {text}"
                slot.end()

    def _leave(self, slot: Slot) -> None:
        """Listen to a slot no longer.

        Closing its link is not enough: a process that was forked meanwhile may have it open for a while.
        """
        if self._by_link.pop(slot.link.fileno(), None) is not None:
            self._links.unregister(slot.link)

    def _room_for(self, special: Special) -> Slot:
        """Open a slot; without a free number, an idle one of another kind ends first. Raises `OSError`."""
        others = next(filter(None, self._idle.values()), None)
        if others is not None and not self._free:
            self._close(others.pop())
        return self._opened(special)

    def _close(self, slot: Slot) -> None:
        """End a slot without an attempt, and wait until nothing is left of it."""
        slot.end()
        os.waitpid(slot.zygote, 0)
        self._children.reaped(slot.zygote)
        self.reaped(slot.zygote)

    def _opened(self, special: Special) -> Slot:
        number, lock = self._taken_number()
        folder = f"{self._pool.root}/{SLOTS}/{number}"
        try:
            # Somebody may have the folder of an earlier slot open.
            self._pool.dispose_of(folder)
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103 - strings
            os.chmod(folder, 0o711)  # noqa: PTH101, S103 - its task passes through it
            slot = self._begun(number, folder, special, lock=lock)
        except OSError:
            os.close(lock)
            heappush(self._free, number)
            raise
        self._pool.expect(self._site.uids[number])
        slot.archive = "" if special.archive is None else special.archive.digest
        slot.is_for_one, slot.reaches = special.is_for_one, special.network
        self._slots[slot.zygote] = self._by_link[slot.link.fileno()] = slot
        self._links.register(slot.link, select.EPOLLIN)
        return slot

    def _begun(self, number: int, folder: str, special: Special, *, lock: int) -> Slot:
        """Start the zygote of a slot, and what its network needs, with an empty folder. Raises `OSError`."""
        uid, groups = self._site.uids[number], self._site.groups.entries(number)
        account = special.account or LocalAccount(name=USER, uid=uid, gid=uid)
        network: str | Joining = special.network or self._site.network
        work = WorkFolder(path=f"{folder}/{WORK}", account=account.uid, group=account.gid)
        work.prepare()
        process = 0
        if network == OUTBOUND:
            process, network = self._networks.open(uid, groups)
        plan = Plan(
            account=account,
            folder=folder,
            view=self._view_of(special),
            network=network,
            path=self._site.path,
            inputs=self._site.inputs,
            groups=groups,
        )
        try:
            slot = open_slot(number, plan, work=work, lock=lock)
        except OSError:
            self._networks.end(process)
            raise
        finally:
            if isinstance(network, Joining):
                close_files(network)
        slot.network = process
        return slot

    def _view_of(self, special: Special) -> View:
        view, archive = self._site.view, special.archive
        if archive is not None and archive.environment is not None:
            view = replace(view, environment=bound(archive.root, archive.environment))
        elif archive is not None:
            view = replace(view, image=archive.root)
        if special.account is not None:
            view = replace(view, hidden=self._site.hidden)
        if special.devices:
            view = replace(view, devices=special.devices)
        if special.network:
            server = NAME_SERVER if special.network == OUTBOUND else ""
            view = replace(view, resolves_names=False, name_server=server)
        return view

    def _taken_number(self) -> tuple[int, int]:
        """Take the lowest free number whose account no other starter of the machine uses; return it with its lock."""
        others: list[int] = []
        try:
            while self._free:
                number = heappop(self._free)
                lock = lock_uid(self._site.uids[number])
                if lock is not None:
                    return number, lock
                others.append(number)
        finally:
            for other in others:
                heappush(self._free, other)
        raise BlockingIOError(errno.EAGAIN, ALL_TAKEN)
