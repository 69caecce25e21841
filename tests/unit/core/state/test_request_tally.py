"""The tally of requests for places: bounded by neighbors and rules, and forgetting by the hour."""

from dataclasses import replace

from messiahs.core.interface.request_counts import Gate, RefusalCount
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import HOUR, MINUTE, Instant, after
from messiahs.core.state.request_tally import OTHER_RULES, RULES_LIMIT, RequestTally
from tests.unit.core.rig import CHILD, PARENT, START, request

RULE = (Gate.RULE, "require $mem < 2GiB")


def begun() -> RequestTally:
    tally = RequestTally()
    tally.begin_anew(START)
    return tally


def by_rule(tally: RequestTally, now: Instant = START) -> dict[tuple[Gate, str], int]:
    return {(each.gate, each.rule): each.requests for each in tally.counts(now).refusals}


def test_requests_are_counted_by_neighbor_and_refusals_by_gate_and_rule() -> None:
    tally = begun()
    tally.grant(PARENT, request(1, count=4), places=3, now=START)
    tally.refuse(PARENT, request(2, count=2), RULE, why="$mem is 4GiB", now=after(START, 1))
    tally.refuse(CHILD, request(3), RULE, why="$mem is 8GiB", now=after(START, 2))
    tally.refuse(CHILD, request(4), (Gate.TOO_SMALL, ""), now=after(START, 3))
    counts = tally.counts(after(START, 4))
    assert (counts.since, counts.requests, counts.tasks, counts.granted, counts.places) == (START, 4, 8, 1, 3)
    assert [(each.system, each.requests, each.tasks, each.granted, each.places) for each in counts.askers] == [
        (PARENT, 2, 6, 1, 3),
        (CHILD, 2, 2, 0, 0),
    ]
    assert [(each.first_at - START, each.last_at - START) for each in counts.askers] == [(0, 1), (2, 3)]
    assert counts.refusals[0] == RefusalCount(
        gate=Gate.RULE,
        rule="require $mem < 2GiB",
        requests=2,
        tasks=3,
        last=request(3),
        asker=CHILD,
        at=after(START, 2),
        why="$mem is 8GiB",
    )
    # What a rule refuses is not compared with the machine.
    assert (counts.compared, counts.matched) == (2, 1)


def test_what_the_machine_could_serve_if_it_were_idle_matches() -> None:
    tally = begun()
    for number, gate in enumerate(Gate):
        tally.refuse(PARENT, request(number), (gate, ""), now=START)
    counts = tally.counts(START)
    assert (counts.requests, counts.compared, counts.matched) == (len(Gate), 11, 9)


def test_an_hour_is_kept_after_it_has_ended_and_the_first_request_longer() -> None:
    tally = begun()
    tally.refuse(PARENT, request(1), RULE, now=START)
    ended = after(START, HOUR)
    tally.refuse(PARENT, request(2), RULE, now=ended)
    assert by_rule(tally, ended) == {RULE: 2}
    assert tally.counts(ended).since == START
    later = after(ended, HOUR)
    tally.refuse(PARENT, request(3), RULE, now=later)
    assert by_rule(tally, later) == {RULE: 2}
    assert tally.counts(later).since == ended
    assert tally.counts(later).askers[0].first_at == START


def test_counts_that_begin_anew_forget_when_the_first_request_came() -> None:
    tally, loaded = begun(), after(START, MINUTE)
    tally.refuse(PARENT, request(1), RULE, now=START)
    tally.begin_anew(loaded)
    assert (tally.counts(loaded).requests, tally.counts(loaded).askers) == (0, ())
    now = after(loaded, MINUTE)
    tally.refuse(PARENT, request(2), RULE, now=now)
    counts = tally.counts(now)
    (asker,) = counts.askers
    assert (counts.since, asker.first_at, asker.last_at) == (loaded, now, now)


def test_after_hours_without_a_request_it_says_since_when_there_was_none() -> None:
    tally = begun()
    tally.refuse(PARENT, request(1), RULE, now=after(START, MINUTE))
    silent_since, now = after(START, MINUTE + HOUR), after(START, 5 * HOUR)
    counts = tally.counts(now)
    assert (counts.requests, counts.since) == (0, silent_since)
    tally.refuse(PARENT, request(2), RULE, now=now)
    counts = tally.counts(now)
    assert (counts.requests, counts.since) == (1, silent_since)


def test_strangers_cannot_make_it_grow() -> None:
    tally, long = begun(), "x" * 100_000
    for number in range(3 * RULES_LIMIT):
        tally.refuse(PARENT, request(number), (Gate.RULE, f"rule {number} {long}"), why=long, now=START)
    pane = tally.present
    assert pane is not None
    assert len(pane.refusals) <= RULES_LIMIT + len(Gate) + 1
    assert all(len(rule) <= 1_000 and len(each.why) <= 1_000 for (_, rule), each in pane.refusals.items())
    assert by_rule(tally)[Gate.RULE, OTHER_RULES] == 3 * RULES_LIMIT - RULES_LIMIT - len(Gate)
    assert tally.counts(START).requests == 3 * RULES_LIMIT


def test_a_system_that_is_no_neighbor_any_more_is_forgotten_and_its_requests_stay_counted() -> None:
    tally, later = begun(), after(START, HOUR)
    for system in (PARENT, CHILD):
        tally.refuse(system, request(1), RULE, now=START)
    tally.refuse(CHILD, request(2), RULE, now=later)
    tally.grant(CHILD, request(3, count=4), places=3, now=later)
    before = tally.counts(later)
    tally.keep_only((PARENT, SystemId("me")))
    counts = tally.counts(later)
    assert [each.system for each in counts.askers] == [PARENT]
    assert set(tally.first_at) == {PARENT}
    assert replace(counts, askers=before.askers) == before
    assert (counts.requests, counts.tasks, counts.granted, counts.places) == (4, 7, 1, 3)
