"""A task two hops away belongs to the trace of its submitter, and each of its attempts is a span of its own."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from messiahs.core.model.trace_context import TRACEPARENT, TRACESTATE
from tests.live.conftest import Federation

pytestmark = pytest.mark.live

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
OTHER = f"00-{TRACE}-53995c3f42cd8ad8-01"
AT_THE_LEAF = ("--require", "$speed = 1000")
SHOW = ("--", "sh", "-c", 'echo "${TRACEPARENT-none} ${TRACESTATE-none}"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced(Federation):
    """A federation whose user is in a span, if `parent` is not empty."""

    parent: str = ""
    trace_state: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the commands."""
        own = {name: value for name, value in self.untraced.items() if name not in (TRACEPARENT, TRACESTATE)}
        traced = {TRACEPARENT: self.parent, TRACESTATE: self.trace_state}
        return own | {name: value for name, value in traced.items() if value}

    @property
    def untraced(self) -> dict[str, str]:
        """The environment of other users."""
        return Federation(topology=self.topology, name=self.name, state=self.state, module=self.module).environment


def in_span(trio: Federation, parent: str, *, state: str = "") -> Traced:
    """Return the federation as a user in a span sees it."""
    place = {"topology": trio.topology, "state": trio.state}
    return Traced(**place, name=trio.name, module=trio.module, parent=parent, trace_state=state)


def printed(user: Federation, *words: str) -> list[str]:
    """Run a task at the leaf and return its `TRACEPARENT` and `TRACESTATE`, in its last attempt."""
    done = user.run("run", *AT_THE_LEAF, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_task_has_the_trace_of_its_submitter_with_the_span_of_its_attempt(trio: Federation) -> None:
    parent, state = printed(in_span(trio, PARENT, state="vendor=1"), *SHOW)
    version, trace, span, flags = parent.split("-")
    assert (version, trace, flags, state) == ("00", TRACE, "01", "vendor=1")
    assert span != SPAN
    assert printed(in_span(trio, PARENT), *SHOW)[0] not in (PARENT, parent)


def test_each_attempt_is_another_span(trio: Federation, shared: Path) -> None:
    spans = shared / "spans"
    script = f'echo "$TRACEPARENT" >> {spans}; test "$MESSIAHS_ATTEMPT" = 2'
    task = in_span(trio, PARENT).submit(*AT_THE_LEAF, "--retries", "1", "--", "sh", "-c", script)
    with trio.client() as client:
        assert client.wait(task)["exit_code"] == 0
    first, second = (line.split("-") for line in spans.read_text().splitlines())
    assert first[1] == second[1] == TRACE
    assert len({first[2], second[2], SPAN}) == 3


def test_a_malformed_trace_is_ignored(trio: Federation) -> None:
    assert printed(in_span(trio, f"00-{TRACE}-{'0' * 16}-01", state="vendor=1"), *SHOW) == ["none", "none"]
    assert printed(in_span(trio, ""), *SHOW) == ["none", "none"]
    assert printed(in_span(trio, PARENT), "--env", f"{TRACEPARENT}=malformed", *SHOW) == ["none", "none"]


def test_a_trace_that_is_stated_comes_before_the_one_around(trio: Federation) -> None:
    stated = OTHER.replace(TRACE, TRACE[::-1])
    parent, state = printed(in_span(trio, PARENT, state="vendor=1"), "--env", f"{TRACEPARENT}={stated}", *SHOW)
    assert (parent.split("-")[1], state) == (TRACE[::-1], "none")


def test_a_submit_that_is_repeated_in_another_span_is_the_same(trio: Federation, tmp_path: Path) -> None:
    words = ("--key", "nightly", *AT_THE_LEAF, "--", "true")
    ids = {in_span(trio, parent).submit(*words) for parent in (PARENT, OTHER, "", "malformed")}
    assert len(ids) == 1
    refused = in_span(trio, PARENT).run("submit", "--env", "A=1", *words)
    assert (refused.returncode, "with other environment;" in refused.stderr) == (1, True), refused.stderr
    file = tmp_path / "tasks.yaml"
    file.write_text("tasks:\n  one: {command: [printenv, TRACEPARENT]}\n")
    names = [in_span(trio, parent).run("submit", "--key", "file", "--file", str(file)) for parent in (PARENT, OTHER)]
    assert [each.returncode for each in names] == [0, 0]
    assert names[0].stdout == names[1].stdout
