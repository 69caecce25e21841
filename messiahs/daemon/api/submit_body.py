"""The body of a submit, and its validation."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec

from messiahs.core.interface.dependencies import DEPENDENCY_LIMIT, EACH_LIMIT, Predecessor, When
from messiahs.core.interface.events import AnswerTo, Submitted
from messiahs.core.interface.limits import MEMBER_LIMIT, RETRY_LIMIT
from messiahs.core.interface.messages import Command
from messiahs.core.interface.notifications import Notification
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.array_index import without_foreign_index
from messiahs.core.model.attributes import (
    EXTENSION_LIMIT,
    PRIORITY_HIGHEST,
    TASK_ATTRIBUTES,
    WELL_KNOWN,
    Kind,
    Scope,
    Value,
)
from messiahs.core.model.descriptions import TDV, is_valid_value
from messiahs.core.model.environments import (
    ENVIRONMENT,
    ENVIRONMENT_INPUT,
    ENVIRONMENT_REQUIREMENT,
    environment_in,
)
from messiahs.core.model.folder_links import UP, leads_above
from messiahs.core.model.ids import ClientKey
from messiahs.core.model.images import IMAGE, IMAGE_INPUT, IMAGE_REQUIREMENT, image_in
from messiahs.core.model.instants import SECOND
from messiahs.core.model.output_names import is_pattern
from messiahs.core.model.task_files import InputFile, entry_bytes
from messiahs.core.model.texts import has_control, printable
from messiahs.daemon.api.predecessors import AfterBody
from messiahs.errors import CodecError
from messiahs.language.predicate.joining import joined
from messiahs.wire.limits import (
    PATH_LIMIT_BYTES,
    at_most,
    check_kind,
    declared_names,
    described,
    line,
    path_order,
    relative_path,
    separate_paths,
)

TOO_MANY_DEPENDENCIES = f"a task waits for at most {DEPENDENCY_LIMIT} others, {EACH_LIMIT} of them with --after-each"
_KEY_LIMIT = 64
_SHOWN_CHARACTERS = 200
_MODULES_OWN = ("origin", "user")
_PRIORITY = "priority"
_ABOVE_ZERO = {"mem": "memory", "disk": "disk", "est_time": "time"}
"""Needs that are left out when a task states none: a need of 0 would mean the same, and read as a limit."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_KNOWN = {**{each.name: each for each in WELL_KNOWN if each.scope is Scope.TASK}, **TASK_ATTRIBUTES}
_HASH_BYTES = 32
_HEX_DIGITS = frozenset("0123456789abcdef")
_LARGEST = 2**62
_NAME_LIMIT = 256
_INPUT_DEPTH_LIMIT = 256
"""Maximum number of parts of an input's name: its folders are created where the task runs."""
_OWN_OUTPUTS_LIMIT = 1 << 22
"""Limit for all members together, because checking each name takes time while other requests wait."""
_DEADLINE_LIMIT_YEARS = 10
_SECONDS_PER_YEAR = 366 * 24 * 3_600


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


def replaced_by(body: RetryBody, row: SubmissionRow, /) -> tuple[InputFile, ...] | str:
    """Return the files that replace inputs of a submission, or why they cannot."""
    try:
        for file in body.inputs:
            _check_input(file)
    except CodecError as error:
        return str(error)
    known = {file.name for file in row.command.inputs if file.is_file} - {IMAGE_INPUT, ENVIRONMENT_INPUT}
    for file in body.inputs:
        if file.name not in known:
            what = f"file that the members of {row.id} share" if row.member_inputs else f"input of {row.id}"
            return f"{file.name} is no {what}: a retry replaces the content of files that it had"
        if file.link or file.folder:
            return f"{file.name} of {row.id} is a file: a link or a folder cannot replace it"
    return _inputs_of(body.inputs)


def own_key(user: str, key: str) -> ClientKey:
    """Return the key of a submit of a user: clients choose keys, so those of different users never collide."""
    return ClientKey(f"{user}:{key}")


def submitted_by(
    body: TasksBody,
    tdv: TDV,
    *,
    key: ClientKey,
    answer_to: AnswerTo,
    notification: Notification | None,
    after: tuple[Predecessor, ...] = (),
) -> Submitted:
    """Make the event of a valid body; a task with an image or environment requires a machine that unpacks it."""
    return Submitted(
        answer_to=answer_to,
        key=key,
        tdv=tdv,
        requirement=joined(body.requirement, _unpacking(tdv)),
        command=Command(
            argv=body.argv,
            env=tuple(sorted(without_foreign_index(body.env).items())),
            inputs=_inputs_of(body.inputs),
            outputs=body.outputs,
            takes_stdin=body.stdin,
            cwd=body.cwd,
        ),
        members=body.members,
        items=body.items,
        member_inputs=tuple(_inputs_of(files) for files in body.member_inputs),
        name=body.name,
        retries=body.retries,
        waits=body.waits,
        deadline_ns=body.deadline_s * SECOND if body.deadline_s is not None else None,
        after=after,
        at_once=body.at_once,
        notification=notification,
    )


def problem_of_key(key: str) -> str:
    """Return what is wrong with the key that a client chose; empty if it is valid."""
    return "" if 1 <= len(key) <= _KEY_LIMIT else "the key of a submit must have 1 to 64 characters"


def problem_of(body: TasksBody) -> str:
    """Return what is wrong with a body, but for its key; empty if it is valid."""
    problem = _problem_of_tdv(body.tdv) or _problem_of_files(body) or _problem_of_archives(body)
    problem = problem or _problem_of_limits(body)
    if problem:
        return problem
    if any("\0" in word for word in (*body.argv, *body.env, *body.env.values(), *body.items)):
        return "a NUL byte cannot be passed to a program"
    if not all(
        map(
            _is_unicode, (*body.argv, *body.env, *body.env.values(), *body.items, body.name, body.cwd, body.requirement)
        )
    ):
        return "the command, its environment, folder, name and items must be UTF-8"
    if has_control(body.name):
        return "the name of a task must not contain control characters"
    if body.stdin and body.members:
        return "an array cannot take standard input"
    if any(not name or "=" in name for name in body.env):
        return "the name of an environment variable is empty or contains ="
    return ""


def _unpacking(tdv: TDV) -> str:
    if image_in(tdv.pairs):
        return IMAGE_REQUIREMENT
    return ENVIRONMENT_REQUIREMENT if environment_in(tdv.pairs) else ""


def _problem_of_archives(body: TasksBody) -> str:
    named = [
        (what, name) for what, name in ((IMAGE, IMAGE_INPUT), (ENVIRONMENT, ENVIRONMENT_INPUT)) if what in body.tdv
    ]
    if len(named) > 1:
        return f"a task has an `{IMAGE}` or an `{ENVIRONMENT}`, not both"
    for what, name in named:
        if not any(file.name == name and file.sha256 == body.tdv[what] for file in body.inputs):
            return f"`{what}` is the SHA-256 of the archive of an {what}, which is among the inputs as `{name}`"
    return ""


def _problem_of_limits(body: TasksBody) -> str:
    if len(body.name) > _NAME_LIMIT:
        return f"the name of a task has at most {_NAME_LIMIT} characters, and this one has {len(body.name)}"
    if len(body.after) > DEPENDENCY_LIMIT or sum(each.when == When.EACH for each in body.after) > EACH_LIMIT:
        return TOO_MANY_DEPENDENCIES
    if body.retries > RETRY_LIMIT:
        return f"a task can be retried at most {RETRY_LIMIT} times"
    furthest_s = _DEADLINE_LIMIT_YEARS * _SECONDS_PER_YEAR
    if body.deadline_s is not None and body.deadline_s > furthest_s:
        return f"a deadline may be at most {furthest_s} s ({_DEADLINE_LIMIT_YEARS} years) away"
    return ""


def _problem_of_tdv(tdv: Mapping[str, Value]) -> str:
    for name, value in tdv.items():
        known = _KNOWN.get(name)
        if name in _MODULES_OWN:
            return f"${name} cannot be set by users"
        if not _NAME.fullmatch(name):
            return f"${name} is not the name of an attribute"
        if known is not None and known.kind is Kind.INTEGER and not isinstance(value, int):
            return f"${name} must be an integer"
        if isinstance(value, str) and has_control(value):
            return f"${name} contains control characters"
        if name in _ABOVE_ZERO and value == 0:
            return f"${name} must be more than 0: leave it out if the task states no {_ABOVE_ZERO[name]}"
        if name == _PRIORITY and isinstance(value, int) and abs(value) > PRIORITY_HIGHEST:
            return f"${name} must be from -{PRIORITY_HIGHEST} to {PRIORITY_HIGHEST}"
        if not is_valid_value(value) or (known is not None and isinstance(value, int) and value < _least(name)):
            return f"${name} is out of range"
    if sum(name not in TASK_ATTRIBUTES for name in tdv) > EXTENSION_LIMIT:
        return f"a task may state at most {EXTENSION_LIMIT} attributes of its own"
    return ""


def _least(name: str) -> int:
    if name == _PRIORITY:
        return -PRIORITY_HIGHEST
    return 1 if name == "cpus" else 0


def _problem_of_files(body: TasksBody) -> str:
    try:
        # The checks of the wire, so that everything that is accepted can be sent.
        for files in (body.inputs, *body.member_inputs):
            for file in files:
                _check_input(file)
        _check_outputs(body)
        _check_inputs(body)
        _check_folder(body)
    except CodecError as error:
        return str(error)
    return ""


def _check_input(file: InputBody) -> None:
    is_file = not file.link and not file.folder
    if not _is_unicode(file.name) or not _is_unicode(file.link):
        raise CodecError(f"input {printable(file.name)}: names must be UTF-8")
    if is_file and (len(file.sha256) != 2 * _HASH_BYTES or not set(file.sha256) <= _HEX_DIGITS):
        raise CodecError(f"input {file.name}: {file.sha256} is not a SHA-256")
    if not is_file and (file.sha256 or file.executable):
        raise CodecError(f"input {file.name}: a link or folder has no content")
    if file.name.count("/") >= _INPUT_DEPTH_LIMIT:
        shown = file.name[:_SHOWN_CHARACTERS]
        raise CodecError(f"an input may be in at most {_INPUT_DEPTH_LIMIT - 1} folders: {shown}…")
    check_kind(file.name, link_target=file.link, is_folder=file.folder, size_bytes=file.size)


def _check_inputs(body: TasksBody) -> None:
    """Check the names of inputs of each member in time linear in the body: shared inputs are checked once."""
    longest = max(map(_encoded_bytes, body.items), default=0)
    grown = longest * sum(name.count("{}") for name in body.outputs)
    shared_bytes = _description_bytes(body.inputs) + sum(map(entry_bytes, body.outputs)) + grown
    described(shared_bytes)
    shared = separate_paths(relative_path(file.name) for file in body.inputs)
    order = [path_order(name) for name in shared]
    for files in filter(None, body.member_inputs):
        described(shared_bytes + _description_bytes(files))
        own = [relative_path(file.name) for file in files]
        # A member's name can only conflict with its neighbors in the sorted list.
        places = {bisect_left(order, path_order(name)) for name in own}
        around = {place for right in places for place in (right - 1, right) if 0 <= place < len(shared)}
        separate_paths((*own, *(shared[place] for place in around)))


def _description_bytes(files: Iterable[InputBody]) -> int:
    return sum(entry_bytes(file.name, file.link) for file in files)


def _check_outputs(body: TasksBody) -> None:
    """Check the names of outputs, as given and as expanded for each member."""
    wrong = next((name for name in body.outputs if not _is_unicode(name)), None)
    if wrong is not None:
        raise CodecError(f"output {printable(wrong)}: names must be UTF-8")
    declared_names(body.outputs)
    templates = [name for name in body.outputs if "{}" in name]
    at_most(len(templates) * len(body.items), _OWN_OUTPUTS_LIMIT, what="outputs with {} of all tasks together")
    patterns = [name for name in body.outputs if "{}" not in name and is_pattern(name)]
    for item in body.items if templates else ():
        declared_names([name.replace("{}", item) for name in templates], others=patterns)


def _check_folder(body: TasksBody) -> None:
    """Check the folder in which a task starts, as given and as expanded for each member."""
    line(body.cwd, PATH_LIMIT_BYTES)
    if body.items and "{}" in body.cwd:
        line(body.cwd.replace("{}", max(body.items, key=_encoded_bytes)), PATH_LIMIT_BYTES)
        wrong = next(filter(has_control, body.items), None)
        if wrong is not None:
            raise CodecError(f"control characters in {wrong[:80]!r}")
    own = (body.cwd.replace("{}", item) for item in body.items if UP in item) if "{}" in body.cwd else ()
    if any(map(leads_above, (body.cwd, *own))):
        raise CodecError("`cwd` leads above the working folder of the task")


def _encoded_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _is_unicode(text: str) -> bool:
    # Clients represent bytes that are not UTF-8 by lone surrogates, which cannot be stored.
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _inputs_of(files: tuple[InputBody, ...]) -> tuple[InputFile, ...]:
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
