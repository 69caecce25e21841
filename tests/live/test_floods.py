"""A neighbor that sends all it can is throttled and named, loses nothing, and others are served meanwhile.

How long these wait is measured by `tests/benchmarks/flooding.py`.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from secrets import token_bytes, token_hex
from urllib.request import urlopen

import psutil
import pytest

from messiahs.client import Submission
from messiahs.core.interface.messages import SchedAccept, SchedDeny, SchedRequest
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import MessageId, SearchId, SystemId
from messiahs.core.model.instants import MINUTE
from tests.hostile.flooder import KINDS
from tests.hostile.flooding_process import flooding
from tests.live.conftest import Federation
from tests.live.hostile_module import HostileModule, hostile, played_lab
from tests.live.test_metrics import families, value
from tests.ports import free_port
from tests.waiting import eventually

EVIL = SystemId("evil")
_TOPOLOGY = """
version: 1
federation: lab
systems:
  home: {machine: {isolation: process, slots: 2}, metrics: {listen: "localhost:PORT"}}
  evil: {parent: home}
  friend: {parent: home}
"""
_NAMED = "evil: it sends more than its share and is throttled"
_AT_ONCE = 20
_MORE_BYTES = 200 << 20


def test_a_neighbor_that_sends_too_much_is_throttled_and_named_and_loses_nothing(tmp_path: Path) -> None:
    port = free_port()
    with played_lab(tmp_path, _TOPOLOGY.replace("PORT", str(port))) as home:
        daemon = psutil.Process(home.pid("home", "daemon"))
        before = daemon.memory_info().rss
        with active_users(home):
            denied = asyncio.run(_flooded(home))
        assert daemon.memory_info().rss - before < _MORE_BYTES
        served = home.run("run", "--", "echo", "served")
        assert served.stdout == "served\n", served.stderr
        assert _times_named(home) == 1
        # The metrics count every denial by its code, too; their text is kept for a second.
        eventually(lambda: _metric(port, "denials_total", direction="sent", code="requirement_unmet") == denied)
        assert _metric(port, "denials_total", direction="sent") == denied


@pytest.fixture(scope="module")
def port() -> int:
    """Return where the module that is flooded serves its metrics."""
    return free_port()


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[Federation]:
    """Start a module, a friend of it, and the settings of a flooder."""
    with played_lab(tmp_path_factory.mktemp("flooded"), _TOPOLOGY.replace("PORT", str(port))) as home:
        yield home


@pytest.mark.parametrize("kind", KINDS)
def test_users_and_another_neighbor_are_served_while_a_flood_goes_on_and_its_sender_is_named(
    flooded: Federation, port: int, kind: str
) -> None:
    named, throttlings = _times_named(flooded), _metric(port, "neighbor_throttlings_total", neighbor="evil")
    with active_users(flooded), flooding(flooded.folder("evil") / "settings.json", kind) as flooder:
        eventually(lambda: _times_named(flooded) > named, kind)
        for module in ("home", "friend"):
            assert _ran_at(flooded, module)["exit_code"] == 0
        # A flooder to which this machine gives too little time is not throttled for a while.
        eventually(lambda: _throttled(flooded) == {"evil": True, "friend": False}, kind)
        eventually(lambda: _metric(port, "neighbor_throttled", neighbor="evil") == 1, kind)
        assert _metric(port, "neighbor_throttlings_total", neighbor="evil") > throttlings
        assert _metric(port, "neighbor_throttlings_total", neighbor="friend") == 0
        assert flooder.poll() is None
    eventually(lambda: not _throttled(flooded)["evil"], kind)


def _metric(port: int, name: str, **labels: str) -> float:
    """Return the sum of the samples of a metric of the module that is flooded, as it served them in the last second."""
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return value(families(answer.read()), f"messiahs_{name}", **labels)


def _throttled(home: Federation) -> dict[str, bool]:
    with home.client("home") as client:
        return {each["name"]: each["throttled"] for each in client.neighbors()}


def _times_named(home: Federation) -> int:
    return (home.folder("home") / "module.log").read_text().count(_NAMED)


async def _flooded(home: Federation) -> int:
    """Send requests until the sender is named, and return how many were denied: each of them, once."""
    async with hostile(home, EVIL) as evil:
        numbers = count(1)
        while not _times_named(home):
            await evil.send(*(_request(next(numbers)) for _ in range(_AT_ONCE)))
        assert await asyncio.to_thread(_throttled, home) == {"evil": True, "friend": False}
        for module in ("home", "friend"):
            task = await asyncio.to_thread(_ran_at, home, module)
            assert task["exit_code"] == 0
        last = next(numbers)
        answers = await _answers(evil, last - 1)
        assert answers == Counter(range(1, last))
        return last - 1


def _ran_at(home: Federation, module: str) -> dict[str, object]:
    with home.client(module) as client:
        return dict(client.wait(client.submit(Submission(argv=("true",)))))


async def _answers(evil: HostileModule, number: int) -> Counter[int]:
    """Return how often each request was answered."""
    answers: Counter[int] = Counter()
    while answers.total() < number:
        answer = await evil.next_of(SchedAccept, SchedDeny)
        assert isinstance(answer, SchedAccept | SchedDeny)
        answers[answer.request] += 1
    return answers


def _request(number: int) -> SchedRequest:
    """Return a request with a predicate that was never seen before, which no machine fulfils."""
    return SchedRequest(
        id=MessageId(number),
        search=SearchId(token_bytes(16)),
        origin=EVIL,
        tdv=TDV((("cpus", 1), ("origin", EVIL), ("user", "mallory"))),
        requirement=" or ".join(f"$a{token_hex(3)} > 1" for _ in range(100)),
        count=1,
        hops_left=1,
        asks_left=1,
        remaining_ns=MINUTE,
    )


@contextmanager
def active_users(home: Federation) -> Iterator[None]:
    """Let a user ask the module all the time."""
    is_over = threading.Event()

    def ask() -> None:
        with home.client("home") as client:
            while not is_over.wait(0.02):
                client.module()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        is_over.set()
        asking.join()
