"""Extension attributes that a policy reads and no system reports: when there is a warning, and when not."""

from pathlib import Path

import pytest

from messiahs.config.topology.fields import warnings_of_fields
from messiahs.config.topology.reading import load_topology

SUSPEND = "\nrunning { suspend unless $here.gpus > 1; }\n"
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
        ("attribute $gpus int;\nrunning { suspend unless $here.gpus > 1; }\n", "2:26"),
        ("attribute $gpus int;\nrunning tasks where $here.gpus > 1 { suspend when $task.ran > 1h; }\n", "2:21"),
        ("attribute $gpus int;\nmigrate { ask every 1min when $gpus > 1 wanting { }; }\n", "2:31"),
        ("attribute $gpus int;\nmigrate { offer when $gpus > 1 and $here.gpus > 1; }\n", "2:36"),
        ("attribute $gpus int;\nadvertise every 1min { set $willingness = 9 when $gpus > 1 else 0; }\n", "2:50"),
        ("attribute $gpus int;\nadvertise every 1min { set $willingness = $gpus * 2; }\n", "2:43"),
        (
            "attribute $gpus int;\nadvertise every 1min { set $comm_cost = 3 when $load > 1% else 2 - $here.gpus; }\n",
            "2:68",
        ),
        ("attribute $gpus int;\nrank tasks by first where $gpus > 1, most $here.gpus;\n", "2:43"),
        ("attribute $gpus int;\nrank tasks by random, first where $gpus > $here.gpus;\n", "2:43"),
        (
            "attribute $gpus int; let many = $gpus > 1; advertise every 9s { set $comm_cost = 9 when many else 0; }",
            "1:33",
        ),
        (
            "attribute $gpus int; let many = $gpus > 1; accept from any { limit 1 tasks; require many; }" + SUSPEND,
            "2:26",
        ),
        ("attribute $gpus int;\nlet many = $here.gpus > 1;\nrunning { suspend unless many; }\n", "2:12"),
    ],
)
def test_an_attribute_that_is_read_and_never_reported_is_a_warning(tmp_path: Path, policy: str, place: str) -> None:
    assert _warnings(tmp_path, policy) == [
        f"top.policy:{place}: warning[P411]: no system of this topology reports $gpus"
    ]


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
def test_attributes_that_a_system_or_another_site_may_report_have_no_warning(
    tmp_path: Path, leaf: str, other: str
) -> None:
    assert _warnings(tmp_path, RANK, leaf=leaf, other=other) == []


@pytest.mark.parametrize(
    "asked",
    [
        "accept from any { limit 9 tasks; require $gpus > 1; }",
        "running tasks where $gpus > 1 { suspend unless $task.gpus > 2; }",
        "migrate { offer when $gpus > 1; ask every 1min when $load < 25% wanting { $gpus > 1 }; }",
        "rank tasks by most $gpus, first where $gpus > 1;",
        "rank candidates by first where $task.gpus > 1 and $load < 25%;",
    ],
)
def test_attributes_of_tasks_have_no_warning(tmp_path: Path, asked: str) -> None:
    assert _warnings(tmp_path, f"attribute $gpus int;\n{asked}\n") == []


def test_each_spelling_is_reported_once_at_its_first_use(tmp_path: Path) -> None:
    asked = "running { suspend unless $here.gpus > 1; move unless $here.gpus > 2; }\nrank candidates by most $gpus;\n"
    said = "warning[P411]: no system of this topology reports $gpus"
    assert _warnings(tmp_path, f"attribute $gpus int;\n{asked}") == [
        f"top.policy:{place}: {said}" for place in ("2:26", "3:25")
    ]
