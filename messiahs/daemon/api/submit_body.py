"""The body of a submit."""

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec

from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.limits import MEMBER_LIMIT
from messiahs.core.interface.messages import Command
from messiahs.core.interface.notifications import Notification
from messiahs.core.model.array_index import without_foreign_index
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.input_size import contents_of, own_bytes, with_input_size
from messiahs.core.model.instants import MICROSECOND, SECOND
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.api.json_slices import Elements, Steps
from messiahs.daemon.api.predecessors import AfterBody
from messiahs.daemon.api.terminal_body import TerminalBody, needed_machine, size_of
from messiahs.language.predicate.joining import joined

_LARGEST = 2**62
LISTS: Final = {
    "inputs": Elements.OBJECTS,
    "outputs": Elements.STRINGS,
    "items": Elements.STRINGS,
    "member_inputs": Elements.ARRAYS,
}
"""What a submit or a retry may have very many of."""
_FILE_NS = 3 * MICROSECOND
"""What making an input is expected to cost."""


class InputBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An input of a submit: a file whose content was uploaded before, a link with its target, or an empty folder."""

    name: str
    sha256: str = ""
    size: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)] = 0
    executable: bool = False
    link: str = ""
    folder: bool = False


class TasksBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A task or an array of a submit; `tdv` has what the user states about one task, without `$`."""

    argv: tuple[str, ...]
    env: dict[str, str] = msgspec.field(default_factory=dict)
    tdv: dict[str, int | str] = msgspec.field(default_factory=dict)
    requirement: str = ""
    members: Annotated[int, msgspec.Meta(ge=0, le=MEMBER_LIMIT)] = 0
    inputs: tuple[InputBody, ...] = ()
    outputs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    at_once: Annotated[int, msgspec.Meta(ge=0, le=MEMBER_LIMIT)] = 0
    member_inputs: tuple[tuple[InputBody, ...], ...] = ()
    name: str = ""
    retries: Annotated[int, msgspec.Meta(ge=0)] = 0
    waits: bool = True
    deadline_s: Annotated[int, msgspec.Meta(ge=0)] | None = None
    stdin: bool = False
    cwd: str = ""
    terminal: TerminalBody | None = None
    after: tuple[AfterBody, ...] = ()
    notify: str = ""


class SubmitBody(TasksBody, forbid_unknown_fields=True, kw_only=True):
    """The body of a submit."""

    key: str


class RetryBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a retry; with `killed`, of tasks that did not exit by themselves. `inputs` replace those of then."""

    killed: bool = False
    inputs: tuple[InputBody, ...] = ()


def hashes_in(body: TasksBody | RetryBody) -> Iterator[bytes]:
    """Yield the hashes of all inputs."""
    for files in (body.inputs, *(body.member_inputs if isinstance(body, TasksBody) else ())):
        for file in files:
            if file.sha256:
                yield bytes.fromhex(file.sha256)


def own_key(user: str, key: str) -> ClientKey:
    """Return the key of a submit of a user: clients choose keys, so those of different users never collide."""
    return ClientKey(f"{user}:{key}")


def submitting(
    body: TasksBody,
    tdv: TDV,
    *,
    key: ClientKey,
    notification: Notification | None,
) -> Steps[Submitted]:
    """Return the event of a valid body, which nobody waits for yet, without the tasks that it waits for.

    A task with an image or environment requires a machine that unpacks it. The input size of an array is that of the
    member with the largest inputs.
    """
    inputs, member_inputs = inputs_of(body.inputs), []
    shared, most_own = contents_of(inputs), 0
    for files in body.member_inputs:
        yield len(files) * _FILE_NS
        member_inputs.append(own := inputs_of(files))
        most_own = max(most_own, own_bytes(own, shared))
    return Submitted(
        answer_to=AnswerTo(0),
        key=key,
        tdv=with_input_size(tdv, sum(shared.values()) + most_own),
        requirement=joined(body.requirement, needed_machine(tdv, has_terminal=body.terminal is not None)),
        command=Command(
            argv=body.argv,
            env=tuple(sorted(without_foreign_index(body.env).items())),
            inputs=inputs,
            outputs=body.outputs,
            takes_stdin=body.stdin or body.terminal is not None,
            cwd=body.cwd,
            terminal=size_of(body.terminal),
        ),
        members=body.members,
        items=body.items,
        member_inputs=tuple(member_inputs),
        name=body.name,
        retries=body.retries,
        waits=body.waits,
        deadline_ns=body.deadline_s * SECOND if body.deadline_s is not None else None,
        at_once=body.at_once,
        notification=notification,
    )


def inputs_of(files: tuple[InputBody, ...]) -> tuple[InputFile, ...]:
    """Return files as the core knows them."""
    return tuple(
        InputFile(
            name=file.name,
            sha256=bytes.fromhex(file.sha256),
            size_bytes=file.size,
            is_executable=file.executable,
            link_target=file.link,
            is_folder=file.folder,
        )
        for file in files
    )
