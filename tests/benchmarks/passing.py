"""One large file between two sites, through the gate of one of them: passed on, or hashed and cached there as well.

The gate is the border of its site; the same gate as an open hop is measured in turn with it.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from messiahs.cli.federation.temporary import own_folder
from messiahs.client import ModuleClient
from tests.benchmarks.federations import EXECUTOR, ORIGIN, SLOTS
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes
from tests.benchmarks.moving import INPUT, OUTPUT, Metered, move_input, move_output
from tests.live.small_sites import Site, exchange_roots
from tests.ports import free_port
from tests.waiting import eventually

GATE = "gate"
OPEN_GATE = "an open gate"
PASSING = "processor of the gate"
_PATIENCE_SECONDS = 120.0
_THEIRS = "external: true, trust: theirs.pem"


def rows() -> tuple[Row, ...]:
    """Return a row without and one with room in the gate's cache."""
    return (
        _row("bytes-passed-on", "one large file that a border passes on", cache="1KiB", speed=240, used=1.5),
        _row("bytes-cached", "one large file that a border passes on and caches", cache="10GiB", speed=150, used=3.5),
    )


def _row(name: str, what: str, *, cache: str, speed: float, used: float) -> Row:
    return Row(
        name=name,
        what=what,
        budgets=(
            Budget(figure=INPUT, at_least=speed, aim=2 * speed, is_more_better=True),
            Budget(figure=f"{INPUT}: {PASSING}", at_least=used, aim=used / 2),
            Budget(figure=OUTPUT, at_least=240, aim=480, is_more_better=True),
            Budget(figure=f"{OUTPUT}: {PASSING}", at_least=1.5, aim=0.75),
        ),
        enter=partial(_through_gates, cache=cache),
    )


@contextmanager
def _through_gates(sizes: Sizes, *, cache: str) -> Iterator[Sequence[Entrant]]:
    reaches = {OURS: "proxy", OPEN_GATE: "open"}
    with ExitStack() as stack:
        yield tuple(
            stack.enter_context(
                _through_a_gate(name, sizes.file_bytes, gate=f"bytes: {{cache: {cache}}}, reach: {reach}")
            )
            for name, reach in reaches.items()
        )


@contextmanager
def _through_a_gate(name: str, size_bytes: int, *, gate: str) -> Iterator[Contender]:
    with own_folder(keep=False) as folder:
        places = {ORIGIN: folder / "a", GATE: folder / "b", EXECUTOR: folder / "b"}
        sites = {each: Site(name=each, folder=place) for each, place in places.items()}
        at = {each: f"host: 127.0.0.1, port: {free_port()}" for each in sites}
        theirs = (
            f"  {ORIGIN}: {{{at[ORIGIN]}, {_THEIRS}}}\n"
            f"  {GATE}: {{{at[GATE]}, parent: {ORIGIN}, {gate}}}\n"
            f"  {EXECUTOR}: {{{at[EXECUTOR]}, parent: {GATE}, machine: {{isolation: process, slots: {SLOTS}}}}}\n"
        )
        ours = f"  {ORIGIN}: {{{at[ORIGIN]}}}\n  {GATE}: {{{at[GATE]}, parent: {ORIGIN}, {_THEIRS}}}\n"
        for each, systems in ((ORIGIN, ours), (GATE, theirs)):
            places[each].mkdir()
            (places[each] / "site.yaml").write_text(f"version: 1\nfederation: pact\nsystems:\n{systems}")
        exchange_roots(sites[ORIGIN], sites[GATE])
        try:
            daemons = {each: site.start().pid for each, site in sites.items()}
            socket = places[ORIGIN] / "state" / "pact" / f"{ORIGIN}.sock"
            eventually(socket.exists, seconds=_PATIENCE_SECONDS)
            with ModuleClient(socket) as client:
                eventually(lambda: client.vectors()["up"]["machines"], seconds=_PATIENCE_SECONDS)
                yield _contender(name, client, folder, daemons, size_bytes)
        finally:
            for site in sites.values():
                if site.process is not None and site.process.poll() is None:
                    site.end()


def _contender(name: str, client: ModuleClient, folder: Path, daemons: dict[str, int], size_bytes: int, /) -> Contender:
    def measure() -> list[Reading]:
        metered = Metered(daemons, size_bytes)
        move_input(client, folder, metered, further={GATE: PASSING})
        move_output(client, folder, metered, further={GATE: PASSING})
        return metered.readings

    return Contender(name=name, measure=measure, processes=daemons)
