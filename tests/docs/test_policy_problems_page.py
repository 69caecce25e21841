"""The page of problems shows each of them, with its message and its remedy."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from messiahs.config.policies import read_policy
from messiahs.config.topology.consoles import warnings_of_consoles
from messiahs.config.topology.fields import warnings_of_fields
from messiahs.config.topology.reading import load_topology
from messiahs.config.topology.topology import Topology
from messiahs.errors import PolicyError, Problem
from messiahs.language.syntax.problems import Code

PAGE = Path(__file__).parents[2] / "docs" / "policy-problems.md"
CODES = ("P001", *Code)
BY_TOPOLOGY: dict[str, Callable[[Topology], tuple[str, ...]]] = {
    Code.UNSAID: warnings_of_fields,
    Code.TERMINALS_ONLY: warnings_of_consoles,
}
"""Problems that only a topology has."""
_SECTION = re.compile(r"^### (P\d+): .+\n\n((?:(?!^##).*\n)+)", re.MULTILINE)
_PARTS = re.compile(
    r"```policy wrong ?(\S*)\n(.*?)^```\n\n```text\n(.*?)^```\n\n```policy corrected\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)


def _sections() -> list[tuple[str, str]]:
    return _SECTION.findall(PAGE.read_text(encoding="utf-8") + "\n")


def _problems(text: str, file: Path, *, encoding: str = "utf-8") -> tuple[Problem, ...]:
    # The page itself contains no character that hides something.
    file.write_text(text.replace("<U+202E>", "\N{RIGHT-TO-LEFT OVERRIDE}"), encoding=encoding)
    try:
        return read_policy(file).warnings
    except PolicyError as error:
        return error.problems


def _said(problem: Problem) -> str:
    severity = "warning" if problem.is_warning else "error"
    return f"{problem.line}:{problem.column}: {severity}[{problem.code}]: {problem.message}\n"


def test_every_code_has_one_section_in_order_and_no_section_is_of_another() -> None:
    assert [code for code, _ in _sections()] == sorted(CODES)


@pytest.mark.parametrize("code", [code for code in CODES if code not in BY_TOPOLOGY])
def test_the_wrong_example_has_this_problem_alone_where_the_page_says_and_the_corrected_one_has_none(
    code: str, tmp_path: Path
) -> None:
    ((encoding, wrong, said, corrected),) = _PARTS.findall(dict(_sections())[code])
    found = _problems(wrong, tmp_path / "wrong.policy", encoding=encoding or "utf-8")
    assert {problem.code for problem in found} == {code}
    assert "".join(map(_said, found)) == said
    assert _problems(corrected, tmp_path / "corrected.policy") == ()


@pytest.mark.parametrize("code", BY_TOPOLOGY)
def test_the_wrong_example_has_its_warning_in_a_topology_and_the_corrected_one_has_none(
    code: str, tmp_path: Path
) -> None:
    ((_, wrong, said, corrected),) = _PARTS.findall(dict(_sections())[code])
    topology, policy = tmp_path / "t.yaml", tmp_path / "top.policy"
    topology.write_text("version: 1\nfederation: f\nsystems: {top: {machine: {}, policy: top.policy}}\n")
    policy.write_text(wrong)
    (warning,) = BY_TOPOLOGY[code](load_topology(topology))
    assert warning.splitlines()[0] == f"{policy}:{said.strip()}"
    policy.write_text(corrected)
    assert BY_TOPOLOGY[code](load_topology(topology)) == ()
