"""A file of tasks as the workload of a simulation: what `messiahs submit --file` submits; no file is read."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from messiahs.config.task_descriptions import description_of, requirement_of, uses_of
from messiahs.config.workflow.reading import Workflow, WorkflowTask
from messiahs.core.interface.dependencies import WantedOutput
from messiahs.core.interface.events import AnswerTo, Submitted, WorkflowSubmitted
from messiahs.core.interface.messages import Command
from messiahs.core.model.attributes import Value
from messiahs.core.model.descriptions import TDV, sorted_pairs
from messiahs.core.model.ids import ClientKey, SystemId
from messiahs.core.model.instants import SECOND
from messiahs.sim.load.input_sizes import described, inputs_in

_KEY: Final = ClientKey("workflow")
_ELSEWHERE = ("after", "after_any", "after_ok", "after_each")


def workflow_at(workflow: Workflow, origin: SystemId, answer_to: AnswerTo, /) -> WorkflowSubmitted:
    """Return the submit of a workflow at a system; a `WorkflowError` for tasks that wait for others than its own."""
    waiting = [place for place, task in enumerate(workflow.tasks) if any(name in task.options for name in _ELSEWHERE)]
    if waiting:
        text = "there are no other tasks in the simulation for which it could wait"
        raise workflow.error((place, text) for place in waiting)
    return WorkflowSubmitted(
        answer_to=answer_to,
        key=_KEY,
        submissions=tuple(_submitted(task, origin) for task in workflow.tasks),
        within=tuple(tuple((on, when.value) for on, when in task.within) for task in workflow.tasks),
        outputs=tuple(
            tuple((on, WantedOutput(name=name, to=to.strip("/") or name)) for on, name, to in task.outputs)
            for task in workflow.tasks
        ),
    )


def tasks_in(workflow: Workflow) -> int:
    """Return the number of tasks, where each member of an array is one."""
    return sum(max(1, task.members) for task in workflow.tasks)


def _submitted(task: WorkflowTask, origin: SystemId) -> Submitted:
    options = task.options
    uses = uses_of(cast("Mapping[str, int]", options.get("uses", {})), cast("int | None", options.get("gpus")))
    attributes = cast("Mapping[str, Value]", options.get("attributes", {}))
    stated = description_of(options, attributes=attributes, uses=uses)
    deadline = cast("int | None", options.get("deadline"))
    shared, own = inputs_in(cast("Sequence[str]", options.get("inputs", ())), task.items)
    tdv = TDV(sorted_pairs({"cpus": 1, **stated, "origin": origin, "user": "simulated"}))
    return Submitted(
        answer_to=AnswerTo(0),
        key=_KEY,
        tdv=described(tdv, shared, own=own),
        requirement=requirement_of(str(options.get("require", "")), uses),
        command=Command(argv=task.command, inputs=shared),
        members=task.members,
        member_inputs=own,
        name=task.name,
        retries=cast("int", options.get("retries", 0)),
        waits=options.get("waits") is not False,
        deadline_ns=None if deadline is None else deadline * SECOND,
        at_once=(task.numbers.at_once or 0) if task.numbers is not None else 0,
        items=task.items,
    )
