"""The tasks that a submit depends on: found, checked, and with how they ended if that is stored."""

from collections.abc import Iterable, Mapping

import msgspec

from messiahs.core.interface.dependencies import Dependency, Predecessor, WantedOutput, When
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.ids import TaskId
from messiahs.core.model.output_names import why_never_left
from messiahs.core.origin.array_members import outputs_of
from messiahs.core.origin.awaited import is_good_ending
from messiahs.core.origin.completion import MemberEnds, has_ended_well, with_ends_of_members
from messiahs.core.origin.how_ended import how_ended, how_some_ended
from messiahs.daemon.api.paced_handlers import NextSlice
from messiahs.daemon.api.task_search import AttemptError, Found, Tasks, in_turn, system_in
from messiahs.errors import MessiahsError


class OutputBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """An output of another task, a file or a folder of them, which becomes the input `to`."""

    name: str
    to: str

    @property
    def wanted(self) -> WantedOutput:
        """The output as the core knows it."""
        return WantedOutput(name=self.name, to=self.to)


class AfterBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """A task, or all tasks of an array, by its id, and what has to have happened to it.

    With `ok` on a single task or a member, `outputs` of it are taken.
    """

    on: str
    when: When
    outputs: tuple[OutputBody, ...] = ()


class DependencyError(MessiahsError):
    """A submit depends on something that is no task of its user at this module; the text says why.

    `unknown` is the id if no such task is known; or the task is that of another user.
    """

    def __init__(self, text: str, *, unknown: str = "", is_of_another_user: bool = False) -> None:
        super().__init__(text)
        self.unknown, self.is_of_another_user = unknown, is_of_another_user


Ends = Mapping[TaskId, MemberEnds]
"""How members of arrays had ended when they were read, before the turn of a request."""


async def ends_named(bodies: Iterable[AfterBody], tasks: Tasks) -> Ends:
    """Read how the members of the arrays have ended for which others wait member by member, page by page."""
    names = [each.on for each in dict.fromkeys(bodies) if each.when == When.EACH and "#" not in each.on]
    found = [await tasks.look_up(name) async for name in in_turn(names)]
    return await _ends_of((each.id for each in found if each is not None), tasks)


async def ends_awaited(submission: SubmissionRow, tasks: Tasks) -> Ends:
    """Return what `ends_named` does for a stored submission."""
    return await _ends_of((each.on for each in submission.after if each.when == When.EACH), tasks)


async def predecessors_named(
    bodies: Iterable[AfterBody], tasks: Tasks, *, ends: Ends, members: int, user: str, here: str
) -> tuple[Predecessor, ...]:
    """Return the dependencies that a user states for an array of so many `members` (0: for a single task), each once.

    Raises `DependencyError` if a task is not theirs, or if members cannot wait for those of an array of another size.
    """
    named, others = list[Predecessor](), dict[TaskId, int]()
    for body in dict.fromkeys(bodies):
        await NextSlice()
        found = await _found(body.on, tasks, user=user, here=here)
        for output in body.outputs:
            _check_output(found, output.name)
        outputs = tuple(output.wanted for output in body.outputs)
        dependency = Dependency(on=found.id, when=body.when.value, outputs=outputs)
        named.append(_with_ends(dependency, found, tasks, ends))
        if body.when == When.EACH:
            others[found.id] = 0 if found.id.member else found.submission.members
    for on, size in others.items():
        if why := why_not_each(members, size, on=str(on)):
            raise DependencyError(why)
    return tuple(named)


def predecessors_stated(bodies: Iterable[AfterBody], tasks: Tasks) -> tuple[Predecessor, ...]:
    """Return the dependencies that a user states in a submit that is repeated, by its key.

    The tasks are not looked at, and may be gone: only what is stated is compared. Raises `DependencyError` for what is
    no id of this module.
    """
    stated = []
    for each in dict.fromkeys(bodies):
        on = tasks.id_of(each.on)
        if on is None:
            raise DependencyError(f"no task {each.on} is known here, so nothing can wait for it", unknown=each.on)
        outputs = tuple(output.wanted for output in each.outputs)
        stated.append(Predecessor(dependency=Dependency(on=on, when=each.when.value, outputs=outputs)))
    return tuple(stated)


def conditions_of_retry(submission: SubmissionRow) -> tuple[Dependency, ...]:
    """Return the conditions of a stored submission that are not met for all of it."""
    return tuple(each for each in submission.after if not each.is_met or each.when == When.EACH)


async def predecessors_of(submission: SubmissionRow, tasks: Tasks, *, ends: Ends) -> tuple[Predecessor, ...]:
    """Return `conditions_of_retry`, with how their tasks have ended."""
    found = list[Predecessor]()
    for each in conditions_of_retry(submission):
        await NextSlice()
        found.append(_with_ends(each, await tasks.look_up(str(each.on)), tasks, ends))
    return tuple(found)


async def _found(name: str, tasks: Tasks, *, user: str, here: str) -> Found:
    origin = system_in(name)
    if origin and origin != here:
        text = f"`{name}` is a task of {origin}: a task of {here} can wait only for tasks submitted to {here}"
        raise DependencyError(text)
    try:
        found = await tasks.look_up(name)
    except AttemptError as error:
        raise DependencyError(str(error)) from error
    if found is None:
        gone = await tasks.why_unknown(name) or f"no task {name} is known here"
        raise DependencyError(f"{gone}, so nothing can wait for it", unknown=name)
    owner = found.submission.tdv.description()["user"]
    if owner != user:
        text = f"{found.id} belongs to another user: a task can wait for tasks of its own user only"
        raise DependencyError(text, is_of_another_user=True)
    return found


def _check_output(found: Found, name: str) -> None:
    """Refuse an output that a task cannot leave, as far as that is known before its end."""
    if found.row is None:
        one = f"@{found.id._replace(member=1)}/{name}"
        raise DependencyError(f"{found.id} has {found.submission.members} tasks: name one, such as {one}")
    if why := why_never_left(outputs_of(found.submission, found.id), name, of=str(found.id)):
        raise DependencyError(why)


def why_not_each(members: int, others: int, *, on: str) -> str:
    """Return why an array of `members` cannot wait, member by member, for one of `others`; empty if it can.

    0 members are a single task.
    """
    if not others:
        return f"{on} is a single task: with --after-each, an array waits for another array"
    if not members:
        return f"with --after-each, an array waits for {on}, and this is a single task"
    if members != others:
        return f"{on} has {others} members, and this array has {members}: with --after-each, both have as many"
    return ""


def _with_ends(dependency: Dependency, found: Found | None, tasks: Tasks, ends: Ends) -> Predecessor:
    """Return a dependency with how its tasks have ended."""
    if found is None:
        # A task is stored before what waits for it, so one that is not there has been forgotten since.
        return Predecessor(dependency=dependency, is_forgotten=True)
    if dependency.when != When.EACH:
        return Predecessor(dependency=dependency, is_good=_is_good(found, tasks), how=_how_ended(found))
    known = ends.get(found.id, MemberEnds())
    return with_ends_of_members(dependency, found.submission, tasks.newer_ends(found.submission, known))


async def _ends_of(arrays: Iterable[TaskId], tasks: Tasks) -> Ends:
    return {array: await tasks.ends_of(array) for array in arrays}


def _how_ended(found: Found) -> str:
    """Return in words how a task ended, or those of an array that did not end well; empty if it has not ended."""
    if not found.is_final:
        return ""
    if found.row is not None:
        return how_ended(found.row)
    ended = {(each.state, each.exit_code): each.count for each in found.submission.endings}
    return how_some_ended(ended, members=found.submission.members)


def _is_good(found: Found, tasks: Tasks) -> bool | None:
    """Return whether a task, or each task of an array, has ended well; None if it has not ended."""
    if not found.is_final:
        return None
    if found.row is not None:
        return has_ended_well(found.row)
    if found.submission.endings:
        return all(is_good_ending(each.state, each.exit_code) for each in found.submission.endings)
    # An array of an earlier release.
    return all(map(has_ended_well, tasks.ended_or_tried(found.submission)))
