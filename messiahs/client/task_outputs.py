"""Outputs of tasks as inputs of others: their module keeps a copy, and no byte goes through the client.

Those of ended tasks are looked at before the submit, with clear errors; others are taken by the module once these end.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from messiahs.client.inputs import PreparedInputs
from messiahs.client.members import Members
from messiahs.client.module import ModuleClient
from messiahs.client.submission import InputFile, LaterOutput
from messiahs.config.task_names import checked_name
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.errors import ClientError, UnknownRequestError

_NAMED = re.compile(r"@(?P<task>[a-z0-9.-]+?\.[1-9]\d*(\.[1-9]\d*)?)(/(?P<name>[^:]*)(:(?P<to>.*))?)?", re.DOTALL)
_EACH = re.compile(r".*\.[1-9]\d*\.[1-9]\d*")
_GROUP = 1_024
"""Outputs in one request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutput:
    """An output of a task, or of each member of an array; `to` is its name as an input (empty: its own)."""

    task: str
    name: str
    to: str = ""

    def of_item(self, item: str) -> "TaskOutput":
        """Return the output for the member with `item`."""
        filled = self.name.replace(PLACEHOLDER, item), self.to.replace(PLACEHOLDER, item)
        return TaskOutput(task=self.task, name=filled[0], to=filled[1])


def task_output_of(text: str) -> TaskOutput | None:
    """Parse `@ID/NAME[:DST]`; None for anything else, such as a path."""
    match = _NAMED.fullmatch(text)
    if match is None:
        return None
    return TaskOutput(task=match["task"], name=(match["name"] or "").strip("/"), to=match["to"] or "")


def with_task_outputs(
    module: ModuleClient,
    prepared: PreparedInputs,
    outputs: Sequence[TaskOutput],
    /,
    *,
    members: Members,
    is_repeated: Callable[[], bool],
) -> PreparedInputs:
    """Return the inputs with those that are outputs of ended tasks, which the module keeps for a submit from now on.

    An array of as many members gives each member those of its own. Raises `ClientError` for a task that has ended
    otherwise than with exit code 0, and for a name that it did not leave; the text has the names that it left.
    Outputs of a task that has not ended are only noted, and go to all members. So are those that cannot be taken any
    more if the submit is repeated (`is_repeated` asks for that): the module compares them with what it took then.
    """
    for output in outputs:
        try:
            found = _found(module, output, members)
        except ClientError:
            if _loses_folders(output, members) or not is_repeated():
                raise
            # With `{}` in its place, the module finds what each member took.
            then = LaterOutput(task=output.task, name=output.name, to=checked_name(_base_of(output)))
            found = PreparedInputs(wanted=(then,))
        prepared = _joined(prepared, found)
    return prepared


def is_known(module: ModuleClient, key: str | None, *, is_file: bool = False) -> bool:
    """Return whether a submit with the key that a user has given, if any, is a repeated one, of a file of tasks or not.

    A module of an earlier release does not tell.
    """
    try:
        return key is not None and module.knows_key(key, is_file=is_file)
    except UnknownRequestError:
        return False


def _found(module: ModuleClient, output: TaskOutput, members: Members) -> PreparedInputs:
    """Return the inputs that an output is, or what a task will leave; raises `ClientError` if it cannot be taken."""
    size, has_ended = _look_at(module, output.task)
    _check_size(output, size, members)
    if not has_ended:
        if size:
            text = f"{output.task} has not ended: `wait` for it, and submit then; a single task can be waited for"
            raise _wrong(f"{text}, with its outputs, or a member, such as @{output.task}.1/{output.name}")
        return PreparedInputs(wanted=(later_output(output, members=members.count),))
    # In a single task, marks stand for themselves, as in its other inputs.
    if not size and not (members.count and PLACEHOLDER in f"{output.name}{output.to}"):
        return PreparedInputs(inputs=tuple(_inputs_of(module, output)))
    own = []
    for number, item in enumerate(members.texts(), 1):
        of = f"{output.task}.{number}" if size else output.task
        own.append(tuple(_inputs_of(module, replace(output.of_item(item), task=of))))
    return PreparedInputs(member_inputs=tuple(own))


def _joined(prepared: PreparedInputs, more: PreparedInputs) -> PreparedInputs:
    """Return inputs with more of them; those of members are added to what each has, which may be nothing."""
    one, other = prepared.member_inputs, more.member_inputs
    both = tuple((*before, *after) for before, after in zip(one, other, strict=True)) if one and other else one or other
    return replace(
        prepared,
        inputs=(*prepared.inputs, *more.inputs),
        wanted=(*prepared.wanted, *more.wanted),
        member_inputs=both if any(both) else prepared.member_inputs,
    )


def later_output(output: TaskOutput, *, members: int) -> LaterOutput:
    """Return an output of a task that has not ended, for a task or all `members` of an array; a `ClientError` for `{}`.

    It needs a name: what the other task will leave in all is not known.
    """
    if not output.name:
        raise _wrong(f"`@{output.task}` names no output, such as @{output.task}/NAME")
    if members and PLACEHOLDER in f"{output.name}{output.to}":
        text = "`{}` stands for no item, since the other task has not ended: `wait` for it, and submit then"
        raise _wrong(f"`@{output.task}/{output.name}`: {text}")
    return LaterOutput(task=output.task, name=output.name, to=checked_name(_base_of(output)))


def _look_at(module: ModuleClient, task: str) -> tuple[int, bool]:
    """Return how many members an array has (0 for a single task or a member), and whether all has ended."""
    found = module.tasks(task)["tasks"]
    if not found:
        # Who asks for its outputs is told more.
        return 0, True
    members = 0 if _EACH.fullmatch(task) else int(found[0].get("members", 0))
    return members, found[0]["ended_at"] is not None


def _check_size(output: TaskOutput, size: int, members: Members) -> None:
    if size and not members.count:
        raise _wrong(f"{output.task} has {size} tasks: name one, such as @{output.task}.1/{output.name}")
    if size and size != members.count:
        text = f"{output.task} has {size} members, and this array has {members.count}"
        raise _wrong(f"{text}: outputs are taken member by member, so both have as many")


def _inputs_of(module: ModuleClient, output: TaskOutput) -> Iterator[InputFile]:
    """Yield the files of an output, which is one or a folder of them, under their names as inputs."""
    listing = module.output_listing(output.task)
    inside = f"{output.name}/"
    left = {one["name"]: one for one in listing["outputs"]}
    chosen = [name for name in left if output.name and (name == output.name or name.startswith(inside))]
    if not chosen:
        # Of a task that failed, the module says that first.
        module.keep_outputs(output.task, ())
        raise _wrong(f"`@{output.task}/{output.name}` is no output of {output.task}: {_there(left)}")
    files = [name for name in chosen if "link" not in left[name] and not left[name].get("folder")]
    kept = dict[str, str]()
    for first in range(0, max(1, len(files)), _GROUP):
        kept |= module.keep_outputs(output.task, files[first : first + _GROUP])
    base = _base_of(output)
    for name in chosen:
        yield _input_of(left[name], checked_name(f"{base}{name.removeprefix(output.name)}"), kept.get(name, ""))


def _base_of(output: TaskOutput) -> str:
    """Return the name as an input of an output, or of the folder of all that are in it."""
    own = output.name.rpartition("/")[2]
    return (f"{output.to}{own}" if output.to.endswith("/") else output.to) or own


def _loses_folders(output: TaskOutput, members: Members) -> bool:
    """Return whether the place of an output for a member is not that of the array with `{}` replaced.

    An output with an item such as `a/b` in its name loses the folders in it, unless a place is given.
    """
    base = _base_of(output)
    own = (_base_of(output.of_item(text)) != base.replace(PLACEHOLDER, text) for text in members.texts())
    return PLACEHOLDER in base and any(own)


def _input_of(found: Mapping[str, object], name: str, sha256: str) -> InputFile:
    if not sha256:
        return InputFile(name=name, link_target=str(found.get("link", "")), is_folder=bool(found.get("folder")))
    size, is_executable = int(str(found["size"])), bool(found["executable"])
    return InputFile(name=name, sha256=sha256, size_bytes=size, is_executable=is_executable)


def _there(left: Mapping[str, object]) -> str:
    return f"it left {', '.join(sorted(left))}" if left else "it left none"


def _wrong(text: str) -> ClientError:
    return ClientError(text, code=ClientError.USAGE)
