"""The members of an array for `explain`, grouped by what has become of them and why."""

from collections.abc import Iterable, Iterator

from messiahs.cli.exit_codes import exit_code_of
from messiahs.cli.output import conditions_of, is_held, reason_lines, result_of, state_of
from messiahs.cli.task.delays import why_delayed
from messiahs.client.connection import Document
from messiahs.client.locating import member_of
from messiahs.client.status import is_final
from messiahs.client.words import why_ended
from messiahs.core.model.texts import printable
from messiahs.core.origin.member_runs import runs_among

_SHOWN_RUNS = 8


def group_lines(members: Iterable[Document]) -> Iterator[str]:
    """Yield a line for each group of members, the largest first, and why below; then how to see one of them whole."""
    groups: dict[tuple[str, tuple[str, ...]], list[Document]] = {}
    for member in members:
        groups.setdefault((_what(member), _why(member)), []).append(member)
    for (what, why), alike in sorted(groups.items(), key=lambda group: -len(group[1])):
        yield printable(f"  {len(alike)} {what}: {_numbers([member_of(each['id']) for each in alike])}")
        yield from (f"    {line}" for line in why)
    bad = [each for alike in groups.values() for each in alike if not is_final(each) or exit_code_of(each)]
    if bad:
        yield f"  `messiahs explain {bad[0]['id']}` shows what happened to that member"


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


def _numbers(numbers: list[int]) -> str:
    """Return members as runs of numbers."""
    runs = runs_among(sorted(numbers))
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return ", ".join(shown[:_SHOWN_RUNS]) + (
        f" and {len(shown) - _SHOWN_RUNS} more" if len(shown) > _SHOWN_RUNS else ""
    )
