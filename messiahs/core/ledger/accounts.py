"""Accounts: processor time by day, by consumer and by neighbor, within bounds."""

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Final, TypeVar

from messiahs.core.interface.actions import Forget, Store
from messiahs.core.interface.ledger_rows import ConsumerRow, LedgerRow, NeighborAccountRow, Parties, UsageRow
from messiahs.core.interface.rows import Row, RowKey, key_of
from messiahs.core.model.attributes import INTEGER_HIGHEST
from messiahs.core.model.decay import Decaying
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import DAY, SECOND, Instant
from messiahs.core.state.module import ModuleState

USAGE_LIMIT: Final = 32_768
"""Rows of days; beyond it the oldest one of the sink with most of them is forgotten."""
USERS_LIMIT: Final = 256
"""Rows of one sink in one day; what further users, accounts and sources use is counted without a user."""
CONSUMER_LIMIT: Final = 4_096
"""Rows of consumers; beyond it the sink with most of them has the one forgotten that used nothing for longest."""
NEIGHBOR_LIMIT: Final = 4_096
"""Rows of neighbors; beyond it the oldest one of a system that is no neighbor any more is forgotten."""
_Key = TypeVar("_Key", bound=Hashable)


def balance_with(state: ModuleState, system: SystemId) -> int | None:
    """Return the processor time given to a neighbor, less the time it gave, in seconds rounded toward zero.

    There is no balance with the own system.
    """
    if system == state.system:
        return None
    account = state.ledger.neighbors.get(system)
    if account is None:
        return 0
    seconds = abs(account.balance_ns) // SECOND
    return seconds if account.balance_ns >= 0 else -seconds


def neighbor_usage(state: ModuleState, system: SystemId, now: Instant) -> int:
    """Return the decayed processor nanoseconds given to a neighbor; to the own system, those of the own machine."""
    account = state.ledger.neighbors.get(system)
    return _present(state, account.usage, now) if account is not None else 0


def consumer_usage(state: ModuleState, sink: SystemId, *, origin: SystemId, user: str, now: Instant) -> int:
    """Return the decayed processor nanoseconds of a user behind a neighbor, or with the own system of an own user."""
    consumer = state.ledger.consumers.get((sink, origin, user))
    return _present(state, consumer.usage, now) if consumer is not None else 0


def usage_rows(state: ModuleState) -> tuple[UsageRow, ...]:
    """Return what was used on each day that is kept, the oldest first; what still runs is entered every few seconds."""
    return tuple(state.ledger.usage.values())


def neighbor_accounts(state: ModuleState) -> tuple[NeighborAccountRow, ...]:
    """Return the accounts of all neighbors that ever gave or were given anything, and of the own system."""
    return tuple(state.ledger.neighbors.values())


def enter(state: ModuleState, parties: Parties, processor_ns: int, now: Instant, /, *, used_ns: int = 0) -> None:
    """Add processor time, and what was used of it, to the day, the consumer and the neighbors concerned."""
    if processor_ns <= 0 and used_ns <= 0:
        return
    _enter_day(state, parties, processor_ns, now, used_ns=used_ns)
    _enter_consumer(state, parties, processor_ns, now)
    own = state.system
    if parties.source != own:
        account = _account(state, parties.source, now)
        taken_ns, used = _sum(account.taken_ns, processor_ns), _sum(account.taken_used_ns, used_ns)
        _keep_account(state, replace(account, taken_ns=taken_ns, taken_used_ns=used))
    if parties.sink != own or parties.source == own:
        account = _account(state, parties.sink, now)
        usage = account.usage.increased(processor_ns, now, state.policy.timeouts.half_life_ns)
        given_ns, used = _sum(account.given_ns, processor_ns), _sum(account.given_used_ns, used_ns)
        _keep_account(state, replace(account, given_ns=given_ns, given_used_ns=used, usage=usage))


def restore(state: ModuleState, rows: Iterable[Row]) -> None:
    """Enter the stored rows of accounts; books are restored by books.py."""
    ledger = state.ledger
    for row in rows:
        match row:
            case UsageRow():
                ledger.usage[row.day, row.parties] = row
                _count_user(state, row, 1)
            case ConsumerRow():
                ledger.consumers[row.sink, row.origin, row.user] = row
            case NeighborAccountRow():
                ledger.neighbors[row.system] = row
            case _:
                continue
    ledger.usage = dict(sorted(ledger.usage.items(), key=lambda item: item[1].number))
    ledger.consumers = dict(sorted(ledger.consumers.items(), key=lambda item: item[1].usage.at))


def keep(state: ModuleState, row: LedgerRow) -> None:
    """Store a row at the end of the step."""
    state.ledger.writes[key_of(row)] = Store(row=row)


def drop(state: ModuleState, key: RowKey) -> None:
    """Forget a row at the end of the step."""
    state.ledger.writes[key] = Forget(key=key)


def _present(state: ModuleState, usage: Decaying, now: Instant) -> int:
    return usage.seen_at(now, state.policy.timeouts.half_life_ns).amount


def _sum(before_ns: int, gained_ns: int) -> int:
    return min(INTEGER_HIGHEST, before_ns + gained_ns)


def _enter_day(state: ModuleState, parties: Parties, processor_ns: int, now: Instant, /, *, used_ns: int) -> None:
    ledger, day = state.ledger, now // DAY
    row = ledger.usage.get((day, parties))
    if row is None and ledger.users.get((day, parties.sink), 0) >= USERS_LIMIT:
        parties = replace(parties, source=state.system, origin=parties.sink, user="", account="")
        row = ledger.usage.get((day, parties))
    if row is None:
        _forget_old_days(state, day)
        row = UsageRow(number=_next(each.number for each in ledger.usage.values()), day=day, parties=parties)
        _count_user(state, row, 1)
    row = replace(row, processor_ns=_sum(row.processor_ns, processor_ns), used_ns=_sum(row.used_ns, used_ns))
    ledger.usage[day, parties] = row
    keep(state, row)
    if len(ledger.usage) > USAGE_LIMIT:
        most = _most(each.sink for _, each in ledger.usage)
        _forget_day(state, next(each for each in ledger.usage.values() if each.parties.sink == most))


def _forget_old_days(state: ModuleState, today: int) -> None:
    """Forget the days that the policy does not keep; the oldest are first, unless the clock was set back."""
    oldest = today - state.policy.limits.usage_days
    for row in [each for each in state.ledger.usage.values() if each.day <= oldest]:
        _forget_day(state, row)


def _forget_day(state: ModuleState, row: UsageRow) -> None:
    del state.ledger.usage[row.day, row.parties]
    _count_user(state, row, -1)
    drop(state, key_of(row))


def _count_user(state: ModuleState, row: UsageRow, change: int) -> None:
    users, key = state.ledger.users, (row.day, row.parties.sink)
    count = users.pop(key, 0) + change
    if count:
        users[key] = count


def _enter_consumer(state: ModuleState, parties: Parties, processor_ns: int, now: Instant) -> None:
    consumers, key = state.ledger.consumers, (parties.sink, parties.origin, parties.user)
    row = consumers.pop(key, None)
    if row is None:
        sink, origin, user = key
        number = _next(each.number for each in consumers.values())
        row = ConsumerRow(number=number, sink=sink, origin=origin, user=user, usage=Decaying(amount=0, at=now))
    usage = row.usage.increased(processor_ns, now, state.policy.timeouts.half_life_ns)
    consumers[key] = replace(row, usage=usage)
    keep(state, consumers[key])
    if len(consumers) > CONSUMER_LIMIT:
        most = _most(sink for sink, _, _ in consumers)
        oldest = next(each for each in consumers if each[0] == most)
        drop(state, key_of(consumers.pop(oldest)))


def _account(state: ModuleState, system: SystemId, now: Instant) -> NeighborAccountRow:
    account = state.ledger.neighbors.get(system)
    return account or NeighborAccountRow(system=system, since=now, usage=Decaying(amount=0, at=now))


def _keep_account(state: ModuleState, account: NeighborAccountRow) -> None:
    accounts = state.ledger.neighbors
    accounts[account.system] = account
    keep(state, account)
    if len(accounts) > NEIGHBOR_LIMIT:
        former = [each for each in accounts if each not in state.neighbors and each != state.system]
        if former:
            drop(state, key_of(accounts.pop(former[0])))


def _next(numbers: Iterable[int]) -> int:
    return max(numbers, default=0) + 1


def _most(those: Iterable[_Key]) -> _Key:
    return Counter(those).most_common(1)[0][0]
