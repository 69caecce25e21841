"""A plan for people: what would become of tasks, who would be asked and why in this order, and what would help."""

from collections.abc import Iterator, Sequence
from typing import Final

from messiahs.cli.output import conditions_of, local_time, reason_lines
from messiahs.cli.task.search_lines import asked_text, change_lines, order_lines
from messiahs.client.connection import Document
from messiahs.core.model.counts import counted
from messiahs.core.model.texts import printable

_NOTE: Final = "neighbors are judged by what they last advertised: when asked, they decide by their own policy"
_SHOWN_DESCRIPTIONS: Final = 8
_DEPENDENCY_FAILED: Final = "dependency_failed"


def plan_lines(plan: Document) -> Iterator[str]:
    """Yield the lines of a plan, beginning with what would become of the tasks.

    Descriptions of which the same would become are told together, by the attributes in which they differ.
    """
    plans, alike = [plan, *plan.get("others", ())], dict[tuple[str, ...], list[Document]]()
    for each in plans:
        alike.setdefault(tuple(_lines(each)), []).append(each)
    for lines, some in alike.items():
        if len(plans) > 1:
            yield printable(f"with {_differences(some, plans)}:")
        yield from (f"  {line}" for line in lines) if len(plans) > 1 else lines
    if left := plan["descriptions"] - len(plans):
        yield f"not planned: {counted(left, 'description')} more"
    if any(each["search"] is not None for each in plans):
        yield _NOTE


def _differences(some: Sequence[Document], plans: Sequence[Document]) -> str:
    """Return the attributes of some of the plans that are not the same in all of them."""
    tdvs = [each["tdv"] for each in plans]
    names = [name for name, value in tdvs[0].items() if any(tdv.get(name) != value for tdv in tdvs)]
    texts = [", ".join(f"{name}={each['tdv'].get(name)}" for name in names) for each in some]
    more = len(texts) - _SHOWN_DESCRIPTIONS
    return " or ".join(texts[:_SHOWN_DESCRIPTIONS]) + (f" or {more} more" if more > 0 else "")


def _lines(plan: Document) -> Iterator[str]:
    yield printable(_outcome(plan))
    yield from (f"  {line}" for line in reason_lines(plan["reasons"], whole=True))
    if plan["search"] is not None:
        yield "would ask for a place, in this order:"
        yield from (f"  {line}" for line in order_lines(plan["search"], is_whole=False, answer=_answer))
        if _neighbors_in(plan["search"]) > plan["asks"]:
            yield f"  at most {counted(plan['asks'], 'neighbor')} would be asked in one search"
    if plan["last_search"] is not None:
        yield f"the tasks ahead were asked for at {local_time(plan['last_search']['at'])}, in this order:"
        yield from (f"  {line}" for line in order_lines(plan["last_search"], is_whole=True))
    if plan["tasks"] and (plan["outcome"] != "start" or _is_guessed(plan)):
        yield from change_lines(plan["machines"], plan["search"], plan["last_search"])


def _outcome(plan: Document) -> str:
    if plan["outcome"] == "start":
        return _start_text(plan)
    is_denied, reasons = plan["outcome"] == "deny", plan["reasons"]
    if is_denied and any(each["code"] == _DEPENDENCY_FAILED for each in reasons):
        return "would be denied, since it would wait in vain"
    if _is_awaited(plan):
        return f"would wait {', '.join(conditions_of(plan))}"
    what = "would be denied, since no machine is known to have room now" if is_denied else "would wait for a free place"
    if plan["ahead"]:
        what += f", behind {counted(plan['ahead'], 'task')} of the same description"
    if not plan["is_sure"] and not plan["ahead"]:
        what += ", unless a neighbor makes room"
    return what


def _start_text(plan: Document) -> str:
    """Return where the first tasks would start, and how many of them by decision of their own module."""
    held = [(each["system"], each["tasks"]) for each in plan["held"]]
    search = plan["search"]["order"] if plan["search"] is not None else ()
    granted = [(each["system"], each["places"]) for each in search if each["places"]]
    if _is_guessed(plan):
        first = plan["likely"][0]
        return f"may start now: no machine shows all that it needs; {first}, which may have one, would be asked first"
    if not plan["is_sure"]:
        return f"would start now, if a neighbor that shows room agrees: {plan['likely'][0]} would be asked first"
    systems = ", ".join(dict.fromkeys(system for system, _ in (*held, *granted)))
    sure = sum(tasks for _, tasks in (*held, *granted)) - plan["ahead"]
    if plan["tasks"] <= 1:
        return f"would start now on {systems}"
    others = plan["tasks"] - sure
    rest = f", and neighbors would be asked for the other {others}" if others > 0 else ""
    return f"{min(sure, plan['tasks'])} of {plan['tasks']} tasks would start now on {systems}{rest}"


def _is_guessed(plan: Document) -> bool:
    """Whether a start depends on a machine of which no neighbor has said that it meets the requirement."""
    return plan["outcome"] == "start" and not plan["is_known"]


def _answer(asked: Document) -> str:
    if asked["answer"] == "not_asked":
        return "would be asked"
    if asked["places"]:
        return f"would grant {counted(asked['places'], 'place')}"
    why = next((reason["why"] for reason in asked["reasons"] if reason["why"]), "")
    return asked_text(asked) + (f", because {why}" if why else "")


def _is_awaited(plan: Document) -> bool:
    """Whether no task would look for a place before others have ended."""
    return bool(plan["after"]) and not plan["tasks"]


def _neighbors_in(search: Document) -> int:
    order: Sequence[Document] = search["order"]
    return sum(each["answer"] == "not_asked" for each in order)
