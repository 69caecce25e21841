"""The page about parts of policies: its tables match the code, and following it gives a working part."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.config.installed_parts import PartSource, why_not_as_recorded
from messiahs.config.policies import PolicySource, read_policy, source_of
from messiahs.core.interface.policies import Timeouts
from messiahs.errors import PolicyError
from messiahs.language.compiler.parts import part_text
from messiahs.policy.built_in import BUILT_IN
from messiahs.policy.external_parts import SAFE
from tests.contract.part_example import PAGE, files_of_page, install


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the example, and write down its policy."""
    install(tmp_path)
    (tmp_path / "resting.policy").write_text(files_of_page()["resting.policy"], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("messiahs_resting", None)


def _said(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(place)}
    return subprocess.run(
        [sys.executable, "-m", "messiahs.cli.main", *command],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_table_has_every_built_in_part_as_the_code_says_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for part in BUILT_IN:
        values = {each.name: each.default for each in part.parameters if each.default is not None}
        assert f"| `{part.kind} by` | `{part_text(part, values)}` | {part.meaning} |\n" in text
    for kind, safe in SAFE.items():
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{kind} by` |") and "?" in line)
        assert row.replace("`", "").endswith(f"| {safe.consequence} |")


def test_the_policies_of_the_page_have_no_problems(place: Path) -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```policy")[1:]
    for number, block in enumerate(blocks):
        file = place / f"{number}.policy"
        file.write_text(block.split("\n", 1)[1].split("```")[0], encoding="utf-8")
        assert read_policy(file).warnings == ()


@pytest.mark.processes
def test_whoever_installs_the_part_can_name_it_and_sees_from_where_it_is(place: Path) -> None:
    checked = _said(place, "policy", "check", "resting.policy")
    assert (checked.returncode, checked.stdout) == (0, "resting.policy: no problems\n")
    explained = _said(place, "policy", "explain", "resting.policy")
    (line,) = (line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("resting.policy: "))
    assert line in explained.stdout.splitlines()


def test_what_is_recorded_names_the_distribution_and_misses_it_where_it_is_not_installed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(read_policy(place / "resting.policy"))
    assert source.parts == (PartSource(name="resting", distribution="messiahs-resting", version="1.0"),)
    assert source.policy() == read_policy(place / "resting.policy", timeouts=source.timeouts)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(place)])
    importlib.invalidate_caches()
    with pytest.raises(PolicyError, match=r"`resting` was recorded with messiahs-resting 1\.0, which is not installed"):
        source.policy()


def test_another_version_is_reported(place: Path) -> None:
    del place
    recorded = PartSource(name="resting", distribution="messiahs-resting", version="0.9")
    assert why_not_as_recorded((recorded,)) == (
        "the part `resting` was recorded with messiahs-resting 0.9, and 1.0 is installed",
    )


_WRONG = """
from messiahs.core.interface.parts import PartKind
from messiahs.core.model.attributes import Kind
from messiahs.policy.parts import DeclaredPart, Parameter

def declared(**about):
    parameters = (Parameter(name="rest", meaning="how long", **about),)
    return DeclaredPart(kind=PartKind.LOCATION, name="other", meaning="-", make=print, parameters=parameters)

TOO_LOW = declared(default=0, low=1)
OF_OTHER_KIND = declared(default="1")
NO_CHOICE = declared(kind=Kind.STRING, default="z", choices=("x", "y"))
"""


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ({"other": "messiahs_resting:PART"}, "the part is named 'resting', and its entry point 'other'"),
        ({"other": "messiahs_resting:SECOND_NS"}, "messiahs_resting:SECOND_NS is no DeclaredPart"),
        ({"other": "messiahs_nothing:PART"}, "ModuleNotFoundError: No module named 'messiahs_nothing'"),
        ({"other": "messiahs_wrong:TOO_LOW"}, "the default of its parameter rest, 0, is not a value that it may have"),
        ({"other": "messiahs_wrong:OF_OTHER_KIND"}, "the default of its parameter rest, '1', is not a value"),
        ({"other": "messiahs_wrong:NO_CHOICE"}, "the default of its parameter rest, 'z', is not a value"),
    ],
)
def test_an_entry_point_that_cannot_be_used_concerns_only_who_names_it(
    points: dict[str, str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, **points)
    (tmp_path / "messiahs_wrong.py").write_text(_WRONG)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()

    def compiled(name: str) -> object:
        return PolicySource(file="x", text=f"rank candidates by {name}();", timeouts=Timeouts()).policy()

    assert compiled("resting")
    with pytest.raises(PolicyError) as refused:
        compiled("other")
    (problem,) = refused.value.problems
    assert problem.code == "P304"
    assert why in problem.hint
