"""Each test of `tests/autonomy` fails, for its own reason, at a module with a defect that it is there to find."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import pytest

from tests.autonomy.scene import FRIEND, SEAT, SUBJECT, own_lab
from tests.commands import Forked
from tests.live.conftest import ROOT
from tests.live.defective_daemons import DEFECTS
from tests.live.lab import Lab
from tests.waiting import PATIENCE

_SUITE: Final = "tests/autonomy"
_FRAME: Final = re.compile(rf"^{_SUITE}/\w+\.py:\d+: in .*\n    (.*)$", re.MULTILINE)
"""A line of the suite in the trace of a failure."""
_VECTORS = "test_communication.py::test_its_vectors_have_what_its_policy_reveals_and_nothing_else"
_PREVIEW = "test_communication.py::test_its_vectors_are_those_that_its_administrator_can_preview"
_NO_MACHINE = "test_communication.py::test_it_shows_no_machine_to_a_neighbor_to_which_its_policy_reveals_nothing"
_SHUT_OFF = "test_communication.py::test_whom_its_administrator_shuts_off_gets_no_answer_and_no_reason"
_REFUSES = "test_execution.py::test_it_refuses_a_request_in_the_words_of_its_policy_and_says_no_more"
_NO_GRANT = "test_execution.py::test_it_runs_nothing_that_is_brought_without_its_grant"
_REVOKES = "test_execution.py::test_it_revokes_a_task_that_it_had_accepted_although_its_origin_says_nothing"
_CHANGES = "test_administration.py::test_every_change_takes_effect_while_all_its_neighbors_are_silent"
_FLOODS = "test_floods.py::test_a_neighbor_that_floods_changes_nothing_for_others"
_LIES = "test_lies.py::test_a_neighbor_that_lies_about_tasks_of_others_changes_nothing_for_them"
_REPLAYS = "test_replays.py::test_frames_of_a_link_that_are_sent_again_start_nothing_and_change_nothing_for_others"
_SILENCE = "test_silence.py::test_tasks_that_a_neighbor_draws_to_itself_and_does_not_run_end_elsewhere"
_DESIGN = "test_design.py::test_a_task_runs_at_a_machine_of_an_unknown_kind_with_software_of_its_own"

_MACHINES = 'assert (max(machines) == 0) == (reveals == "nothing"), machines'
_NOTHING_BROUGHT = "assert scene.from_the_seat() == []"
_ENDED = "await until(lambda: not is_running(mark))"
_ANSWERED = 'assert (command.returncode, out) == (0, f"{word}\\n"), f"{who}: {err}"'
_MANY = 'assert ended.get("finished") == _MANY, f"{who}: {ended}"'

FAILURES: Final[Mapping[str, Mapping[str, str]]] = {
    "reveals all": {_VECTORS: "assert names == _SHOWN", f"{_NO_MACHINE}[nothing]": _MACHINES},
    "reveals nothing": {f"{_NO_MACHINE}[everything]": _MACHINES},
    "previews nothing": {_PREVIEW: "assert previewed == sent"},
    "admits whom it shut off": {_SHUT_OFF: 'with pytest.raises(ChannelError, match="shut_off") as refused:'},
    "tells why it shut off": {_SHUT_OFF: "assert _REASON not in str(refused.value)"},
    "explains its refusals": {_REFUSES: 'assert (reason.text, reason.rule, reason.why) == (_CLOSED, "", "")'},
    "checks no ticket": {_NO_GRANT: _NOTHING_BROUGHT},
    "ends no claim": {_NO_GRANT: _NOTHING_BROUGHT},
    "takes any claim": {
        _NO_GRANT: _NOTHING_BROUGHT,
        _REPLAYS: "assert (_started(scene), [mark for mark in marks if is_running(mark)]) == (before + 1, [])",
    },
    "leaves the end to the origin": {f"{_REVOKES}[with the grace]": _ENDED},
    "its policy waits for neighbors": {
        _CHANGES: 'assert client.wait(client.submit(after), timeout=PATIENCE_SECONDS)["state"] == "denied"'
    },
    "shuts off with leave alone": {_CHANGES: 'assert scene.neighbor()["state"] == "shut_off"'},
    "throttles nobody": {
        f"{_FLOODS}[unread answers]": 'eventually(lambda: scene.neighbor()["throttled"], f"{kind}: it is throttled")'
    },
    "believes anybody": {f"{_LIES}[reports their ends]": _ANSWERED},
    "obeys anybody": {f"{_LIES}[kills them]": _ANSWERED},
    "waits for answers for ever": {f"{_SILENCE}[answers no request]": _MANY},
    "takes silence for an end": {
        f"{_SILENCE}[grants and reports nothing]": _MANY,
        f"{_SILENCE}[grants and loses]": _MANY,
    },
    "knows its own kind alone": {_DESIGN: "accept = await seat.module.grant(hop_address=seat.module.address)"},
}
"""The tests that fail because of each defect, and the line of the suite at which they do."""
_PATIENCE_SECONDS: Final[Mapping[str, int]] = {
    "leaves the end to the origin": 25,
    "throttles nobody": 15,
    "waits for answers for ever": 45,
    "knows its own kind alone": 25,
}
"""Where a test fails because it has waited in vain: longer than it waits at a module without the defect."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """Start the modules of a scene."""
    with own_lab(tmp_path_factory.mktemp("suite")) as lab:
        yield lab


@pytest.mark.parametrize("defect", FAILURES)
def test_a_defect_fails_the_tests_that_are_there_to_find_it(made: Lab, defect: str) -> None:
    made.kill(SUBJECT, starter=True)
    made.wipe(SUBJECT)
    made.start(SUBJECT, defect=defect)
    output = _output(made, defect)
    sections = re.split(r"^_+ (.+) _+$", output, flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    failed = {test: _FRAME.findall(found.get(test.rpartition("::")[2], "")) for test in FAILURES[defect]}
    assert {test: lines[-1:] for test, lines in failed.items()} == {
        test: [line] for test, line in FAILURES[defect].items()
    }, output


def _output(made: Lab, defect: str) -> str:
    """Run the tests that a defect concerns, and return what is printed."""
    folders = (f"--{each}={made.federation.folder(each)}" for each in (SUBJECT, SEAT, FRIEND))
    tests = [f"{_SUITE}/{test}" for test in FAILURES[defect]]
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb=short", *folders, *tests]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "200"}
    if defect in _PATIENCE_SECONDS:
        environment[PATIENCE] = str(_PATIENCE_SECONDS[defect])
    pipe = subprocess.PIPE
    with Forked(words, cwd=ROOT, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True) as suite:
        output, _ = suite.communicate()
    return output


def test_every_test_of_the_suite_fails_at_some_defect() -> None:
    tests = {
        f"{file.name}::{name}"
        for file in (ROOT / _SUITE).glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {test.partition("[")[0] for tests in FAILURES.values() for test in tests} == tests
    assert set(FAILURES) == set(DEFECTS)
