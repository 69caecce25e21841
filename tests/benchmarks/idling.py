"""The cost of an idle module, with updates every 2 s to and from one neighbor."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.benchmarks.federations import EXECUTOR, PAIR, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes
from tests.benchmarks.processes import Memory, memory_of, usage_of
from tests.waiting import let_pass

MEMORY, PROCESSOR = "memory, daemon and starter (files of both once)", "processor, daemon and starter"
_SETTLING_SECONDS = 3.0


def rows() -> tuple[Row, ...]:
    """Return the row about idleness."""
    return (
        Row(
            name="idle",
            what="an idle module with a machine and one child, updates every 2 s",
            budgets=(
                Budget(figure=MEMORY, at_least=75, aim=45),
                Budget(figure=PROCESSOR, at_least=0.4, aim=0.1),
            ),
            enter=_idle,
        ),
    )


@contextmanager
def _idle(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(PAIR, update_period="2s") as measurable:
        let_pass(min(_SETTLING_SECONDS, sizes.idle_seconds))
        own = {name: pid for name, pid in measurable.processes.items() if name.endswith(EXECUTOR)}
        yield (Contender(name=OURS, measure=lambda: _idled(own, sizes.idle_seconds), processes=own),)


def _idled(processes: dict[str, int], seconds: float) -> list[Reading]:
    begun_at, before = time.monotonic(), {name: usage_of(pid) for name, pid in processes.items()}
    let_pass(seconds)
    took_seconds = time.monotonic() - begun_at
    used = {name: usage_of(pid).since(before[name]) for name, pid in processes.items()}
    held = {name.partition(" ")[0]: memory_of(pid) for name, pid in processes.items()}
    share = 100 / took_seconds
    readings = [
        Reading(MEMORY, "MB", _together_bytes(tuple(held.values())) / 1e6),
        Reading(PROCESSOR, "% of a core", share * sum(usage.cpu_seconds for usage in used.values())),
    ]
    for name, usage in used.items():
        kind = name.partition(" ")[0]
        readings += [
            Reading(f"resident memory, {kind}", "MB", held[kind].resident_bytes / 1e6),
            Reading(f"proportional memory, {kind}", "MB", held[kind].proportional_bytes / 1e6),
            Reading(f"processor, {kind}", "% of a core", share * usage.cpu_seconds),
            Reading(f"wake-ups, {kind}", "/s", usage.wakeups.total() / took_seconds),
            *(
                Reading(f"wake-ups, {kind}: threads `{thread}`", "/s", wakeups / took_seconds)
                for thread, wakeups in usage.wakeups.most_common()
            ),
        ]
    return readings


def _together_bytes(held: Sequence[Memory]) -> int:
    # The starter maps nothing that the daemon has not mapped too: the interpreter and its libraries.
    return sum(each.own_bytes for each in held) + max(each.file_bytes for each in held)
