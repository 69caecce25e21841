"""The members of an array for `explain`, grouped by what has become of them and why."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from messiahs.cli.exit_codes import exit_code_of
from messiahs.cli.output import conditions_of, is_held, reason_lines, result_of, state_of
from messiahs.cli.task.delays import why_delayed
from messiahs.client.connection import Document
from messiahs.client.locating import member_of
from messiahs.client.status import is_final
from messiahs.client.words import why_ended
from messiahs.core.model.texts import printable
from messiahs.core.origin.member_runs import Run, runs_among

_SHOWN_RUNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Members of an array of which the same has become, and for the same reasons, as runs of their numbers."""

    what: str
    why: tuple[str, ...]
    count: int
    runs: tuple[Run, ...]


def groups_of(members: Iterable[Document]) -> list[Group]:
    """Return the groups of members, the largest first."""
    alike: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for member in members:
        alike.setdefault((_what(member), _why(member)), []).append(member_of(member["id"]))
    groups = [
        Group(what=what, why=why, count=len(numbers), runs=tuple(runs_among(sorted(numbers))))
        for (what, why), numbers in alike.items()
    ]
    return sorted(groups, key=lambda group: -group.count)


def group_lines(members: Collection[Document]) -> Iterator[str]:
    """Yield a line for each group of members, and why below; then how to see one of them whole."""
    for group in groups_of(members):
        yield printable(f"  {group.count} {group.what}: {_numbers(group.runs)}")
        yield from (f"    {line}" for line in group.why)
    bad = next((each for each in members if not is_final(each) or exit_code_of(each)), None)
    if bad is not None:
        yield f"  `messiahs explain {bad['id']}` shows what happened to that member"


def group_documents(members: Iterable[Document]) -> list[Document]:
    """Describe each group of members: `members` are runs of numbers, each by its first and its last one."""
    return [
        {"what": group.what, "why": list(group.why), "count": group.count, "members": [list(run) for run in group.runs]}
        for group in groups_of(members)
    ]


def _what(member: Document) -> str:
    result = result_of(member)
    if not is_final(member) or result in ("-", member["state"]):
        return state_of(member)
    return f"{member['state']} ({f'exit code {result}' if result.isdecimal() else result})"


def _why(member: Document) -> tuple[str, ...]:
    if not is_final(member):
        conditions = () if is_held(member) else conditions_of(member)[:1]
        return tuple(map(printable, (*(f"waits {each}" for each in conditions), *why_delayed(member))))
    return (*filter(None, [printable(why_ended(member))]), *reason_lines(member.get("reasons") or ()))


def _numbers(runs: Iterable[Run]) -> str:
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return ", ".join(shown[:_SHOWN_RUNS]) + (
        f" and {len(shown) - _SHOWN_RUNS} more" if len(shown) > _SHOWN_RUNS else ""
    )
