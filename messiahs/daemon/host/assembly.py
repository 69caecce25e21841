"""Assembly of a live module from its settings."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from messiahs import __version__
from messiahs.channel.certificates.tls import TlsMaterial
from messiahs.channel.contract import Callbacks, Channels, ChannelSettings, NeighborAddress
from messiahs.channel.grpc_channels import grpc_channels
from messiahs.channel.reach_exchange import ReachExchange
from messiahs.config.settings import AUTOMATIC, PROCESS, MachineSettings, ModuleSettings, load_settings
from messiahs.core import queries
from messiahs.core.interface.actions import Answer
from messiahs.core.interface.events import AnswerTo, Event, LinkUp, MemberAdded, PolicyChanged, TransferReceived
from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.core.model.ids import ClaimId, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.core.model.task_limits import Maxima
from messiahs.core.module import SchedulingModule
from messiahs.core.state.membership import Membership
from messiahs.core.state.module import Identity, ModuleState
from messiahs.daemon.audit.entries import OF_STRANGERS, Entry, Kind
from messiahs.daemon.audit.files import AUDIT_FOLDER, AuditFiles
from messiahs.daemon.audit.journal import Journal
from messiahs.daemon.audit.noting import Noted
from messiahs.daemon.certificates.keeping import Certificates
from messiahs.daemon.certificates.known_roots import changed_roots, known_roots
from messiahs.daemon.host.contained import Expected
from messiahs.daemon.host.counted_things import offered_by
from messiahs.daemon.host.host import Host, Parts
from messiahs.daemon.host.members import LiveMembers
from messiahs.daemon.host.randomness import SystemRandomness
from messiahs.daemon.host.recording import Tracing
from messiahs.daemon.membership.door import JoinDoor
from messiahs.daemon.membership.parents import Parents
from messiahs.daemon.notifications.giving import Notifications
from messiahs.daemon.policies.in_force import Policies
from messiahs.daemon.process.refusal_log import RefusalLog
from messiahs.daemon.storage.border_key import border_key
from messiahs.daemon.storage.clock import Clock, local_time
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.storage.store import RowStore
from messiahs.daemon.transfer.budgets import Budgets
from messiahs.daemon.transfer.byte_traffic import ByteTraffic, Ends
from messiahs.daemon.transfer.cache_room import Cache
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.leg_reads import LegReads
from messiahs.daemon.transfer.output_arrivals import Outputs
from messiahs.daemon.transfer.output_sources import OwnOutputs
from messiahs.daemon.transfer.passed_files import PassingFiles
from messiahs.daemon.transfer.spent_inputs import LATEST_ENDS, SpentInputs
from messiahs.daemon.transfer.stdin_feeds import Feeds
from messiahs.errors import MessiahsError
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.layout import prepare_files_root, task_account
from messiahs.language.predicate.predicates import predicate_parser
from messiahs.probe.make import make_probe
from messiahs.trace.record.recorder import RecordedModule

_SILENT_SHARE = 5
"""A starter that is silent for this fraction of a lease is ended with its tasks."""


class Assembly:
    """A host with all its parts; forwards calls of the channels to the host (mutable until it is complete)."""

    def __init__(self, settings: ModuleSettings, *, refusals: RefusalLog, open_files: int | None = None) -> None:
        self._settings, self._refusals = settings, refusals
        store = RowStore(settings.directory / "module.db")
        clock = Clock(store.newest(), store.boot_offset())
        store.write_with_next(clock.boot_offset())
        self.journal = _journal(settings, self._audit_days)
        self.policies = Policies(settings, on_changed=self._on_policy_changed, on_noted=self._note)
        self.certificates = self._certificates()
        tls = self.certificates.tls.now
        state = ModuleState(
            identity=_identity(settings, store, tls),
            neighbors={SystemId(one.neighbor.system): one.neighbor for one in settings.neighbors},
            membership=Membership(addresses={one.neighbor.system: one.address or "" for one in settings.neighbors}),
            policy=self.policies.policy,
            calendar=local_time,
            parse=predicate_parser,
            randomness=SystemRandomness(),
        )
        starter = _starter_settings(settings, self.policies.policy.timeouts)
        arrivals = _arrivals(settings, state, store, clock=clock, fallback=starter.fallback)
        starter = replace(starter, files=arrivals.files.contents, open_files=open_files)
        executor = None if settings.machine is None else OsProcessExecutor(starter, boottime_offset_ns=clock.offset_ns)
        module = RecordedModule(SchedulingModule(state))
        self.feeds = Feeds(module, self._channels, executor, on_event=self._on_event)
        ends = self._ends(settings, module, arrivals, executor=executor, secret=sha256(tls.key).digest())
        self.budgets = _budgets(settings)
        self._traffic = ByteTraffic(ends, self.budgets, module, on_event=self._on_event)
        members = LiveMembers(module, self.certificates.tls, self._ask)
        self.parents = Parents(settings, members)
        self.door = JoinDoor(
            settings, members, calendar=local_time, randomness=SystemRandomness(), on_refused=self._on_join_refused
        )
        own, in_force = _channel_settings(settings), self.certificates.tls
        self.reach = ReachExchange(own, in_force, self._address_of)
        channels = grpc_channels(own, self._callbacks(), in_force, self.door, (self.certificates.exchange, self.reach))
        outputs = Outputs(
            settings.directory / "outputs", store, own=SystemId(settings.name), channels=channels, here=ends.outputs
        )
        self.tracing = Tracing(module, clock, folder=settings.directory / "trace")
        self.outputs, self._executor, self.fallback = outputs, executor, starter.fallback
        self.host = Host(
            Parts(
                module=module,
                store=store,
                clock=clock,
                channels=channels,
                outputs=outputs,
                arrivals=arrivals,
                passing=ends.passing,
                own_outputs=ends.outputs,
                reads=ends.reads,
                tls=self.certificates.tls,
                journal=self.journal,
                notifications=self._notifications(settings, clock),
                executor=executor,
                probe=None if settings.machine is None else make_probe(settings.machine, self._tasks),
                expected=_expected(settings, state),
                counted=tuple if settings.machine is None else offered_by(settings.machine),
            )
        )

    def _certificates(self) -> Certificates:
        made = Certificates(self._settings, parents=self._parents, siblings=self._siblings, on_noted=self._note)
        made.tls.on_changed(self._on_tls_changed)
        return made

    def _tasks(self) -> Path:
        """Return the folder on whose disk tasks write."""
        folder = None if self._executor is None else self._executor.folder
        return folder or self._settings.directory

    async def _ask(self, make: Callable[[AnswerTo], MemberAdded]) -> Answer:
        return await self.host.ask(make)

    def _on_event(self, event: Event) -> None:
        self.host.driver.post(event)

    def _on_policy_changed(self, policy: Policy) -> None:
        if self._executor is not None:
            self._executor.silence_ns = policy.timeouts.lease_ns // _SILENT_SHARE
        self.host.driver.post(PolicyChanged(policy=policy))

    def _on_tls_changed(self) -> None:
        event = changed_roots(self._settings, self.certificates.tls.now)
        if event is not None:
            self.host.driver.post(event)

    def _notifications(self, settings: ModuleSettings, clock: Clock) -> Notifications:
        return Notifications(settings.webhook_hosts, now=clock.now, on_event=self._on_event, on_noted=self.journal.note)

    def _note(self, entry: Entry) -> None:
        self.journal.note(Noted(entry))

    def _on_join_refused(self, token: str, text: str) -> None:
        self._refusals.note(token, text)
        self._note(Entry(Kind.MEMBER, "join refused", OF_STRANGERS, about=token, why=text, is_counted=True))

    def _audit_days(self) -> int:
        return self.policies.policy.limits.audit_days

    def _on_channel_event(self, event: Event) -> None:
        if isinstance(event, LinkUp):
            self._refusals.forget(event.neighbor)
        self._on_event(event)

    def _in_turn(self, peer: SystemId, events: Iterator[Event | None], size_bytes: int, /) -> Awaitable[None]:
        return self.host.driver.in_turn(peer, map(self._as_received, events), size_bytes)

    def _as_received(self, event: Event | None) -> Event | None:
        return self._traffic.as_received(event) if isinstance(event, TransferReceived) else event

    def _callbacks(self) -> Callbacks:
        return Callbacks(
            on_event=self._on_channel_event,
            in_turn=self._in_turn,
            read_output=self._traffic.read_output,
            open_output=self._traffic.open_output,
            open_feed=self._traffic.open_feed,
            open_splice=self._traffic.open_splice,
            arrivals=self._traffic,
            on_refused=self._refusals.note,
            on_dropped=self._refusals.note,
        )

    async def _address_of(self, neighbor: SystemId) -> str:
        """Return the address that is configured here for a neighbor, whoever dials; empty if there is none."""
        member = queries.members_of(self.host.module.state).get(neighbor)
        if member is not None and member.address:
            return member.address
        # The file, since it may have been applied anew.
        return await asyncio.to_thread(_configured_address, self._settings.directory / "settings.json", neighbor)

    def _parents(self) -> list[SystemId]:
        """Return the parents, the primary one first."""
        found = [each for each in queries.neighbors_of(self.host.module.state).values() if each.is_parent]
        return [each.system for each in sorted(found, key=lambda each: not each.is_primary_parent)]

    def _siblings(self) -> list[SystemId]:
        found = queries.neighbors_of(self.host.module.state).values()
        return [each.system for each in found if each.is_sibling]

    def _channels(self) -> Channels:
        return self.host.channels

    def _ends(
        self,
        settings: ModuleSettings,
        module: RecordedModule,
        arrivals: ArrivingFiles,
        *,
        executor: OsProcessExecutor | None,
        secret: bytes,
    ) -> Ends:
        cache = Cache(
            size_bytes=arrivals.cache_bytes,
            secret=secret,
            in_use=arrivals.in_use,
            passes=partial(_passes, module.state),
        )
        passing = PassingFiles(
            arrivals.files,
            cache,
            own=SystemId(settings.name),
            underway=arrivals.underway,
            channels=self._channels,
            on_event=self._on_event,
        )
        return Ends(
            arrivals=arrivals,
            outputs=OwnOutputs(executor, module),
            passing=passing,
            reads=LegReads(self._channels, leg_of=partial(queries.present_leg, module.state), on_event=self._on_event),
            feeds=self.feeds,
        )


def _journal(settings: ModuleSettings, keep_days: Callable[[], int]) -> Journal:
    return Journal(AuditFiles(settings.directory / AUDIT_FOLDER, keep_days=keep_days), module=settings.name)


def _budgets(settings: ModuleSettings) -> Budgets:
    file = settings.directory / "moved.json"
    return Budgets(settings.byte_limits, own=SystemId(settings.name), file=file)


def _configured_address(file: Path, neighbor: SystemId) -> str:
    try:
        links = load_settings(file).neighbors
    except MessiahsError:
        return ""
    return next((link.known_at or link.address or "" for link in links if link.neighbor.system == neighbor), "")


def _passes(state: ModuleState, claim: ClaimId) -> bool:
    return queries.present_leg(state, claim) is not None


def _identity(settings: ModuleSettings, store: RowStore, tls: TlsMaterial) -> Identity:
    known = known_roots(settings, tls)
    return Identity(
        system=SystemId(settings.name),
        epoch=store.epoch(),
        border_key=border_key(store) if settings.is_border else b"",
        address=settings.listen,
        release=__version__,
        key=known.key,
        trust=known.trust,
        apart=known.apart,
        apart_roots=known.apart_roots,
        other_sites=known.other_sites,
        siblings=settings.siblings,
        keeps_account=_keeps_account(settings),
        maxima=settings.machine.maxima if settings.machine is not None else Maxima(),
        outputs_bytes=settings.byte_limits.outputs_bytes,
    )


def _expected(settings: ModuleSettings, state: ModuleState) -> Expected:
    return Expected(
        is_root=os.geteuid() == 0,
        is_default=settings.machine is not None and settings.machine.isolation == AUTOMATIC,
        refuses_sites=state.identity.keeps_account and bool(state.identity.apart),
        shown=settings.machine.shown if settings.machine is not None else (),
        has_joined=settings.has_joined,
    )


def _keeps_account(settings: ModuleSettings) -> bool:
    """Return whether the account that tasks have outside of sandboxes is not lent to tasks of other sites."""
    machine = settings.machine
    # Root that has chosen `process` has decided that others' tasks run as one account, which is not its own.
    return machine is not None and not machine.lends_account and (os.geteuid() != 0 or machine.isolation == AUTOMATIC)


def _channel_settings(settings: ModuleSettings) -> ChannelSettings:
    return ChannelSettings(
        federation=settings.federation,
        name=SystemId(settings.name),
        listen=settings.listen,
        bulk_port=settings.bulk_port,
        silence_seconds=1.5 * settings.connections.keep_alive_ns / SECOND,
        http_proxy=settings.connections.http_proxy,
        sockets=settings.directory / "sockets",
        neighbors=tuple(NeighborAddress(system=one.neighbor.system, address=one.address) for one in settings.neighbors),
    )


def _starter_settings(settings: ModuleSettings, timeouts: Timeouts) -> StarterSettings:
    machine = settings.machine or MachineSettings()
    return StarterSettings(
        directory=settings.directory,
        silence_ns=timeouts.lease_ns // _SILENT_SHARE,
        isolation=machine.isolation or (AUTOMATIC if os.geteuid() == 0 else PROCESS),
        network=machine.network,
        shown=machine.shown,
        task_uids=machine.task_uids,
        counted=tuple([things.name for things in machine.counted]),
        devices=machine.devices,
        most_open_files=machine.open_files,
        hidden=() if settings.sockets is None else (str(settings.sockets.resolve()),),
    )


def _arrivals(
    settings: ModuleSettings, state: ModuleState, store: RowStore, *, clock: Clock, fallback: Path
) -> ArrivingFiles:
    ended_since = partial(queries.ended_since, state, most=LATEST_ENDS)
    root = prepare_files_root(settings.directory, task_account(settings.task_uids), fallback=fallback)
    return ArrivingFiles(
        FileStore(root),
        claim_of=partial(queries.granted_claim, state),
        in_use=partial(queries.inputs_in_use, state),
        cache_bytes=settings.byte_limits.cache_bytes,
        spent=SpentInputs(ended_since, store, clock).finding,
    )
