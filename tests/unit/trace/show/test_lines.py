"""Events as lines of text."""

from messiahs.core.interface.events import AnswerTo, WorkflowSubmitted
from messiahs.trace.show.lines import event_text
from tests.unit.core.origin.test_workflows import KEY, part
from tests.unit.core.rig import ME


def test_a_workflow_is_shown_with_its_user_and_its_size() -> None:
    event = WorkflowSubmitted(answer_to=AnswerTo(1), key=KEY, submissions=(part(0), part(1)), within=((), ()))
    assert event_text(ME, event) == "me: ann submits 2 tasks and arrays together"
