"""Extensions that a policy reads and nobody says: what a topology must have for a warning, and what takes it away."""

from pathlib import Path

import pytest

from messiahs.config.topology_fields import warnings_of_fields
from messiahs.config.topology_reading import load_topology

RANK = "attribute $gpus int;\nrank candidates by most $gpus;\n"


def _warnings(folder: Path, policy: str, *, leaf: str = "{parent: top, machine: {}}", other: str = "") -> list[str]:
    (folder / "top.policy").write_text(policy)
    (folder / "leaf.policy").write_text(other)
    file = folder / "t.yaml"
    file.write_text(f"version: 1\nfederation: f\nsystems:\n  top: {{policy: top.policy}}\n  leaf: {leaf}\n")
    return [each.splitlines()[0].removeprefix(f"{folder}/") for each in warnings_of_fields(load_topology(file))]


@pytest.mark.parametrize(
    ("policy", "place"),
    [
        (f"accept from any {{ limit 9 tasks; require $gpus > 1; }} {RANK}", "2:25"),
        (RANK, "2:25"),
        ("attribute $gpus int;\nrank candidates by first where has $gpus;\n", "2:36"),
        ("attribute $gpus int;\ncombine { $gpus: key; }\n", "2:11"),
        ("attribute $gpus int;\naccept from any { limit 9 tasks; require $here.gpus > 1; }\n", "2:42"),
    ],
)
def test_what_is_read_and_nobody_says_is_a_warning(tmp_path: Path, policy: str, place: str) -> None:
    assert _warnings(tmp_path, policy) == [f"top.policy:{place}: warning[P411]: no system of this topology says $gpus"]


@pytest.mark.parametrize(
    ("leaf", "other"),
    [
        ("{parent: top, machine: {attributes: {gpus: 4}}}", ""),
        ("{parent: top, machine: {}, policy: leaf.policy}", "attribute $gpus int; advertise every 2s { send $gpus; }"),
        (
            "{parent: top, machine: {}, policy: leaf.policy}",
            "attribute $gpus int; advertise every 2s { set $gpus = 1; }",
        ),
        ("{parent: top, external: true}", ""),
    ],
)
def test_what_somebody_says_or_another_site_may_say_is_no_warning(tmp_path: Path, leaf: str, other: str) -> None:
    assert _warnings(tmp_path, RANK, leaf=leaf, other=other) == []


def test_what_is_asked_of_tasks_is_no_warning(tmp_path: Path) -> None:
    asked = "attribute $gpus int;\naccept from any { limit 9 tasks; require $gpus > 1; }\n"
    assert _warnings(tmp_path, asked) == []
