"""The starter's table of attempts, without processes or a clock."""

from messiahs.core.interface.causes import Cause
from messiahs.core.model.ids import AttemptId, ClaimId, Epoch, SystemId, TaskId
from messiahs.executor.attempt_values import Ended, Running, Start
from messiahs.executor.attempts import NEVER, Held, Phase, Table, ran_ns


def start(number: int, *, claim: int = 1, places: int = 1, limit_ns: int | None = None, lease: int = 1000) -> Start:
    return Start(
        attempt=AttemptId(TaskId(SystemId("x"), Epoch(1), number), 1),
        claim=ClaimId(SystemId("x"), Epoch(1), claim),
        argv=("true",),
        env=(),
        places=places,
        limit_ns=limit_ns,
        lease_until=lease,
    )


def numbers(held: list[Held]) -> list[int]:
    return [one.attempt.task.number for one in held]


def end(table: Table, held: Held) -> None:
    table.end(held, Ended(attempt=held.attempt))


def test_attempts_of_a_claim_begin_in_the_order_in_which_they_came() -> None:
    table = Table()
    first, second, third = (table.queue(start(number)) for number in (1, 2, 3))
    assert numbers(table.startable(9)) == [1]
    table.began(first, 0)
    assert table.startable(9) == []
    end(table, first)
    assert table.startable(9) == [second]
    end(table, second)
    assert table.startable(9) == [third]


def test_attempts_wait_while_their_claim_has_no_place_for_them() -> None:
    table = Table()
    first, second = (table.queue(start(number)) for number in (1, 2))
    table.began(first, 0)
    assert table.has_waiting
    end(table, first)
    table.began(second, 0)
    assert not table.has_waiting


def test_claims_do_not_wait_for_one_another() -> None:
    table = Table()
    for number, claim in ((1, 1), (2, 1), (3, 2)):
        table.queue(start(number, claim=claim))
    assert numbers(table.startable(9)) == [1, 3]
    assert numbers(table.startable(1)) == [1]


def test_the_newest_number_of_places_counts() -> None:
    table = Table()
    table.queue(start(1, places=1))
    table.queue(start(2, places=2))
    assert numbers(table.startable(9)) == [1, 2]


def test_a_claim_is_forgotten_with_its_last_attempt() -> None:
    table = Table()
    held = table.queue(start(1))
    table.began(held, 0)
    end(table, held)
    assert not table.claims
    assert held.phase is Phase.ENDED
    assert held.start is None


def test_a_time_limit_counts_from_the_spawn_and_is_due_once() -> None:
    table = Table()
    held = table.queue(start(1, limit_ns=50))
    table.began(held, 100)
    assert table.due_by(149) == []
    assert table.next_due == 150
    assert table.due_by(150) == [(held, Cause.TIME_LIMIT)]
    held.kill_at = 170
    table.expect(170)
    assert table.due_by(160) == []
    assert table.due_by(170) == [(held, "")]


def test_a_lease_ends_what_runs_and_what_waits() -> None:
    table = Table()
    first, second = table.queue(start(1)), table.queue(start(2))
    table.began(first, 0)
    assert table.due_by(999) == []
    assert table.due_by(1000) == [(first, Cause.LEASE_EXPIRED), (second, Cause.LEASE_EXPIRED)]


def test_an_extended_lease_is_due_later_and_a_repeated_start_never_shortens_it() -> None:
    table = Table()
    held = table.queue(start(1))
    table.extend(held.start.claim if held.start else start(1).claim, 5000)
    table.queue(start(2, lease=2000))
    assert table.due_by(4999) == []
    assert len(table.due_by(5000)) == 2


def test_an_empty_table_is_never_due() -> None:
    assert Table().next_due == NEVER


def test_a_suspended_attempt_keeps_its_place_and_its_limit_does_not_count() -> None:
    table = Table()
    first, _ = (table.queue(start(number, limit_ns=100)) for number in (1, 2))
    table.began(first, 10)
    table.suspend(first, 50)
    table.suspend(first, 60)
    assert table.startable(9) == []
    assert table.due_by(500) == []
    assert ran_ns(first, 500) == 40
    table.resume(first, 550)
    table.resume(first, 551)
    assert ran_ns(first, 560) == 50
    assert table.due_by(609) == []
    assert table.due_by(610) == [(first, Cause.TIME_LIMIT)]


def test_a_limit_that_begins_during_a_suspension_counts_from_the_resumption() -> None:
    table = Table()
    first = table.queue(start(1, limit_ns=100))
    table.began(first, 0)
    first.limit_at = NEVER
    table.suspend(first, 10)
    table.limit(first, 20)
    table.resume(first, 50)
    assert (table.due_by(149), table.due_by(150)) == ([], [(first, Cause.TIME_LIMIT)])


def test_what_is_known_says_how_long_an_attempt_ran_and_is_suspended() -> None:
    table = Table()
    first, second, third = (table.queue(start(number, places=2)) for number in (1, 2, 3))
    for held in (first, second):
        table.began(held, 10)
    table.suspend(first, 30)
    known = table.known(7, (), 100)
    assert known.running == (
        Running(attempt=first.attempt, ran_ns=20, suspended_ns=70),
        Running(attempt=second.attempt, ran_ns=90),
    )
    assert (known.number, known.queued, known.ended) == (7, (third.attempt,), ())
