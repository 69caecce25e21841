"""Environments of programs, submitted at one module and shown by another to its tasks."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.environments import virtual_environment
from tests.live.conftest import Federation, brought_up
from tests.waiting import eventually

pytestmark = pytest.mark.live

_TOPOLOGY = """
version: 1
federation: equipped
defaults: {update_period: 500ms}
systems:
  home: {}
  cage: {parent: home, machine: {slots: 2, isolation: sandbox}}
  open: {parent: home, machine: {slots: 8, isolation: process, attributes: {env_modules: 1}}}
"""


@pytest.fixture(scope="module")
def equipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    folder = tmp_path_factory.mktemp("equipped")
    topology = folder / "equipped.yaml"
    topology.write_text(_TOPOLOGY)
    made = Federation(topology=topology, name="equipped", state=folder / "state", module="home")
    with brought_up(made):
        yield made


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return virtual_environment(tmp_path / "venv")


def test_a_task_runs_in_the_environment_of_its_user_at_another_module(equipped: Federation, venv: Path) -> None:
    program = "import brought, sys; print(brought.TEXT, sys.prefix)"
    done = equipped.run("run", "--venv", str(venv), "--", "python", "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"of the environment {venv}\n", "")


def test_a_task_sees_the_environment_as_it_was_at_its_submit(equipped: Federation, venv: Path) -> None:
    (brought,) = venv.glob("lib/python3*/site-packages/brought.py")
    program = ("--", "python", "-c", "import brought; print(brought.TEXT)")
    first = equipped.submit("--venv", str(venv), *program)
    brought.write_text("TEXT = 'changed'\n")
    second = equipped.submit("--venv", str(venv), *program)
    brought.unlink()
    (brought.parent / "other.py").write_text("TEXT = 'new'\n")
    third = equipped.submit(
        "--venv", str(venv), "--", "python", "-c", "import other; print(other.TEXT); import brought"
    )
    equipped.run("wait", first, second, third)
    said = [equipped.run("logs", task).stdout for task in (first, second, third)]
    assert said == ["of the environment\n", "changed\n", "new\n"]
    assert "No module named 'brought'" in equipped.run("logs", "--stderr", third).stdout


def test_all_members_of_an_array_and_a_retry_run_in_it(equipped: Federation, venv: Path) -> None:
    program = "import brought, os, sys; print(brought.TEXT); sys.exit(not os.path.exists('/nowhere'))"
    task = equipped.submit("--array", "1-3", "--venv", str(venv), "--", "python", "-c", program)
    assert equipped.run("wait", task).returncode != 0
    # What the tasks ran in was packed at the submit.
    (venv / "pyvenv.cfg").unlink()
    assert equipped.run("retry", task).returncode == 0
    assert equipped.run("wait", task).returncode != 0
    assert [equipped.run("logs", f"{task}.{n}").stdout for n in (1, 2, 3)] == ["of the environment\n"] * 3


def test_a_machine_without_its_interpreter_denies_the_task_and_the_next_ones(equipped: Federation, venv: Path) -> None:
    configuration = venv / "pyvenv.cfg"
    lines = configuration.read_text().splitlines()
    configuration.write_text("\n".join([*(line for line in lines if not line.startswith("version")), "version = 3.99"]))
    task = equipped.submit("--venv", str(venv), "--", "python", "-c", "print('ran')")
    eventually(lambda: "has no /usr/bin/python3.99" in equipped.run("explain", task).stdout)
    again = equipped.submit("--no-wait", "--venv", str(venv), "--", "python", "-c", "print('ran')")
    assert equipped.run("wait", again).returncode != 0
    assert "has no /usr/bin/python3.99" in equipped.run("explain", again).stdout
    assert equipped.run("cancel", task).returncode == 0
    assert equipped.run("wait", task).returncode != 0


def test_an_environment_that_does_not_fit_a_machine_keeps_it_from_no_other_task(
    equipped: Federation, venv: Path
) -> None:
    cage = ("--no-wait", "--require", '$isolation eq "sandbox"')
    for number in range(3):
        # Another archive each time: the machine denies those that it knows.
        (venv / "bin" / "python").unlink()
        (venv / "bin" / "python").symlink_to(f"/nowhere/{number}/python")
        task = equipped.submit(*cage, "--venv", str(venv), "--", "true")
        assert equipped.run("wait", task).returncode != 0
        assert f"/nowhere/{number}/python there is another one" in equipped.run("explain", task).stdout
    done = equipped.run("run", *cage, "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def test_machines_without_sandboxes_are_not_asked(equipped: Federation, venv: Path) -> None:
    process = ("--require", '$isolation eq "process"')
    denied = equipped.submit("--no-wait", *process, "--venv", str(venv), "--", "python")
    assert equipped.run("wait", denied).returncode != 0
    found = equipped.status(denied)
    assert found["state"] == "denied"
    assert found["requirement"].endswith('and ($isolation eq "sandbox" or $isolation eq "bubblewrap")')
    assert found["requirement"].count("bubblewrap") == 1


def test_what_is_no_environment_is_refused_before_anything_is_submitted(equipped: Federation, tmp_path: Path) -> None:
    refused = equipped.run("submit", "--venv", str(tmp_path), "--", "true")
    assert refused.returncode != 0
    assert "is no virtual environment" in refused.stderr


def test_an_environment_of_conda_brings_its_own_programs(
    equipped: Federation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = tmp_path / "science"
    (made / "conda-meta").mkdir(parents=True)
    (made / "bin").mkdir()
    (made / "bin" / "solve").write_text(f"#!{made}/bin/interpreter\necho solved by $0 in $CONDA_PREFIX\n")
    (made / "bin" / "solve").chmod(0o755)
    shutil.copy("/bin/sh", made / "bin" / "interpreter")
    done = equipped.run("run", "--conda", str(made), "--", "solve")
    assert (done.returncode, done.stdout) == (0, f"solved by {made}/bin/solve in {made}\n"), done.stderr


def test_a_task_has_one_environment_at_most(equipped: Federation, venv: Path) -> None:
    refused = equipped.run("submit", "--venv", str(venv), "--conda", str(venv), "--", "true")
    assert refused.returncode == 2
    assert "a task has one of an image, a venv and a conda environment" in refused.stderr


def test_environment_modules_are_loaded_where_the_machine_says_that_it_has_them(
    equipped: Federation, tmp_path: Path
) -> None:
    init = tmp_path / "site" / "init"
    init.mkdir(parents=True)
    (init / "sh").write_text('module() { LOADED="$*"; export LOADED; }\n')
    site = ("--input", str(tmp_path / "site"), "--env", "MODULESHOME=site")
    names = ("--env-module", "gcc/12.2", "--env-module", "openmpi")
    done = equipped.run("run", *site, *names, "--", "sh", "-c", "echo $LOADED on $MESSIAHS_ATTEMPT")
    assert (done.returncode, done.stdout) == (0, "load gcc/12.2 openmpi on 1\n"), done.stderr
    cage = ("--require", '$isolation eq "sandbox"')
    denied = equipped.submit("--no-wait", *cage, *names, "--", "true")
    assert equipped.run("wait", denied).returncode != 0
    found = equipped.status(denied)
    assert (found["state"], found["requirement"]) == ("denied", '($isolation eq "sandbox") and $env_modules = 1')
    refused = equipped.run("submit", "--env-module", "a b", "--", "true")
    assert (refused.returncode, "is not the name of an environment module" in refused.stderr) == (2, True)
