"""From a file of tasks to their submission: their inputs are uploaded, then all are submitted in one request."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from os import PathLike
from pathlib import Path
from typing import cast

from messiahs.client.connection import Document
from messiahs.client.inputs import KnownFiles, LocalContent
from messiahs.client.members import SINGLE, Members
from messiahs.client.module import ModuleClient
from messiahs.client.preparing import CheckedRequest, OpenArchives, checked_request, finished_submission, local_inputs
from messiahs.client.progress import OnProgress
from messiahs.client.submission import new_key
from messiahs.client.task_options import TaskOptions, checked_key
from messiahs.client.task_outputs import TaskOutput, is_known, later_output
from messiahs.client.uploading import upload
from messiahs.config.workflow.reading import Workflow, WorkflowTask, load_workflow
from messiahs.core.interface.dependencies import When
from messiahs.core.interface.limits import REQUEST_LIMIT_BYTES
from messiahs.errors import ClientError, PartRefusedError, UnknownRequestError


def submit_workflow(
    module: ModuleClient, path: str | PathLike[str], *, key: str | None, on_progress: OnProgress
) -> dict[str, str]:
    """Submit the tasks of a file, all or none, and return their ids by name, in the order of the submit.

    A `WorkflowError` has every problem with its line and column; then nothing was submitted.
    """
    workflow = load_workflow(Path(path))
    key = checked_key(key)
    is_repeated = partial(is_known, module, key, is_file=True)
    parts = _parts(module, workflow, on_progress=on_progress, is_repeated=is_repeated)
    size_bytes = len(json.dumps(parts))
    if size_bytes > REQUEST_LIMIT_BYTES:
        text = f"its tasks take {size_bytes} bytes in all, at most {REQUEST_LIMIT_BYTES}: an `array` is stored once"
        raise ClientError(f"{path}: {text}", code=ClientError.USAGE)
    try:
        ids = module.submit_workflow(parts, key=key or new_key())
    except PartRefusedError as error:
        raise workflow.error([(error.place, str(error))]) from error
    except UnknownRequestError as error:
        raise UnknownRequestError(f"this module takes no files of tasks: {error}") from error
    return dict(zip((task.name for task in workflow.tasks), ids, strict=True))


def _parts(
    module: ModuleClient, workflow: Workflow, *, on_progress: OnProgress, is_repeated: Callable[[], bool]
) -> list[Document]:
    known, refusals = KnownFiles(), list[tuple[int, str]]()
    contents: dict[str, LocalContent] = {}
    with ExitStack() as stack:
        archives = OpenArchives(stack, on_progress)
        requests = []
        for place, task in enumerate(workflow.tasks):
            try:
                request = _request_of(task, archives)
                prepared = local_inputs(request, on_progress=on_progress, known=known)
            except (ClientError, TypeError) as error:
                refusals.append((place, str(error)))
            else:
                contents |= prepared.contents
                requests.append((request, prepared))
        if refusals:
            raise workflow.error(refusals)
        if contents:
            upload(module, contents, on_progress=on_progress)
    parts = []
    for place, (task, (request, prepared)) in enumerate(zip(workflow.tasks, requests, strict=True)):
        try:
            document = finished_submission(module, request, prepared, is_repeated=is_repeated).document()
            within = _within(task)
        except ClientError as error:
            raise workflow.error([(place, str(error))]) from error
        del document["key"]
        parts.append({**document, **({"within": within} if within else {})})
    return parts


def _within(task: WorkflowTask) -> list[Document]:
    wanted: dict[int, list[Document]] = {}
    for place, name, to in task.outputs:
        one = later_output(TaskOutput(task="", name=name, to=to), members=task.members)
        wanted.setdefault(place, []).append({"name": one.name, "to": one.to})
    return [
        {"place": on, "when": when.value} | ({"outputs": wanted[on]} if when is When.OK and on in wanted else {})
        for on, when in task.within
    ]


def _request_of(task: WorkflowTask, archives: OpenArchives) -> CheckedRequest:
    members = SINGLE
    if task.numbers is not None:
        members = Members.of_array(task.numbers)
    elif task.lines:
        members = Members.of_items(task.lines)
    return checked_request(task.command, cast("TaskOptions", task.options), members, archives=archives)
