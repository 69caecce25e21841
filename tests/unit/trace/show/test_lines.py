"""Events as lines of text."""

from messiahs.core.interface.events import AnswerTo, RootsChanged, WorkflowSubmitted
from messiahs.core.model.trust import Trust
from messiahs.trace.show.lines import event_text
from tests.unit.core.origin.test_workflows import KEY, part
from tests.unit.core.rig import ME


def test_a_workflow_is_shown_with_its_user_and_its_size() -> None:
    event = WorkflowSubmitted(answer_to=AnswerTo(1), key=KEY, submissions=(part(0), part(1)), within=((), ()))
    assert event_text(ME, event) == "me: ann submits 2 tasks and arrays together"


def test_other_roots_are_shown_with_those_that_vouch_for_the_module() -> None:
    event = RootsChanged(key=b"k" * 16, trust=Trust(roots=(b"\x0a" * 16, b"\x0b" * 16), vouchers=(b"\x0b" * 16,)))
    assert event_text(ME, event) == "me: has another certificate or other roots; 0b0b0b0b vouches for it"
