"""Whatever is done with members by hand, and however attempts end, a result stays until its task runs again.

The rows that a module stores are kept as its database keeps them: the requests of users are made of them, and a restart
reads nothing else.
"""

from collections.abc import Callable
from typing import Final

from hypothesis import example, given
from hypothesis import strategies as st

from messiahs.core.interface.actions import Action, Forget, Store
from messiahs.core.interface.by_hand import HandAct
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.dependencies import Dependency, Predecessor, When
from messiahs.core.interface.events import AnswerTo, CancelRequested, HandRequested
from messiahs.core.interface.messages import AttemptStatus, TaskState
from messiahs.core.interface.rows import Row, RowKey, SubmissionRow, TaskRow, key_of
from messiahs.core.model.ids import AttemptId, ClaimId, ClientKey, Epoch, TaskId
from messiahs.core.model.instants import MINUTE, SECOND
from messiahs.core.origin.array_members import with_untried
from messiahs.core.origin.completion import ends_in, with_ends_of_members
from messiahs.core.recovery import Remains
from tests.property.budget import examples
from tests.unit.core.rig import CHILD, FAR, TASK, Rig, accept, deny, make_module, retry_of, status, statuses

MEMBERS: Final = 3
FOLLOWING = TASK._replace(number=2)
"""An array that may wait for the other one, member by member."""
ENDS: Final[dict[str, Callable[[AttemptId], AttemptStatus]]] = {
    "ok": status,
    "failed": lambda attempt: status(attempt, exit_code=1),
    "killed": lambda attempt: status(attempt, TaskState.KILLED, cause=Cause.KILLED),
    "lost": lambda attempt: status(attempt, TaskState.REVOKED, cause=Cause.LOST),
    "refused": lambda attempt: status(attempt, TaskState.DENIED, cause=Cause.REFUSED),
    "runs": lambda attempt: status(attempt, TaskState.EXECUTING),
}
NAMED = st.builds(
    TaskId._replace, st.sampled_from([TASK, TASK, TASK, FOLLOWING]), member=st.integers(min_value=0, max_value=MEMBERS)
)
ASKED = [HandAct.HOLD, HandAct.HOLD, HandAct.RELEASE, HandAct.RELEASE, HandAct.REVOKE, HandAct.MOVE, "cancel", "retry"]
ASKS = st.tuples(st.sampled_from(ASKED), NAMED)
REPORTS = st.tuples(st.sampled_from(["ok", "ok", *ENDS]), st.integers(min_value=0, max_value=MEMBERS - 1))
ANSWERS = st.tuples(st.just("answer"), st.sampled_from([MEMBERS, MEMBERS, 1, 0]))
TIMES = st.tuples(st.just("wait"), st.sampled_from([SECOND, SECOND, MINUTE])) | st.just(("restart", None))
STEPS = st.one_of(ASKS, ASKS, ASKS, REPORTS, REPORTS, ANSWERS, ANSWERS, TIMES)
RELEASED_AFTER_ITS_END = [
    ("answer", MEMBERS),
    (HandAct.HOLD, TASK._replace(member=1)),
    ("ok", 0),
    (HandAct.RELEASE, TASK._replace(member=1)),
]
ARRAYS = st.fixed_dictionaries(
    {
        "at_once": st.integers(min_value=0, max_value=2),
        "retries": st.integers(min_value=0, max_value=1),
        "deadline_ns": st.sampled_from([None, None, 2 * MINUTE]),
    }
)


class Desk:
    """A module, and the rows in its database (mutable)."""

    def __init__(self) -> None:
        self.rows: dict[RowKey, Row] = {}
        self.claims = 0
        self.rig = Rig(make_module())
        self._start()

    def _start(self) -> None:
        self.keep(self.rig.resume(Remains(rows=tuple(self.rows.values()))))
        self.keep(self.rig.greet(CHILD))
        self.keep(self.rig.see(CHILD))

    def keep(self, actions: tuple[Action, ...]) -> None:
        """Store what a module wants stored."""
        for action in actions:
            if isinstance(action, Store):
                self.rows[key_of(action.row)] = action.row
            elif isinstance(action, Forget):
                self.rows.pop(action.key, None)

    def submission(self, key: TaskId) -> SubmissionRow | None:
        """Return the row of a submission."""
        return next((row for row in self.rows.values() if isinstance(row, SubmissionRow) and row.id == key), None)

    def members(self, key: TaskId) -> dict[TaskId, TaskRow]:
        """Return the rows of members of a submission, also of those that ended untried."""
        stored = (row for row in self.rows.values() if isinstance(row, TaskRow) and row.id.submission == key)
        submission = self.submission(key)
        return {} if submission is None else {row.id: row for row in with_untried(submission, stored)}

    def ended(self) -> dict[TaskId, TaskRow]:
        """Return the rows of members that have ended."""
        rows = {**self.members(TASK), **self.members(FOLLOWING)}
        return {task: row for task, row in rows.items() if row.state is not TaskState.EXECUTING}

    def take(self, what: str, of: object) -> None:
        """Let a step happen."""
        if isinstance(of, TaskId):
            self._ask(what, of)
        elif what == "answer" and isinstance(of, int):
            self._answer(of)
        elif what == "wait" and isinstance(of, int):
            self.keep(self.rig.wait(of))
        elif isinstance(of, int):
            self._report(what, of)
        else:
            self.rig = Rig(make_module(), now=self.rig.now)
            self._start()

    def _ask(self, what: str, task: TaskId) -> None:
        submission = self.submission(task.submission)
        if submission is None:
            return
        if what == "cancel":
            self.keep(self.rig.handle(CancelRequested(answer_to=AnswerTo(1), task=task)))
        elif what == "retry":
            stored = [
                row for row in self.rows.values() if isinstance(row, TaskRow) and row.id.submission == submission.id
            ]
            after = tuple(map(self._with_ends, submission.after))
            self.keep(self.rig.handle(retry_of(submission, stored, member=task.member, after=after)))
        else:
            self.keep(self.rig.handle(HandRequested(answer_to=AnswerTo(1), task=task, act=HandAct(what))))

    def _with_ends(self, dependency: Dependency) -> Predecessor:
        submission = self.submission(dependency.on)
        assert submission is not None, "nothing is forgotten so soon"
        stored = (row for row in self.rows.values() if isinstance(row, TaskRow) and row.id.submission == submission.id)
        return with_ends_of_members(dependency, submission, ends_in(stored))

    def _answer(self, places: int) -> None:
        for ask, search in tuple(self.rig.state.hop.asks.items()):
            self.claims += 1
            claim = ClaimId(FAR, Epoch(3), self.claims)
            granted = accept(ask, places=min(places, search.asked_left), claim=claim)
            self.keep(self.rig.hear(CHILD, granted if places else deny(ask)))

    def _report(self, how: str, at: int) -> None:
        bound = [(each, claim) for claim, held in self.rig.state.origin.claims.items() for each in held.bound]
        if at < len(bound):
            attempt, claim = bound[at]
            self.keep(self.rig.hear(CHILD, statuses(ENDS[how](attempt), claim=claim)))


@examples(300)
@example(limits={}, steps=RELEASED_AFTER_ITS_END, follows=False)
@given(limits=ARRAYS, steps=st.lists(STEPS, min_size=15, max_size=60), follows=st.booleans())
def test_a_result_stays_until_its_task_runs_again(
    limits: dict[str, object], steps: list[tuple[str, object]], *, follows: bool
) -> None:
    desk = Desk()
    desk.keep(desk.rig.submit(MEMBERS, **limits))
    if follows:
        each = Predecessor(dependency=Dependency(on=TASK, when=When.EACH))
        desk.keep(desk.rig.submit(MEMBERS, key=ClientKey("f"), after=(each,), **limits))
    for what, of in steps:
        before = desk.ended()
        desk.take(what, of)
        after = desk.ended()
        changed = [task for task, row in before.items() if after.get(task) != row]
        assert not changed or what == "retry", f"{what} {of} has changed {changed}"
        open_members = {key: live.open_members for key, live in desk.rig.state.origin.submissions.items()}
        for key in (TASK, FOLLOWING):
            left = MEMBERS - sum(task.submission == key for task in after) if desk.submission(key) else 0
            assert left == open_members.get(key, 0), f"{what} {of}"
    _require_that_all_end(desk)


def _require_that_all_end(desk: Desk) -> None:
    """Release all, and let everything run that is placed: each member ends."""
    for key in (TASK, FOLLOWING):
        desk.take("release", key)
    for _ in range(20 * MEMBERS):
        if not desk.rig.state.origin.submissions:
            return
        desk.keep(desk.rig.see(CHILD))
        desk.take("answer", MEMBERS)
        for place in range(MEMBERS):
            desk.take("ok", place)
        desk.take("wait", 10 * SECOND)
    raise AssertionError(desk.rig.state.origin.submissions)
