"""What users ask their module for."""

from typing import assert_never

from messiahs.core.interface.actions import Action
from messiahs.core.interface.events import (
    CancelRequested,
    CleanRequested,
    HandRequested,
    Request,
    RetryRequested,
    Submitted,
    WorkflowSubmitted,
)
from messiahs.core.model.instants import Instant
from messiahs.core.origin import by_hand, retention, retry, submission, workflows
from messiahs.core.state.module import ModuleState


def on_request(state: ModuleState, request: Request, now: Instant) -> tuple[Action, ...]:
    """Do what a user asks for."""
    match request:
        case Submitted():
            return submission.on_submitted(state, request, now)
        case WorkflowSubmitted():
            return workflows.on_workflow_submitted(state, request, now)
        case CancelRequested():
            return submission.on_cancel_requested(state, request, now)
        case RetryRequested():
            return retry.on_retry_requested(state, request, now)
        case CleanRequested():
            return retention.on_clean_requested(state, request, now)
        case HandRequested():
            return by_hand.on_hand_requested(state, request, now)
        case _:
            assert_never(request)
