"""The cost of telling users of ends: many single tasks with a command, and with a webhook that never answers."""

import socket
import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from messiahs.client.submission import Submission
from tests.benchmarks.federations import LONE, ORIGIN, Measurable, up
from tests.benchmarks.measuring import OURS, Contender, Entrant, Reading, Row, Sizes
from tests.benchmarks.processes import memory_of
from tests.waiting import eventually, let_pass

_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 600.0


def rows() -> tuple[Row, ...]:
    """Return the row about notifications."""
    return (
        Row(
            name="notify",
            what="single tasks with --notify, and the status of one of them by the API meanwhile",
            enter=_notified,
        ),
    )


@contextmanager
def _notified(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with ExitStack() as opened:
        # It takes connections, and nobody reads of them.
        silent = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        host = f"127.0.0.1:{silent.getsockname()[1]}"
        telling = LONE.replace("{machine", f'{{webhook_hosts: ["{host}"], machine', 1)

        def contender(name: str, notify: str) -> Contender:
            measurable = opened.enter_context(up(telling))
            return Contender(
                name=name,
                measure=lambda: _measured(measurable, sizes.notified_tasks, notify),
                processes=measurable.processes,
            )

        yield (
            contender(OURS, ""),
            contender("with a command", "true"),
            contender("with a webhook that never answers", f"http://{host}/"),
        )


def _measured(measurable: Measurable, tasks: int, notify: str) -> list[Reading]:
    daemon = measurable.processes[f"daemon of {ORIGIN}"]
    before = memory_of(daemon).resident_bytes
    begun_at = time.monotonic()
    with measurable.client() as client:
        first = client.submit(Submission(argv=("true",), notify=notify))
        with _looked_at(measurable, first) as looks:
            for _ in range(tasks - 1):
                last = client.submit(Submission(argv=("true",), notify=notify))
            submitted_at = time.monotonic()
            eventually(lambda: client.wait(last)["state"] == "finished", seconds=_PATIENCE_SECONDS)
            ended_at = time.monotonic()
    percentiles = statistics.quantiles(looks, n=100, method="inclusive")
    return [
        Reading("submitted", "/s", tasks / (submitted_at - begun_at)),
        Reading("ended", "/s", tasks / (ended_at - begun_at)),
        Reading("status meanwhile, median", "ms", 1000 * percentiles[49]),
        Reading("status meanwhile, 99th percentile", "ms", 1000 * percentiles[98]),
        Reading("status meanwhile, longest", "ms", 1000 * max(looks)),
        Reading("memory of the daemon, gained", "MB", (memory_of(daemon).resident_bytes - before) / 1e6),
        Reading("memory of the daemon", "MB", memory_of(daemon).resident_bytes / 1e6),
    ]


@contextmanager
def _looked_at(measurable: Measurable, task: str) -> Iterator[list[float]]:
    """Ask for the status of a task again and again; yield the list of how long each answer took, in seconds."""
    looks: list[float] = []
    is_over = threading.Event()

    def look() -> None:
        with measurable.client() as client:
            while not is_over.is_set() or not looks[1:]:
                begun_at = time.monotonic()
                client.tasks(task)
                looks.append(time.monotonic() - begun_at)
                let_pass(_LOOK_SECONDS)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield looks
    finally:
        is_over.set()
        thread.join()
