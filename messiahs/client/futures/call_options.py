"""The options of tasks that run calls: some of those of other tasks would do nothing, or harm."""

from collections.abc import Iterator
from typing import Final

from messiahs.client.futures.runner import CALLS, RESULTS
from messiahs.client.inputs import Source
from messiahs.client.submission import Submission
from messiahs.client.task_options import CheckedOptions, TaskOptions, checked_options
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.errors import ClientError

RUNNER: Final = "messiahs-calls.pyz"
_RESERVED: Final = (CALLS, RESULTS, RUNNER)
_REFUSED: Final = {
    "key": "each task of calls is another one",
    "notify": "calls are awaited in the script that makes them",
    "outputs": "nobody learns the ids of tasks of calls: return values, or submit a command",
}


def checked_call_options(options: TaskOptions) -> CheckedOptions:
    """Return what is stated, as `checked_options`; raises also for what has no meaning for calls."""
    for name, why in _REFUSED.items():
        if options.get(name):
            raise TypeError(f"an executor has no option `{name}`: {why}")
    checked = checked_options(options)
    option = next((name for name, text in _texts_in(checked) if PLACEHOLDER in text), None)
    if option is not None:
        raise ClientError(f"`{option}` has `{{}}`, and calls have no item of an array", code=ClientError.USAGE)
    return checked


def check_inputs(submission: Submission) -> None:
    """Raise `ClientError` for an input in the place of a file of the calls."""
    taken = next((one.name for one in submission.inputs if one.name.partition("/")[0] in _RESERVED), None)
    if taken is not None:
        raise ClientError(
            f"an input of calls cannot be `{taken}`: {', '.join(_RESERVED)} are files of their tasks",
            code=ClientError.USAGE,
        )


def _texts_in(options: CheckedOptions) -> Iterator[tuple[str, str]]:
    """Yield the texts in which an array has its items, with the names of their options."""
    for source in options.get("inputs", ()):
        texts = (source.path, source.name) if isinstance(source, Source) else (str(source),)
        yield from (("inputs", text) for text in texts)
    yield from (("env", value) for value in options.get("env", {}).values())
    yield from (("attributes", value) for value in options.get("attributes", {}).values() if isinstance(value, str))
    yield "name", options.get("name", "")
