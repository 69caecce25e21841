"""Codes of the local API in words."""

from collections.abc import Mapping

import pytest

from messiahs.client.words import cause_text, ending_text, passed_refusals, reason_text
from messiahs.core.interface.causes import Cause
from messiahs.core.interface.messages import DenyCode


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ({"state": "finished"}, "finished"),
        ({"state": "killed", "cause": "killed"}, "killed"),
        ({"state": "killed", "cause": "", "text": "by its user"}, "killed: by its user"),
        ({"state": "aborted", "cause": "time_limit", "tdv": {"est_time": 2}}, "aborted: ran longer than --time 2s"),
        ({"state": "aborted", "cause": "time_limit", "tdv": {"est_time": 90}}, "aborted: ran longer than --time 90s"),
        ({"state": "aborted", "cause": "time_limit", "tdv": {"est_time": 7200}}, "aborted: ran longer than --time 2h"),
        (
            {"state": "aborted", "cause": "time_limit", "text": "at most 9 s"},
            "aborted: ran longer than it may: at most 9 s",
        ),
        (
            {"state": "aborted", "cause": "memory_limit", "tdv": {"mem": 1 << 26}},
            "aborted: used too much memory (--mem 64MiB)",
        ),
        (
            {"state": "aborted", "cause": "disk_limit", "tdv": {"disk": 1000}, "text": "2 of 1 kB"},
            "aborted: used too much disk (--disk 1000B): 2 of 1 kB",
        ),
        (
            {"state": "aborted", "cause": "output_missing", "exit_code": 1, "text": "missing at the end: g.o"},
            "aborted: exit code 1; missing at the end: g.o",
        ),
        ({"state": "aborted", "cause": "too_many_outputs", "exit_code": 0}, "aborted: exit code 0; too many outputs"),
        ({"state": "aborted", "cause": "of tomorrow", "text": "x"}, "aborted: of tomorrow: x"),
    ],
)
def test_an_end_is_told_in_words(document: Mapping[str, object], text: str) -> None:
    assert ending_text({"id": "left.1", **document}) == f"left.1 {text}"


def test_every_cause_and_every_code_has_words() -> None:
    causes = set(Cause) - {Cause.NONE, Cause.KILLED, Cause.OUTPUT_MISSING}
    assert not [cause for cause in causes if cause_text({"cause": cause.value}) == cause.value]
    assert not [code for code in DenyCode if code.value in reason_text({"module": "m", "code": code.value}).split(": ")]


def refusal(module: str, text: str = "", **more: object) -> dict[str, object]:
    return {"module": module, "code": "refused_by_policy", "rule": "", "text": text, "hops": [], **more}


def test_a_module_that_passes_refusals_on_has_refused_nothing() -> None:
    passed = refusal("laptop", hops=[refusal("server", "too large"), refusal("other")])
    assert passed_refusals(passed) == "everyone laptop asked refused: server (too large), other"
    assert passed_refusals({**passed, "text": "too large"}) == ""
    assert passed_refusals({**passed, "code": "no_capacity"}) == ""
    assert passed_refusals(refusal("laptop")) == ""


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (refusal("server", "too large"), "server: refused (too large)"),
        (refusal("server", "too large", rule="deny"), "server: refused (deny: too large)"),
        (refusal("server"), "server: refused"),
        (
            {"module": "phys", "code": "requirement_unmet", "text": "own machine has no $lab"},
            "phys: own machine has no $lab",
        ),
        ({"module": "left", "code": "no_class", "text": "at most 9 s"}, "left: no machine is this large: at most 9 s"),
        (
            {"module": "south", "code": "requirement_unmet", "text": "text withheld by the border south"},
            "south: no machine meets the requirement: text withheld by the border south",
        ),
        ({"module": "left", "code": "of tomorrow"}, "left: of tomorrow"),
        ({"module": "left", "code": "timed_out"}, "left: no answer in time"),
        ({"module": "left", "code": "lost"}, "left: the connection was lost"),
        (
            {"module": "left", "code": "lost", "text": "the last attempt could not be started: no python3.19"},
            "left: the last attempt could not be started: no python3.19",
        ),
        (
            {"module": "left", "code": "timed_out", "text": "it was waiting for other tasks until its deadline"},
            "left: it was waiting for other tasks until its deadline",
        ),
    ],
)
def test_a_denial_is_told_in_words(reason: Mapping[str, object], text: str) -> None:
    assert reason_text(reason) == text
