"""Many members of one submission over the border of a site: what it stores of them, and the memory that it needs."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from messiahs.client import ModuleClient, Submission
from messiahs.client.status import is_final
from messiahs.core.interface.rows import RowKind
from tests.benchmarks.federations import BORDER, HOP, Measurable, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes
from tests.benchmarks.processes import memory_of
from tests.benchmarks.task_peers import RATE

ROWS, GAINED = "rows of the submission, at most", "memory that the border gained"
_WARMING_MEMBERS = 2_000
_INTERVAL_SECONDS = 1.0


def rows() -> tuple[Row, ...]:
    """Return the row about an array that crosses a border."""
    return (
        Row(
            name="members-border",
            what="100,000 members of one submission over the border of a site",
            budgets=(Budget(figure=ROWS, at_least=1, aim=1), Budget(figure=GAINED, at_least=16, aim=4)),
            enter=_over_a_border,
        ),
    )


@contextmanager
def _over_a_border(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(BORDER) as measurable:

        def measure() -> list[Reading]:
            with measurable.client() as client:
                return _crossed(measurable, client, sizes.crossing_members)

        with measurable.client() as client:
            client.wait(_submit(client, min(_WARMING_MEMBERS, sizes.crossing_members)))
        yield (Contender(name=OURS, measure=measure, processes=measurable.processes),)


def _crossed(measurable: Measurable, client: ModuleClient, members: int) -> list[Reading]:
    database = measurable.federation.folder(HOP) / "module.db"
    border = measurable.processes[f"daemon of {HOP}"]
    before, begun_at, most = memory_of(border).own_bytes, time.monotonic(), 0
    task = _submit(client, members)
    while not is_final(document := client.wait(task, timeout=_INTERVAL_SECONDS)):
        most = max(most, _hidden_submissions(database))
    took_seconds = time.monotonic() - begun_at
    if document["exit_codes"] != {"0": members}:
        raise RuntimeError(f"not every task finished: {document}")
    most = max(most, _hidden_submissions(database))
    return [
        Reading(ROWS, "", most),
        Reading(GAINED, "MB", max(0, memory_of(border).own_bytes - before) / 1e6),
        Reading("memory of the border before", "MB", before / 1e6),
        Reading("the border's database and its log", "MB", sum(_sizes_bytes(database)) / 1e6),
        Reading(RATE, "/s", members / took_seconds),
    ]


def _submit(client: ModuleClient, members: int) -> str:
    return client.submit(Submission(argv=("true",), members=members))


def _hidden_submissions(database: Path) -> int:
    query = "SELECT count(*) FROM rows WHERE kind = ?"
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as reading:
        return int(reading.execute(query, (int(RowKind.HIDDEN_SUBMISSION),)).fetchone()[0])


def _sizes_bytes(database: Path) -> Iterator[int]:
    for file in (database, database.with_name(f"{database.name}-wal")):
        yield file.stat().st_size
