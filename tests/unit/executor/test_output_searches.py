"""A task whose outputs take long to find delays no other task, and can be ended meanwhile."""

from collections.abc import Callable
from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.executor.attempts import Held
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.protocol.frames import Discard, End, Extend, News, Started
from messiahs.executor.protocol.layout import ATTEMPTS, WORK
from messiahs.executor.starter import output_searches
from messiahs.executor.starter.output_searches import OutputSearches
from messiahs.executor.starter.runner import Runner
from tests.unit.executor.apart import in_own_process
from tests.unit.executor.runner_rig import attempt_of, ends, make_runner, start_of, turn, turns_until

pytestmark = pytest.mark.processes

_FEW = 2_000
_FILL = f"i=0; while [ $i -lt {_FEW} ]; do i=$((i+1)); : > $i; done; mkdir -p a/b/c/d/e/f"
SEEKER, OTHER = attempt_of(1), attempt_of(2)


@pytest.fixture
def shortest_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each turn look at as little as possible."""
    monkeypatch.setattr(output_searches, "_PIECE_NS", 0)


def seeking(folder: Path) -> Runner:
    """Return a runner that seeks the outputs of a task, in a claim of its own."""
    runner = make_runner(folder)
    runner.apply(start_of(SEEKER, "sh", "-c", _FILL, outputs=("*none", "a/**/none"), claim_number=2))
    # Only a search makes it due at once for more than one turn.
    turns_until(runner, lambda: Started(attempt=SEEKER) in runner.reports)
    turns_until(runner, lambda: is_seeking(runner))
    return runner


def is_seeking(runner: Runner) -> bool:
    return bool(runner._searches)


def finish(runner: Runner) -> None:
    runner.end_all()
    turns_until(runner, lambda: runner.is_idle)


def apart(act: Callable[[Runner], None], folder: Path) -> None:
    def acted() -> None:
        runner = seeking(folder)
        act(runner)
        finish(runner)

    in_own_process(acted)


@pytest.mark.usefixtures("shortest_pieces")
def test_another_task_starts_while_outputs_are_sought(tmp_path: Path) -> None:
    def act(runner: Runner) -> None:
        runner.apply(start_of(OTHER, "true"))
        turns_until(runner, lambda: SEEKER in ends(runner) and OTHER in ends(runner))
        order: list[News] = [report for report in runner.reports if getattr(report, "attempt", None) in (SEEKER, OTHER)]
        assert order.index(Started(attempt=OTHER)) < order.index(ends(runner)[SEEKER])
        found = ends(runner)[SEEKER]
        assert (found.cause, found.text) == (Cause.OUTPUT_MISSING, "missing at the end: *none, a/**/none")

    apart(act, tmp_path)


@pytest.mark.usefixtures("shortest_pieces")
def test_a_cancelled_task_ends_although_its_outputs_are_sought(tmp_path: Path) -> None:
    def act(runner: Runner) -> None:
        runner.apply(End(attempt=SEEKER, grace_ns=0, cause=Cause.KILLED))
        turn(runner)
        end = ends(runner)[SEEKER]
        assert (end.cause, end.exit_code, end.left, is_seeking(runner)) == (Cause.KILLED, 0, (), False)

    apart(act, tmp_path)


@pytest.mark.usefixtures("shortest_pieces")
def test_the_search_goes_on_if_only_a_task_that_waits_would_be_cancelled(tmp_path: Path) -> None:
    def act(runner: Runner) -> None:
        runner.apply(End(attempt=SEEKER, grace_ns=0, cause=Cause.KILLED, only_if_queued=True))
        turn(runner)
        assert is_seeking(runner)

    apart(act, tmp_path)


@pytest.mark.usefixtures("shortest_pieces")
def test_a_discarded_task_is_forgotten_although_its_outputs_are_sought(tmp_path: Path) -> None:
    def act(runner: Runner) -> None:
        runner.apply(Discard(attempt=SEEKER))
        turn(runner)
        assert (runner.is_idle, is_seeking(runner), runner.known(1).ended) == (True, False, ())

    apart(act, tmp_path)


@pytest.mark.usefixtures("shortest_pieces")
def test_a_lease_ends_the_search_for_outputs(tmp_path: Path) -> None:
    def act(runner: Runner) -> None:
        runner.apply(Extend(claim=start_of(SEEKER, claim_number=2).claim, until=boottime_ns()))
        turn(runner)
        assert (ends(runner)[SEEKER].cause, is_seeking(runner)) == (Cause.LEASE_EXPIRED, False)

    apart(act, tmp_path)


@pytest.mark.usefixtures("shortest_pieces")
def test_a_starter_that_ends_during_a_search_has_lost_the_task(tmp_path: Path) -> None:
    def act() -> None:
        seeking(tmp_path)

    in_own_process(act)

    def recover() -> None:
        runner = make_runner(tmp_path)
        (end,) = runner.known(1).ended
        assert (end.attempt, end.cause) == (SEEKER, Cause.LOST)

    in_own_process(recover)


@pytest.mark.usefixtures("shortest_pieces")
def test_many_long_searches_take_turns_and_only_few_of_them_have_folders_open(tmp_path: Path) -> None:
    searches = OutputSearches(str(tmp_path))
    helds = []
    for number in range(20):
        held = Held(attempt=attempt_of(number), folder=str(number), start=start_of(SEEKER, outputs=("**/none",)))
        work = tmp_path / ATTEMPTS / held.folder / WORK
        (work / "/".join("abcdefgh")).mkdir(parents=True)
        for name in range(50):
            (work / "a/b/c/d/e/f/g/h" / str(name)).touch()
        helds.append(held)
        searches.add(held, "")
    before = len(list(Path("/proc/self/fd").iterdir()))
    ended, opened = [], 0
    while searches:
        ended += [held for held, _, found in searches.ended() if found.missing == ["**/none"]]
        opened = max(opened, len(list(Path("/proc/self/fd").iterdir())) - before)
    assert sorted(held.folder for held in ended) == sorted(held.folder for held in helds)
    assert opened <= 5 * 12
    assert len(list(Path("/proc/self/fd").iterdir())) == before
