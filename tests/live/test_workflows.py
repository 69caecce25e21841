"""Files of tasks: submitted whole or not at all, by the command line and from Python, whatever is killed meanwhile."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import messiahs
from messiahs.errors import ClientError, PartRefusedError, WorkflowError
from tests.live.conftest import Federation
from tests.live.test_by_hand import restart
from tests.live.two_machines import finish, office, open_folder
from tests.waiting import PATIENCE_SECONDS

__all__ = ["office"]

PIPELINE = """
defaults: {time: 1min, env: {WHO: all}}
tasks:
  collect:
    command: echo collect >> LOG
    after-ok: [train, sweep]
  train:
    matrix: {seed: [1, 2], rate: [0.10, 0.5]}
    command: [sh, -c, "cat data >> LOG; echo $0-$1-$WHO >> LOG", "{seed}", "{rate}"]
    env: {WHO: "w{seed}"}
    input: data
    after-ok: prepare
  prepare: {command: "while [ ! -e GO ]; do sleep 0.05; done; echo prepare >> LOG"}
  sweep: {array: 0-3%2, command: "true", after: "train-1-0.10"}
"""
NAMES = ["prepare", "train-1-0.10", "train-1-0.5", "train-2-0.10", "train-2-0.5", "sweep", "collect"]


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as made:
        (made / "log").touch()
        (made / "log").chmod(0o666)
        (made / "data").write_text("data\n")
        yield made


def write(folder: Path, text: str) -> str:
    file = folder / "tasks.yaml"
    file.write_text(text.replace("LOG", str(folder / "log")).replace("GO", str(folder / "go")))
    return str(file)


def all_tasks(office: Federation) -> int:
    with office.client() as client:
        return len(client.tasks()["tasks"])


def test_the_tasks_of_a_file_run_in_their_order_although_the_daemon_is_killed(office: Federation, folder: Path) -> None:
    file = write(folder, PIPELINE)
    printed = [line.split() for line in office.run("submit", "--file", file, "--key", "pipe").stdout.splitlines()]
    assert [name for name, _ in printed] == ["NAME", *NAMES]
    ids = [task for _, task in printed[1:]]
    lines = office.run("status", *ids).stdout.splitlines()[1:8]
    depths = {line.split()[0]: (len(line) - len(line.lstrip())) // 2 for line in lines}
    assert [depths[task] for task in ids] == [0, 1, 1, 1, 1, 2, 3]
    restart(office, "top")
    again = office.run("submit", "--file", file, "--key", "pipe", "--quiet")
    assert again.stdout.split() == ids
    (folder / "go").touch()
    assert office.run("wait", *again.stdout.split()).returncode == 0
    said = (folder / "log").read_text().split()
    assert (said[0], said[-1]) == ("prepare", "collect")
    trained = ["1-0.10-w1", "1-0.5-w1", "2-0.10-w2", "2-0.5-w2"]
    assert sorted(said[1:-1]) == sorted([*trained, *["data"] * 4])
    assert office.status(ids[5])["counts"] == {"finished": 4}
    shown = office.run("task", "status", ids[1]).stdout
    assert "train-1-0.10" in shown


def test_a_file_with_problems_submits_nothing_and_says_where_they_are(office: Federation, folder: Path) -> None:
    before = all_tasks(office)
    file = write(folder, "tasks:\n  a: {command: x, inptu: y}\n  b: {command: x, after: c}\n")
    refused = office.run("submit", "--file", file)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{file}:2:19: unknown key `inptu`; did you mean `input`?" in refused.stderr
    assert f"{file}:3:26: `c` is no task of this file" in refused.stderr
    assert all_tasks(office) == before


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("{command: x, set: {user: root}}", "task `b`: $user cannot be set by users"),
        ("{command: x, after: top.99999}", "task `b`: no task top.99999 is known here"),
        ("{command: x, array: 1-3, input: '{}.txt'}", "task `b`: the input `FOLDER/1.txt` cannot be read"),
        ("{command: x, output: ../up}", "`output`: `../up` cannot be the name of a task's file"),
        ("{command: LONG}", "task `b`: the command and its environment are longer than"),
    ],
)
def test_one_task_that_is_refused_refuses_all_and_is_named_with_its_line(
    office: Federation, folder: Path, second: str, said: str
) -> None:
    before = all_tasks(office)
    long = "x" * 140_000
    file = write(folder, f"tasks:\n  a: {{command: x}}\n  b: {second.replace('LONG', long)}\n")
    refused = office.run("submit", "--file", file)
    assert refused.returncode == 2
    assert f"{file}:3:" in refused.stderr
    assert said.replace("FOLDER", str(folder)) in refused.stderr
    assert all_tasks(office) == before


def test_a_key_that_other_tasks_have_is_refused(office: Federation, folder: Path) -> None:
    file = write(folder, "tasks: {a: {command: 'true'}, b: {command: 'true', after: a}}")
    assert office.run("submit", "--file", file, "--key", "mine").returncode == 0
    file = write(folder, "tasks: {a: {command: 'true'}, b: {command: 'true', after-ok: a}}")
    refused = office.run("submit", "--file", file, "--key", "mine")
    assert "task `b`: the key `mine` is that of" in refused.stderr
    assert "with other dependencies; use another key" in refused.stderr


def test_a_file_that_has_grown_is_not_taken_for_the_one_that_was_submitted(office: Federation, folder: Path) -> None:
    file = write(folder, "tasks: {a: {command: 'true'}}")
    assert office.run("submit", "--file", file, "--key", "grows").returncode == 0
    file = write(folder, "tasks: {a: {command: 'true'}, b: {command: 'true'}}")
    refused = office.run("submit", "--file", file, "--key", "grows")
    assert (refused.returncode, refused.stdout) == (2, "")
    another = "the key is that of another file, which has 1 task, and this one has 2; use another key"
    assert f"{file}:1:31: task `b`: {another}" in refused.stderr
    # The number after the last one of the file belongs to another task by now, or to one that is forgotten.
    next_one = office.submit("--", "true")
    assert another in office.run("submit", "--file", file, "--key", "grows").stderr
    assert office.run("wait", next_one).returncode == 0
    office.document("clean", next_one)
    assert another in office.run("submit", "--file", file, "--key", "grows").stderr


def test_a_file_that_has_shrunk_is_not_taken_for_the_one_that_was_submitted(office: Federation, folder: Path) -> None:
    file = write(folder, "tasks: {a: {command: 'true'}, b: {command: 'true'}}")
    assert office.run("submit", "--file", file, "--key", "shrinks").returncode == 0
    file = write(folder, "tasks: {a: {command: 'true'}}")
    refused = office.run("submit", "--file", file, "--key", "shrinks")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "task `a`: the key is that of another file, which has 2 tasks, and this one has 1" in refused.stderr


def test_a_key_of_a_file_is_none_of_single_submits(office: Federation, folder: Path) -> None:
    key = "x" * 62
    for each in (key, f"{key}/0"):
        office.submit("--key", each, "--", "true")
    file = write(folder, "tasks: {a: {command: sleep 0}, b: {command: sleep 0}}")
    first = office.run("submit", "--file", file, "--key", key)
    assert first.returncode == 0, first.stderr
    assert office.run("submit", "--file", file, "--key", key).stdout == first.stdout
    refused = office.run("submit", "--file", file, "--key", "x" * 65)
    assert (refused.returncode, "must have 1 to 64 characters" in refused.stderr) == (2, True), refused


def test_a_key_of_a_file_of_which_a_task_was_cleaned_up_submits_nothing(office: Federation, folder: Path) -> None:
    file = write(folder, "tasks: {a: {command: 'true'}, b: {command: 'true'}}")
    first, second = office.run("submit", "--file", file, "--key", "partly", "--quiet").stdout.split()
    assert office.run("wait", first, second).returncode == 0
    office.document("clean", second)
    before = all_tasks(office)
    refused = office.run("submit", "--file", file, "--key", "partly")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"task `b`: the key was used before, and of its tasks {second} is no longer known here" in refused.stderr
    assert all_tasks(office) == before


def test_with_a_file_no_other_option_says_what_is_submitted(office: Federation, folder: Path) -> None:
    file = write(folder, "tasks: {a: {command: 'true'}}")
    for words, named in ((("--mem", "1GiB"), "--mem"), (("--array", "1-3"), "--array"), (("--", "x"), "`x`")):
        refused = office.run("submit", "--file", file, *words)
        assert (refused.returncode, f"write {named} into it" in refused.stderr) == (2, True), refused.stderr
    assert office.run("submit").returncode == 2


def test_python_submits_a_file_and_waits_for_its_tasks(office: Federation, folder: Path) -> None:
    file = write(folder, "tasks: {a: {command: 'true'}, b: {command: exit 3, after-ok: a}}")
    with messiahs.connect("top", office.state, patience=PATIENCE_SECONDS) as client:
        ids = client.submit_file(file)
        ended = client.wait(*ids.values(), timeout=PATIENCE_SECONDS)
        assert {name: task["exit_code"] for name, task in zip(ids, ended, strict=True)} == {"a": 0, "b": 3}
        Path(file).write_text("tasks: []")
        with pytest.raises(WorkflowError, match=r"`tasks` needs a mapping") as raised:
            client.submit_file(file)
        assert isinstance(raised.value, ClientError)


def test_asyncio_submits_a_file(office: Federation, folder: Path) -> None:
    file = write(folder, "tasks: {a: {command: 'true'}}")

    async def submitted() -> dict[str, str]:
        async with messiahs.AsyncClient("top", office.state, patience=PATIENCE_SECONDS) as client:
            return await client.submit_file(file, key="async")

    ids = asyncio.run(submitted())
    assert finish(office, ids["a"])["state"] == "finished"


def test_json_has_the_ids_by_name(office: Federation, folder: Path) -> None:
    file = write(folder, "tasks: {b: {command: 'true', after: a}, a: {command: 'true'}}")
    document = json.loads(office.run("submit", "--file", file, "--json").stdout)
    assert list(document["tasks"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"within": [{"place": 1, "when": "ok"}]}, "can wait only for earlier ones"),
        ({"stdin": True}, "has no standard input"),
        ({"within": [{"place": 0, "when": "each"}]}, "`one` is a single task"),
        ({"inputs": [{"name": "x", "sha256": "0" * 64}]}, f"upload first: {'0' * 64}"),
    ],
)
def test_a_request_that_no_file_makes_is_refused(office: Federation, part: dict[str, object], said: str) -> None:
    before = all_tasks(office)
    with office.client() as client, pytest.raises(PartRefusedError, match=said) as raised:
        client.submit_workflow([{"argv": ["true"], "name": "one"}, {"argv": ["true"], **part}], key="k")
    assert raised.value.place == 1
    assert all_tasks(office) == before


def test_the_tasks_of_a_file_wait_member_by_member_for_few_arrays_that_are_not_in_it(
    office: Federation, folder: Path
) -> None:
    arrays = [office.submit("--array", "1-2", "--", "true") for _ in range(5)]
    one, other = ", ".join(arrays[:2]), ", ".join(arrays[2:])
    tasks = (
        f"  a: {{command: 'true', array: 1-2, after-each: [{one}]}}\n"
        f"  b: {{command: 'true', array: 1-2, after-each: [{other}]}}\n"
    )
    before = all_tasks(office)
    refused = office.run("submit", "--file", write(folder, f"tasks:\n{tasks}"))
    assert refused.returncode == 2
    assert "tasks.yaml:3:" in refused.stderr
    assert "a workflow can wait, member by member, for at most 4 arrays that are not in it" in refused.stderr
    assert all_tasks(office) == before
    accepted = office.run(
        "submit", "--quiet", "--file", write(folder, f"tasks:\n{tasks.replace(f', {arrays[4]}', '')}")
    )
    assert office.run("wait", *accepted.stdout.split()).returncode == 0
