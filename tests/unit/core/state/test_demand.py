"""The unmet demand of a module over time."""

from messiahs.core.model.demand import OTHER_KEY, DemandKey, DemandSize, total_of
from messiahs.core.model.instants import DAY, HOUR, MINUTE, Instant
from messiahs.core.state.demand import UnmetDemand

WIDE = DemandKey("cpus", amount=8)
START = Instant(7 * DAY)


def at(elapsed_ns: int) -> Instant:
    return Instant(START + elapsed_ns)


def test_a_steady_demand_is_wanted_for_what_a_day_has_and_fades_once_it_is_met() -> None:
    demand = UnmetDemand()
    for minute in range(0, 6 * 24 * 60, 10):
        demand.sample({WIDE: (3, 24)}, at(minute * MINUTE))
    (steady,) = demand.seen_with({WIDE: (3, 24)}, at(6 * DAY))
    assert steady.size[:2] == (3, 24)
    assert abs(steady.size.wanted_s / (24 * 86_400) - 1) < 0.02
    demand.sample({}, at(6 * DAY))
    (a_day_later,) = demand.seen_with({}, at(7 * DAY))
    assert abs(a_day_later.size.wanted_s / steady.size.wanted_s - 1 / 2.718) < 0.02
    assert demand.seen_with({}, at(60 * DAY)) == ()


def test_the_time_since_the_last_sample_counts_for_the_tasks_that_waited_then() -> None:
    demand = UnmetDemand()
    demand.sample({WIDE: (1, 8)}, at(0))
    assert total_of(demand.seen_with({}, at(HOUR))) == DemandSize(wanted_s=8 * 3600)
    assert demand.since == START
    demand.sample({}, at(0))
    assert demand.seen_with({}, at(HOUR)) == ()


def test_denied_tasks_are_counted_at_once_and_a_single_one_is_seen_for_hours() -> None:
    demand = UnmetDemand()
    demand.sample({}, at(0))
    demand.deny(WIDE, 1, at(0))
    for minutes in range(0, 720, 1):
        demand.sample({}, at(minutes * MINUTE))
    assert total_of(demand.seen_with({}, at(12 * HOUR))).denied == 1
    assert total_of(demand.seen_with({}, at(48 * HOUR))).denied == 0


def test_the_past_of_few_classes_is_kept_and_the_rest_is_added_up() -> None:
    demand = UnmetDemand()
    for number in range(200):
        demand.deny(DemandKey("mem", amount=number), number + 1, at(0))
    assert len(demand.denied) <= 65
    assert OTHER_KEY in demand.denied
    assert total_of(demand.seen_with({}, at(0))).denied == sum(range(201))
