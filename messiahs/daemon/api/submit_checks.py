"""What is wrong with a submit: lengths and counts are judged first, then values, in slices."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeVar

import msgspec

from messiahs.core.interface.dependencies import DEPENDENCY_LIMIT, EACH_LIMIT, When
from messiahs.core.interface.limits import INPUT_LIMIT_BYTES, RETRY_LIMIT
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.attributes import (
    EXTENSION_LIMIT,
    PRIORITY_HIGHEST,
    TASK_ATTRIBUTES,
    WELL_KNOWN,
    Kind,
    Scope,
    Value,
)
from messiahs.core.model.descriptions import INPUT_SIZE, is_valid_value
from messiahs.core.model.environments import ENVIRONMENT, ENVIRONMENT_INPUT
from messiahs.core.model.folder_links import UP, leads_above
from messiahs.core.model.images import IMAGE, IMAGE_INPUT
from messiahs.core.model.instants import MICROSECOND
from messiahs.core.model.output_names import is_pattern
from messiahs.core.model.task_files import InputFile, entry_bytes
from messiahs.core.model.task_limits import size_text
from messiahs.core.model.texts import has_control, printable
from messiahs.core.origin.submission import COMMAND_LIMIT_BYTES, COMMAND_TOO_LONG
from messiahs.daemon.api.json_slices import Steps
from messiahs.daemon.api.submit_body import InputBody, RetryBody, TasksBody, inputs_of
from messiahs.daemon.api.terminal_body import why_no_terminal
from messiahs.errors import CodecError
from messiahs.wire.limits import (
    FILE_LIMIT,
    PATH_LIMIT_BYTES,
    at_most,
    bounded_length,
    check_kind,
    declared_names,
    described,
    line,
    path_order,
    relative_path,
    separate_paths,
)

TOO_MANY_DEPENDENCIES = f"a task waits for at most {DEPENDENCY_LIMIT} others, {EACH_LIMIT} of them with --after-each"
ONLY_OF_GOOD_ENDS = "outputs are taken only of tasks that have to end with exit code 0 (`ok`)"
_KEY_LIMIT = 64
_SHOWN_CHARACTERS = 200
_MODULES_OWN = (INPUT_SIZE, "origin", "user")
_PRIORITY = "priority"
_ABOVE_ZERO = {"mem": "memory", "disk": "disk", "est_time": "time"}
"""Needs that are left out when a task states none: a need of 0 would mean the same, and read as a limit."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_KNOWN = {**{each.name: each for each in WELL_KNOWN if each.scope is Scope.TASK}, **TASK_ATTRIBUTES}
_HASH_BYTES = 32
_HEX_DIGITS = frozenset("0123456789abcdef")
_NAME_LIMIT = 256
_INPUT_DEPTH_LIMIT = 256
"""Maximum number of parts of an input's name: its folders are created where the task runs."""
_OWN_OUTPUTS_LIMIT = 1 << 22
"""Limit for all members together, because checking each name takes time while other requests wait."""
_DEADLINE_LIMIT_YEARS = 10
_SECONDS_PER_YEAR = 366 * 24 * 3_600
_TOO_MANY_ATTRIBUTES = f"a task may state at most {EXTENSION_LIMIT} attributes of its own"
_NOT_UNICODE = "the command, its environment, folder, name and items must be UTF-8"
_ABOVE = "`cwd` leads above the working folder of the task"
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_PIECE: Final = 256
"""Words or files that are looked at in one slice."""
_WORD_NS, _FILE_NS = 1 * MICROSECOND, 4 * MICROSECOND
"""What looking at one of them is expected to cost."""

T = TypeVar("T")


def replacing(body: RetryBody, row: SubmissionRow, /, *, member: int) -> Steps[tuple[InputFile, ...] | str]:
    """Return the files that replace inputs of a submission or one of its members, or why they cannot."""
    shared = {file.name for file in row.command.inputs if file.is_file} - {IMAGE_INPUT, ENVIRONMENT_INPUT}
    own: Counter[str] = Counter()
    for files in row.member_inputs[member - 1 : member] if member else row.member_inputs if body.inputs else ():
        yield len(files) * _WORD_NS
        own.update(file.name for file in files if file.is_file)
    asked = f"{row.id}.{member}" if member else f"{row.id}"
    for file in body.inputs:
        yield _FILE_NS
        try:
            _check_input(file)
        except CodecError as error:
            return str(error)
        if member and file.name in shared:
            return f"the members of {row.id} share {file.name}: give a new one for all of it, {row.id}"
        if own[file.name] > 1:
            return (
                f"each member of {row.id} has its own {file.name}: give a new one for one of them, such as {row.id}.1"
            )
        if file.name not in shared and not own[file.name]:
            return f"{file.name} is no input of {asked}: a retry replaces the content of files that it had"
        if file.link or file.folder:
            return f"{file.name} of {row.id} is a file: a link or a folder cannot replace it"
    return inputs_of(body.inputs)


def problem_of_key(key: str) -> str:
    """Return what is wrong with the key that a client chose; empty if it is valid."""
    return "" if 1 <= len(key) <= _KEY_LIMIT else "the key of a submit must have 1 to 64 characters"


def checking(body: TasksBody, *, taken: Sequence[str] = ()) -> Steps[str]:
    """Return what is wrong with a body, but for its key; empty if it is valid.

    The names of inputs that outputs of others become, in the body or `taken`, are checked as those of empty folders.
    """
    to = [*taken, *(output.to for each in body.after for output in each.outputs)]
    if to:
        later = tuple(InputBody(name=name, folder=True) for name in to)
        body = msgspec.structs.replace(body, inputs=(*body.inputs, *later))
    return (
        _problem_of_limits(body)
        or _problem_of_tdv(body.tdv)
        or (yield from _checking_files(body))
        or _problem_of_archives(body)
        or (yield from _checking_texts(body))
    )


def _checking_texts(body: TasksBody) -> Steps[str]:
    words = (*body.argv, *body.env, *body.env.values())
    for piece in (*_pieces(words), *_pieces(body.items)):
        yield len(piece) * _WORD_NS
        text = "".join(piece)
        if "\0" in text:
            return "a NUL byte cannot be passed to a program"
        if not _is_unicode(text):
            return _NOT_UNICODE
    if not all(map(_is_unicode, (body.name, body.cwd, body.requirement))):
        return _NOT_UNICODE
    if has_control(body.name):
        return "the name of a task must not contain control characters"
    if body.stdin and body.members:
        return "an array cannot take standard input"
    if body.terminal is not None and (body.members or body.retries):
        return why_no_terminal(members=body.members)
    if any(not name or "=" in name for name in body.env):
        return "the name of an environment variable is empty or contains ="
    return ""


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
    if any(each.outputs and each.when != When.OK for each in body.after):
        return ONLY_OF_GOOD_ENDS
    if body.retries > RETRY_LIMIT:
        return f"a task can be retried at most {RETRY_LIMIT} times"
    if 4 * (len(body.argv) + 2 * len(body.env)) > COMMAND_LIMIT_BYTES:
        # The core counts the bytes of its words, too.
        return COMMAND_TOO_LONG
    furthest_s = _DEADLINE_LIMIT_YEARS * _SECONDS_PER_YEAR
    if body.deadline_s is not None and body.deadline_s > furthest_s:
        return f"a deadline may be at most {furthest_s} s ({_DEADLINE_LIMIT_YEARS} years) away"
    return ""


def _problem_of_tdv(tdv: Mapping[str, Value]) -> str:
    if len(tdv) > len(TASK_ATTRIBUTES) + EXTENSION_LIMIT:
        return _TOO_MANY_ATTRIBUTES
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
        return _TOO_MANY_ATTRIBUTES
    return ""


def _least(name: str) -> int:
    if name == _PRIORITY:
        return -PRIORITY_HIGHEST
    return 1 if name == "cpus" else 0


def _checking_files(body: TasksBody) -> Steps[str]:
    try:
        # The checks of the wire, so that everything that is accepted can be sent.
        at_most(len(body.outputs), FILE_LIMIT, what="outputs")
        shared_bytes = yield from _measuring(body)
        yield from _checking_kinds(body)
        yield from _checking_outputs(body)
        yield from _checking_inputs(body, shared_bytes)
        yield from _checking_folder(body)
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


def _measuring(body: TasksBody) -> Steps[int]:
    """Return the length of the description of what all members share, which is not too long."""
    shared_bytes = longest = 0
    for files in _pieces(body.inputs):
        yield len(files) * _WORD_NS
        shared_bytes += _description_bytes(files)
    for items in _pieces(body.items):
        yield len(items) * _WORD_NS
        longest = max(longest, *map(_encoded_bytes, items))
    grown = longest * sum(name.count(PLACEHOLDER) for name in body.outputs)
    shared_bytes += sum(map(entry_bytes, body.outputs)) + grown
    described(shared_bytes)
    if PLACEHOLDER in body.cwd:
        # Before it is written out.
        bounded_length(
            _encoded_bytes(body.cwd) + body.cwd.count(PLACEHOLDER) * max(0, longest - len(PLACEHOLDER)),
            PATH_LIMIT_BYTES,
        )
    return shared_bytes


def _checking_kinds(body: TasksBody) -> Steps[None]:
    """Check each input, and that no task has more of them than machines take."""
    disk = body.tdv.get("disk")
    limit = max(INPUT_LIMIT_BYTES, disk if isinstance(disk, int) else 0)
    shared = yield from _checked_sizes(body.inputs)
    shared_bytes = sum(shared.values())
    for files in chain(((),), filter(None, body.member_inputs)):
        own = yield from _checked_sizes(files)
        total = shared_bytes + sum(size for sha256, size in own.items() if sha256 not in shared)
        if total > limit:
            raise CodecError(
                f"the inputs of a task take {size_text(total)}: machines take at most {size_text(limit)} of one that "
                "does not state more with --disk"
            )


def _checked_sizes(files: Sequence[InputBody]) -> Steps[dict[str, int]]:
    """Check each of some inputs, and return the sizes of different ones."""
    sizes: dict[str, int] = {}
    for piece in _pieces(files):
        yield len(piece) * _FILE_NS
        for file in piece:
            _check_input(file)
            sizes[file.sha256] = file.size
    return sizes


def _checking_inputs(body: TasksBody, shared_bytes: int) -> Steps[None]:
    """Check the names of inputs of each member in time linear in the body: shared inputs are checked once."""
    shared = separate_paths(relative_path(file.name) for file in body.inputs)
    order = [path_order(name) for name in shared]
    for files in filter(None, body.member_inputs):
        described(shared_bytes + _description_bytes(files))
        yield len(files) * _FILE_NS
        own = [relative_path(file.name) for file in files]
        # A member's name can only conflict with its neighbors in the sorted list.
        places = {bisect_left(order, path_order(name)) for name in own}
        around = {place for right in places for place in (right - 1, right) if 0 <= place < len(shared)}
        separate_paths((*own, *(shared[place] for place in around)))


def _description_bytes(files: Iterable[InputBody]) -> int:
    return sum(entry_bytes(file.name, file.link) for file in files)


def _checking_outputs(body: TasksBody) -> Steps[None]:
    """Check the names of outputs, as given and as expanded for each member."""
    wrong = next((name for name in body.outputs if not _is_unicode(name)), None)
    if wrong is not None:
        raise CodecError(f"output {printable(wrong)}: names must be UTF-8")
    declared_names(body.outputs)
    templates = [name for name in body.outputs if PLACEHOLDER in name]
    at_most(len(templates) * len(body.items), _OWN_OUTPUTS_LIMIT, what="outputs with {} of all tasks together")
    patterns = [name for name in body.outputs if PLACEHOLDER not in name and is_pattern(name)]
    for item in body.items if templates else ():
        yield len(templates) * _FILE_NS
        declared_names([name.replace(PLACEHOLDER, item) for name in templates], others=patterns)


def _checking_folder(body: TasksBody) -> Steps[None]:
    """Check the folder in which a task starts, as given and as expanded for each member."""
    line(body.cwd, PATH_LIMIT_BYTES)
    if leads_above(body.cwd):
        raise CodecError(_ABOVE)
    for items in _pieces(body.items if PLACEHOLDER in body.cwd else ()):
        yield len(items) * _WORD_NS
        wrong = next(filter(has_control, items), None)
        if wrong is not None:
            raise CodecError(f"control characters in {wrong[:80]!r}")
        if any(leads_above(body.cwd.replace(PLACEHOLDER, item)) for item in items if UP in item):
            raise CodecError(_ABOVE)


def _pieces(those: Sequence[T]) -> Iterator[Sequence[T]]:
    return (those[start : start + _PIECE] for start in range(0, len(those), _PIECE))


def _encoded_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _is_unicode(text: str) -> bool:
    # Clients represent bytes that are not UTF-8 by lone surrogates, which cannot be stored.
    return _SURROGATES.search(text) is None
