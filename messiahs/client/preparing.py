"""From what a user asks for to a submission: the options of a task are read, and its files are hashed and uploaded."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from os import PathLike, fspath
from typing import TypedDict

from messiahs.client.inputs import PLACEHOLDER, PreparedInputs, Source, prepare_inputs, source_of
from messiahs.client.members import SINGLE, Members
from messiahs.client.module import ModuleClient
from messiahs.client.names import checked_name
from messiahs.client.progress import OnProgress, silent
from messiahs.client.submission import Submission, new_key
from messiahs.client.uploading import upload
from messiahs.config.quantities import duration_seconds, size_bytes
from messiahs.core.interface.dependencies import When
from messiahs.core.model.attributes import Value
from messiahs.core.model.counted import GPUS, requirement_for
from messiahs.core.model.images import IMAGE, IMAGE_INPUT, IMAGE_REQUIREMENT
from messiahs.errors import ClientError, MessiahsError


class TaskOptions(TypedDict, total=False):
    """What a user can say about a task beside its command; what is left out is as on the command line.

    Sizes are bytes or a text such as `"8GiB"`, times are seconds or a text such as `"15min"`. `time` is the longest run
    time, `deadline` the longest wait. An input is a path, or `"SRC:DST"` with its name in the task's working directory.
    `attributes` go into the task's description (TDV), and `require` is a predicate on the machine. `uses` has the
    number of counted things by kind. Without `waits` the task is denied if no machine has room now. A repeated `key`
    submits nothing a second time. In an array `{}` in `command`, `inputs`, `outputs`, `env`, `attributes` and `name` is
    replaced by the member's item. `after`, `after_any` and `after_ok` have ids of tasks or arrays that must have
    started, ended, or ended with exit code 0 before.
    """

    mem: int | str | None
    disk: int | str | None
    cpus: int | None
    time: int | str | None
    deadline: int | str | None
    image: str | PathLike[str] | None
    inputs: Sequence[str | PathLike[str] | Source]
    outputs: Sequence[str]
    env: Mapping[str, str]
    attributes: Mapping[str, Value]
    gpus: int | None
    uses: Mapping[str, int]
    name: str
    key: str
    require: str
    retries: int
    priority: int | None
    waits: bool
    after: Sequence[str]
    after_any: Sequence[str]
    after_ok: Sequence[str]


def check_options(options: TaskOptions) -> None:
    """Raise `TypeError` for an option that does not exist, and for a text in the place of several."""
    unknown = next((name for name in options if name not in TaskOptions.__annotations__), None)
    if unknown is not None:
        raise TypeError(f"a task has no option `{unknown}`; those are {', '.join(TaskOptions.__annotations__)}")
    for name in ("inputs", "outputs", "after", "after_any", "after_ok"):
        if isinstance(options.get(name), str):
            raise TypeError(f"`{name}` is a list of texts, not one text")


def prepared_submission(
    module: ModuleClient,
    command: Sequence[str],
    *,
    options: TaskOptions,
    members: Members = SINGLE,
    on_progress: OnProgress = silent,
) -> Submission:
    """Hash and upload the inputs and return the submission, which is not yet submitted.

    Safe to repeat after an interruption: uploaded contents are kept and not uploaded again. Raises `ClientError` for
    files that cannot be read or named, and with the code 2 for options that are no quantities; `TypeError` for others.
    """
    check_options(options)
    if isinstance(command, str):
        raise TypeError('a command is a list of words: ["sh", "-c", text] runs a text in a shell')
    for output in options.get("outputs", ()):
        texts = members.texts() if PLACEHOLDER in output else ()
        for name in [output.replace(PLACEHOLDER, text) for text in texts] or [output]:
            checked_name(name)
    sources = [_source(one) for one in options.get("inputs", ())]
    with _image_of(options.get("image")) as image:
        items = members.texts() if sources else ()
        prepared = prepare_inputs(sources if image is None else (*sources, image), items=items, on_progress=on_progress)
        if prepared.contents:
            upload(module, prepared.contents, on_progress=on_progress)
    return _submission_of(tuple(command), options, members, prepared)


def _source(given: str | PathLike[str] | Source) -> Source:
    match given:
        case Source():
            return given
        case str():
            return source_of(given)
        case _:
            return Source(path=fspath(given))


def _image_of(image: str | PathLike[str] | None) -> AbstractContextManager[Source | None]:
    if image is None:
        return nullcontext()
    from messiahs.client.images import image_source  # noqa: PLC0415 - most commands need no archives

    return image_source(fspath(image))


def _submission_of(
    command: tuple[str, ...], options: TaskOptions, members: Members, prepared: PreparedInputs
) -> Submission:
    """Build the submission; options that were not given are not in the TDV.

    The requirement demands machines that assign what a task uses and unpack its image. A module adds the latter, too,
    but one of an earlier release does not.
    """
    from messiahs.language.predicate.joining import joined  # noqa: PLC0415 - other commands start faster without lark

    wanted = {
        "mem": _quantity(options.get("mem"), size_bytes),
        "disk": _quantity(options.get("disk"), size_bytes),
        "cpus": options.get("cpus"),
        "est_time": _quantity(options.get("time"), duration_seconds),
        "priority": options.get("priority"),
    }
    gpus = options.get("gpus")
    uses = {**options.get("uses", {}), **({} if gpus is None else {GPUS: gpus})}
    images = {IMAGE: _hash_of_image(prepared)} if options.get("image") is not None else {}
    requirement = joined(options.get("require", ""), requirement_for(sorted(uses.items())))
    return Submission(
        argv=command,
        env=dict(options.get("env", {})),
        tdv={
            **options.get("attributes", {}),
            **uses,
            **images,
            **{name: value for name, value in wanted.items() if value is not None},
        },
        requirement=joined(requirement, IMAGE_REQUIREMENT if images else ""),
        members=members.count,
        name=options.get("name", ""),
        retries=options.get("retries", 0),
        waits=options.get("waits", True),
        deadline_seconds=_quantity(options.get("deadline"), duration_seconds),
        inputs=prepared.inputs,
        outputs=tuple(options.get("outputs", ())),
        items=members.items,
        member_inputs=prepared.member_inputs,
        after=_conditions(options),
        key=options.get("key") or new_key(),
    )


def _conditions(options: TaskOptions) -> tuple[tuple[str, str], ...]:
    named = {
        When.STARTED: options.get("after", ()),
        When.ENDED: options.get("after_any", ()),
        When.OK: options.get("after_ok", ()),
    }
    return tuple((task, when.value) for when, tasks in named.items() for task in tasks)


def _quantity(given: int | str | None, read: Callable[[str], int]) -> int | None:
    """Return a quantity in bytes or seconds, which may be a text with a unit; a `ClientError` says how to write it."""
    if not isinstance(given, str):
        return given
    try:
        return read(given)
    except MessiahsError as error:
        raise ClientError(str(error), code=ClientError.USAGE) from error


def _hash_of_image(prepared: PreparedInputs) -> str:
    (image,) = (one for one in prepared.inputs if one.name == IMAGE_INPUT)
    return image.sha256
