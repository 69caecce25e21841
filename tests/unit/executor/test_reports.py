"""Reports about attempts that started and ended between two messages."""

from messiahs.core.model.ids import AttemptId, Epoch, SystemId, TaskId
from messiahs.executor.attempt_values import Ended
from messiahs.executor.protocol.frames import Started
from messiahs.executor.starter.serve import news_of


def attempt(number: int) -> AttemptId:
    return AttemptId(TaskId(SystemId("x"), Epoch(1), number), 1)


def test_the_start_of_what_has_ended_since_is_left_out() -> None:
    reports: list[Started | Ended] = [
        Started(attempt=attempt(1)),
        Started(attempt=attempt(2)),
        Ended(attempt=attempt(1), exit_code=0),
    ]
    assert news_of(reports) == [Started(attempt=attempt(2)), Ended(attempt=attempt(1), exit_code=0)]
