"""From what a user asks for to a submission: the options of a task are read, and its files are hashed and uploaded."""

import os
import platform
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING

from messiahs.client.connection import Document
from messiahs.client.inputs import KnownFiles, PreparedInputs, Source, prepare_inputs, source_of
from messiahs.client.members import SINGLE, Members
from messiahs.client.module import ModuleClient
from messiahs.client.programs import requirement_of_program
from messiahs.client.progress import OnProgress, silent
from messiahs.client.submission import InputFile, Submission, new_key
from messiahs.client.task_options import (
    CheckedOptions,
    TaskOptions,
    checked_command,
    checked_inputs,
    checked_options,
)
from messiahs.client.task_outputs import TaskOutput, is_known, task_output_of, with_task_outputs
from messiahs.client.uploading import upload
from messiahs.config.task_descriptions import description_of, requirement_of, uses_of
from messiahs.config.task_names import check_folder, checked_name
from messiahs.core.interface.dependencies import When
from messiahs.core.model.array_index import ARRAY_INDEX, PLACEHOLDER
from messiahs.core.model.descriptions import is_valid_value
from messiahs.core.model.environment_modules import ENV_MODULES, ENV_MODULES_REQUIREMENT, is_module_name
from messiahs.core.model.environments import ENVIRONMENT, ENVIRONMENT_INPUT, ENVIRONMENT_REQUIREMENT, INTERPRETER
from messiahs.core.model.images import IMAGE, IMAGE_INPUT, IMAGE_REQUIREMENT
from messiahs.core.model.texts import printable
from messiahs.core.model.trace_context import TRACEPARENT, context_in
from messiahs.core.model.webhooks import problem_of
from messiahs.errors import ClientError
from messiahs.language.predicate.joining import joined

if TYPE_CHECKING:
    from messiahs.client.environments import PackedEnvironment


def prepared_submission(
    module: ModuleClient,
    command: Sequence[str | PathLike[str]],
    *,
    options: TaskOptions | CheckedOptions,
    members: Members = SINGLE,
    on_progress: OnProgress = silent,
) -> Submission:
    """Hash and upload the inputs and return the submission, which is not yet submitted.

    Safe to repeat after an interruption: uploaded contents are kept and not uploaded again. Raises `ClientError` for
    files that cannot be read or named, and what `checked_options` does for options.
    """
    with ExitStack() as stack:
        request = checked_request(command, options, members, archives=OpenArchives(stack, on_progress))
        prepared = local_inputs(request, on_progress=on_progress)
        if prepared.contents:
            upload(module, prepared.contents, on_progress=on_progress)
        is_repeated = partial(is_known, module, request.options.get("key"))
        return finished_submission(module, request, prepared, is_repeated=is_repeated)


def planned_submission(
    command: Sequence[str | PathLike[str]],
    *,
    options: TaskOptions,
    members: Members = SINGLE,
    on_progress: OnProgress = silent,
) -> Submission:
    """Hash the inputs and return the submission of a plan: nothing is uploaded, and no output of a task is kept.

    Tasks of which outputs are wanted only have to end with exit code 0. Raises what `prepared_submission` does.
    """
    with ExitStack() as stack:
        request = checked_request(command, options, members, archives=OpenArchives(stack, on_progress))
        submission = _submission_of(request, local_inputs(request, on_progress=on_progress))
        taken = dict.fromkeys((output.task, When.OK.value) for output in request.outputs)
        return replace(submission, after=(*submission.after, *taken))


@dataclass(slots=True)
class OpenArchives:
    """The images and environments of tasks, each once (mutable); temporary archives are removed with the stack."""

    _stack: ExitStack
    _on_progress: OnProgress
    _images: dict[str, Source] = field(default_factory=dict)
    _environments: dict[tuple[str, str], "PackedEnvironment"] = field(default_factory=dict)

    def image_of(self, image: str) -> Source:
        """Return the input that brings an image to its task."""
        from messiahs.client.images import image_source  # noqa: PLC0415 - most commands need no archives

        if image not in self._images:
            self._images[image] = self._stack.enter_context(image_source(image))
        return self._images[image]

    def environment_of(self, options: CheckedOptions) -> "PackedEnvironment | None":
        """Return the environment that a task brings, packed; None if it brings none."""
        folder, named = options.get("venv"), options.get("conda")
        if folder is None and named is None:
            return None
        if sum(each is not None for each in (folder, named, options.get("image"))) > 1:
            raise ClientError("a task has one of an image, a venv and a conda environment", code=ClientError.USAGE)
        from messiahs.client.environments import packed_conda, packed_venv  # noqa: PLC0415 - as above

        key = ("conda", str(named)) if folder is None else ("venv", fspath(folder))
        if key not in self._environments:
            pack = packed_conda if folder is None else packed_venv
            self._environments[key] = pack(key[1], self._on_progress)
        return self._environments[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRequest:
    """What a user asks for, checked as far as that needs neither its inputs nor a module."""

    argv: tuple[str, ...]
    options: CheckedOptions
    members: Members
    sources: tuple[Source, ...]
    outputs: tuple[TaskOutput, ...]
    environment: "PackedEnvironment | None"

    @property
    def items(self) -> tuple[str, ...]:
        """What stands for `{}` in the sources."""
        return self.members.texts() if self.sources else ()


def checked_request(
    command: Sequence[str | PathLike[str]],
    options: TaskOptions | CheckedOptions,
    members: Members,
    /,
    *,
    archives: OpenArchives,
) -> CheckedRequest:
    """Check options and names; raises `ClientError`, and what `checked_options` does."""
    checked = checked_options(options)
    argv = checked_command(command)
    for output in checked.get("outputs", ()):
        texts = members.texts() if PLACEHOLDER in output else ()
        for name in [output.replace(PLACEHOLDER, text) for text in texts] or [output]:
            checked_name(name)
    _check_folder(checked, members)
    if (notify := checked.get("notify")) is not None and (problem := problem_of(notify)):
        raise ClientError(problem, code=ClientError.USAGE)
    given = checked.get("inputs", ())
    outputs = [found for one in given if isinstance(one, str) and (found := task_output_of(one)) is not None]
    sources = [_source(one) for one in given if not isinstance(one, str) or task_output_of(one) is None]
    image = checked.get("image")
    environment = archives.environment_of(checked)
    if image is not None:
        sources.append(archives.image_of(fspath(image)))
    return CheckedRequest(
        argv=argv,
        options=checked,
        members=members,
        sources=tuple(sources),
        outputs=tuple(outputs),
        environment=environment,
    )


def _check_folder(options: CheckedOptions, members: Members) -> None:
    folder = options.get("cwd")
    if folder is None:
        return
    texts = members.texts() if PLACEHOLDER in folder else ()
    for place in [folder.replace(PLACEHOLDER, text) for text in texts] or [folder]:
        check_folder(place)


def local_inputs(
    request: CheckedRequest, *, on_progress: OnProgress, known: KnownFiles | None = None
) -> PreparedInputs:
    """Find and hash the files of a request (`prepare_inputs`), to which its environment is added."""
    prepared = prepare_inputs(request.sources, items=request.items, on_progress=on_progress, known=known)
    return prepared if request.environment is None else _with_environment(prepared, request.environment)


def finished_submission(
    module: ModuleClient, request: CheckedRequest, prepared: PreparedInputs, /, *, is_repeated: Callable[[], bool]
) -> Submission:
    """Return the submission with its inputs, to which outputs of other tasks are added (`with_task_outputs`)."""
    if request.outputs:
        outputs, members = request.outputs, request.members
        prepared = with_task_outputs(module, prepared, outputs, members=members, is_repeated=is_repeated)
    return _submission_of(request, prepared)


def retry_at(
    module: ModuleClient,
    task: str,
    *,
    killed: bool,
    inputs: Iterable[str | PathLike[str]],
    on_progress: OnProgress,
) -> int:
    """Run a task again at its module, as `Client.retry` does; return how many tasks run again."""
    files = _uploaded_inputs(module, inputs, on_progress=on_progress)
    asked: Document = {"inputs": [file.document() for file in files]} if files else {}
    return module.retry(task, asked | ({"killed": True} if killed else {}))


def _uploaded_inputs(
    module: ModuleClient, given: Iterable[str | PathLike[str]], *, on_progress: OnProgress
) -> tuple[InputFile, ...]:
    """Hash and upload files for tasks that are there already; raises `ClientError`."""
    sources = list[Source]()
    for one in checked_inputs(given):
        if isinstance(one, str) and task_output_of(one) is not None:
            raise ClientError(f"{one}: fetch it, and give the file", code=ClientError.USAGE)
        sources.append(_source(one))
    if not sources:
        return ()
    prepared = prepare_inputs(sources, on_progress=on_progress)
    upload(module, prepared.contents, on_progress=on_progress)
    return prepared.inputs


def _source(given: str | PathLike[str] | Source) -> Source:
    match given:
        case Source():
            return given
        case str():
            return source_of(given)
        case _:
            return Source(path=fspath(given))


def _with_environment(prepared: PreparedInputs, environment: "PackedEnvironment") -> PreparedInputs:
    content = environment.content
    brought = InputFile(name=ENVIRONMENT_INPUT, sha256=content.sha256, size_bytes=content.size_bytes)
    contents = {**prepared.contents, content.sha256: content}
    return replace(prepared, inputs=(*prepared.inputs, brought), contents=contents)


def _submission_of(request: CheckedRequest, prepared: PreparedInputs) -> Submission:
    """Build the submission; options that were not given are not in the TDV.

    The requirement demands machines that assign what a task uses, and unpack its image or environment. A module adds
    the latter, too, but one of an earlier release does not.
    """
    options, environment = request.options, request.environment
    uses = uses_of(options.get("uses", {}), options.get("gpus"))
    archives = {IMAGE: _hash_of_image(prepared)} if options.get("image") is not None else {}
    unpacked = IMAGE_REQUIREMENT if archives else ""
    requirement = requirement_of(options.get("require", ""), uses)
    if environment is not None:
        archives, unpacked = _attributes_of(environment), ENVIRONMENT_REQUIREMENT
        requirement = joined(requirement, f'$arch eq "{platform.machine()}"')
    requirement = joined(requirement, requirement_of_program(request.argv[0], prepared.archs, stated=requirement))
    stated = options.get("env", {})
    trace = {} if TRACEPARENT in stated else context_in(os.environ)
    env = {name: value for name, value in {**trace, **stated}.items() if name != ARRAY_INDEX}
    if modules := _modules_of(options):
        env[ENV_MODULES] = modules
        requirement = joined(requirement, ENV_MODULES_REQUIREMENT)
    return Submission(
        argv=request.argv,
        env=env | ({ARRAY_INDEX: PLACEHOLDER} if request.members.are_numbers else {}),
        tdv=description_of(options, attributes={**options.get("attributes", {}), **archives}, uses=uses),
        requirement=joined(requirement, unpacked),
        members=request.members.count,
        name=options.get("name", ""),
        retries=options.get("retries", 0),
        waits=options.get("waits", True),
        deadline_seconds=options.get("deadline"),
        inputs=prepared.inputs,
        outputs=tuple(options.get("outputs", ())),
        cwd=options.get("cwd", ""),
        items=request.members.items,
        at_once=request.members.at_once,
        member_inputs=prepared.member_inputs,
        after=_conditions(options),
        wanted=prepared.wanted,
        notify=options.get("notify", ""),
        key=options.get("key") or new_key(),
    )


def _conditions(options: CheckedOptions) -> tuple[tuple[str, str], ...]:
    named = {
        When.STARTED: options.get("after", ()),
        When.ENDED: options.get("after_any", ()),
        When.OK: options.get("after_ok", ()),
        When.EACH: options.get("after_each", ()),
    }
    return tuple((task, when.value) for when, tasks in named.items() for task in tasks)


def _modules_of(options: CheckedOptions) -> str:
    names = options.get("env_modules", ())
    wrong = next((name for name in names if not is_module_name(name)), None)
    if wrong is not None:
        raise ClientError(f"`{printable(wrong)}` is not the name of an environment module", code=ClientError.USAGE)
    return " ".join(names)


def _attributes_of(environment: "PackedEnvironment") -> dict[str, str]:
    stated = {ENVIRONMENT: environment.content.sha256}
    # A machine finds out about one that is too long for an attribute when it starts the task.
    if environment.interpreter and is_valid_value(environment.interpreter):
        stated[INTERPRETER] = environment.interpreter
    return stated


def _hash_of_image(prepared: PreparedInputs) -> str:
    (image,) = (one for one in prepared.inputs if one.name == IMAGE_INPUT)
    return image.sha256
