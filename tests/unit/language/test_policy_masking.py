"""Choices, alternatives and rules that never decide, marked by `!` in a table of texts; and valid ones."""

import pytest

from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import policy

DECLARED = "attribute $a int; attribute $b int; attribute $n int;"


def _columns(text: str) -> list[int]:
    found = policy(f"{DECLARED}\n{text}").warnings
    return [each.column for each in found if each.code == Code.UNREACHABLE]


def _marked(text: str) -> list[int]:
    """Return the columns, counted from 1, of what stands behind exclamation marks, without those."""
    places = [place for place, character in enumerate(text) if character == "!"]
    return [place + 1 - before for before, place in enumerate(places)]


def _set(*conditions: str) -> str:
    choices = " ".join(f"{place} when {condition} else" for place, condition in enumerate(conditions))
    return f"advertise every 2s {{ set $n = {choices} 9; }}"


def _accept(*conditions: str) -> str:
    return f"accept from any {{ limit 9 tasks; {' '.join(f'when {condition};' for condition in conditions)} }}"


@pytest.mark.parametrize(
    "text",
    [
        _set("$a > 3", "!$a > 5"),
        _set("$a > 3", "$a <= 3", "!$a = 7"),
        _set("$a > 3", "$b > 1", "!$a > 5 and $b > 7"),
        _set("$a default 0 > 3", "!$a > 4"),
        _set("has $a", "!$a > 4"),
        _set("$a > 3", "!$a > 5", "$a > 1", "!$a > 2"),
        _accept("$cpus > 3", "!$cpus > 5"),
        _accept("!$cpus > 5", "$cpus > 3"),
        _accept("$cpus > 3", "!$cpus > 3"),
        _accept("$here.load < 50%", "!$here.load < 40%"),
        _accept("$now.clock < 7:00", "$now.clock >= 7:00", "!$now.clock = 8:00"),
        'join { allow child when $peer.name like "a*"; allow child when !$peer.name eq "ab"; }',
        'join { allow child when $peer.name like "a*" limit 5; allow child when !$peer.name eq "ab" limit 5; }',
        "migrate { offer when $task.cpus < 4; offer when !$task.cpus < 2; }",
        "running { kill when $here.load > 50%; !suspend when $here.load > 60%; }",
        "running { !suspend when $here.load > 60%; vacate when $here.load > 50%; }",
        "running { suspend when $here.load > 50%; !suspend when $here.load > 60%; }",
        "running { kill when $here.load > 50% for 1s; !suspend when $here.load > 60% for 2s; }",
        "running { vacate unless $here.load < 50%; !suspend when $here.load > 60%; }",
        "running { vacate unless $here.load < 60%; !suspend unless $here.load < 70%; }",
        "running { kill when $here.load > 50%; } running tasks where $cpus = 1 { !suspend when $here.load > 60%; }",
    ],
)
def test_a_rule_that_never_decides_is_a_warning_at_its_position(text: str) -> None:
    assert _columns(text.replace("!", "")) == _marked(text)


@pytest.mark.parametrize(
    "text",
    [
        _set("$a > 5", "$a > 3"),
        _set("$a > 3", "$b > 5"),
        # Where $b is unset only the second is true.
        _set("$a > 3 and ($b > 1 or $b <= 1)", "$a > 5"),
        _set("$a > 3", "$a default 9 > 5"),
        _set("$a > 3", "has $a"),
        _accept("$cpus > 3", "$cpus < 5"),
        _accept("$cpus > 3 and $mem >= 0B", "$cpus > 5"),
        # A system without a machine judges the parts of this one apart from each other.
        _accept("$here.a < 3", "$here.a < $here.b and $here.b < 3"),
        'join { allow child when $peer.name like "a*" limit 4; allow child when $peer.name eq "ab" limit 5; }',
        'join { allow child when $peer.name like "a*" limit 4; allow child when $peer.name eq "ab"; }',
        'join { allow sibling when $peer.name like "a*"; allow child when $peer.name eq "ab"; }',
        "migrate { offer when $task.cpus < 4; offer when $task.mem < 2GiB; }",
        "running { kill when $here.load > 60%; suspend when $here.load > 50%; }",
        "running { kill when $here.load > 50% for 3s; suspend when $here.load > 60% for 2s; }",
        "running { suspend when $here.load > 50%; kill when $here.load > 60%; }",
        "running { move when $here.load > 50%; suspend when $here.load > 60%; }",
        "running { kill when $here.load > 50% grace 9s; kill when $here.load > 60%; }",
        "running { kill when $here.load > 50%; suspend unless $here.load < 60%; }",
        "running { vacate unless $here.keyboard_idle > 9s; suspend unless $here.load < 60%; }",
        "running tasks where $cpus = 1 { kill when $here.load > 50%; } running { suspend when $here.load > 60%; }",
    ],
)
def test_a_rule_that_may_decide_has_no_warning(text: str) -> None:
    assert _columns(text) == []
