"""The byte traffic of a module under test, with real files and its own state."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from messiahs.channel.contract import Channels
from messiahs.config.settings import ByteSettings
from messiahs.core import queries
from messiahs.core.interface.events import Event
from messiahs.core.interface.rows import PassedClaimRow
from messiahs.core.model.ids import ClaimId
from messiahs.core.model.routes import Leg, Route
from messiahs.daemon.storage.files import FileStore
from messiahs.daemon.transfer.budgets import Budgets
from messiahs.daemon.transfer.byte_traffic import ByteTraffic, Ends
from messiahs.daemon.transfer.cache_room import Cache
from messiahs.daemon.transfer.input_arrivals import ArrivingFiles
from messiahs.daemon.transfer.leg_reads import LegReads
from messiahs.daemon.transfer.output_sources import OwnOutputs
from messiahs.daemon.transfer.passed_files import PassingFiles
from messiahs.daemon.transfer.stdin_feeds import Feeds
from messiahs.executor.stub import StubExecutor
from messiahs.trace.record.recorder import RecordedModule
from tests.unit.core.rig import CHILD, ORIGIN, PARENT, Rig, request


def let_pass(rig: Rig, claim: ClaimId, leg: Leg, /) -> None:
    """Let a claim pass from the parent of the module to its child, on a leg and with its ticket."""
    rig.state.hop.passed[claim] = PassedClaimRow(
        id=claim,
        toward_origin=PARENT,
        toward_executor=CHILD,
        tdv=request().tdv,
        slots=1,
        origin=ORIGIN,
        ticket=leg.ticket,
        route=Route(straight=leg, path=leg),
    )


def traffic_of(
    rig: Rig, folder: Path, *, channels: Callable[[], Channels], executor: StubExecutor, limits: ByteSettings
) -> ByteTraffic:
    state = rig.state
    arrivals = ArrivingFiles(
        FileStore(folder), claim_of=partial(queries.granted_claim, state), in_use=partial(queries.inputs_in_use, state)
    )
    cache = Cache(size_bytes=limits.cache_bytes, secret=b"secret", in_use=arrivals.in_use, passes=lambda _: True)

    def on_event(event: Event) -> None:
        rig.handle(event)

    ends = Ends(
        arrivals=arrivals,
        outputs=OwnOutputs(executor, RecordedModule(rig.module)),
        passing=PassingFiles(
            arrivals.files,
            cache,
            own=state.system,
            underway=arrivals.underway,
            channels=channels,
            on_event=on_event,
        ),
        reads=LegReads(channels, leg_of=partial(queries.present_leg, state), on_event=on_event),
        feeds=Feeds(RecordedModule(rig.module), channels, executor, on_event=on_event),
    )

    budgets = Budgets(limits, own=state.system, file=folder / "moved.json")
    return ByteTraffic(ends, budgets, RecordedModule(rig.module), on_event=on_event)
