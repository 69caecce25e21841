"""Outputs of tasks that have not ended at the submit become inputs of others, whatever is killed meanwhile."""

from pathlib import Path

import pytest

import messiahs
from tests.live.conftest import Federation
from tests.live.test_by_hand import ask_as, restart
from tests.live.two_machines import finish, folder, office
from tests.waiting import eventually

__all__ = ["folder", "office"]

STRANGER = 65533
PIPELINE = """
tasks:
  report:
    command: cat one two > report; cat report
    input: ["@fit-1/fit:one", "@fit-2/fit:two"]
    output: report
  fit:
    matrix: {seed: [1, 2]}
    command: "echo {seed} $(cat in/part-{seed}) > fit"
    require: '$side eq "right"'
    input: "@prepare/parts:in"
    output: fit
  prepare:
    command: "while [ ! -e GO ]; do sleep 0.05; done; mkdir parts; echo a > parts/part-1; echo b > parts/part-2"
    require: '$side eq "left"'
    output: "parts/*"
"""


def made_later(office: Federation, folder: Path, made: str, /, *options: str) -> str:
    """Submit a task that leaves outputs once the file `go` is there."""
    waiting = f"while [ ! -e {folder / 'go'} ]; do sleep 0.05; done"
    return office.submit(*options, "--", "sh", "-c", f"{waiting}; {made}")


def why_never_run(office: Federation, task: str) -> list[str]:
    office.run("wait", task)
    return [each["text"] for each in office.status(task)["reasons"] if each["code"] == "dependency_failed"]


def test_a_task_takes_what_another_one_leaves_later(office: Federation, folder: Path) -> None:
    made = "mkdir -p d/e; echo one > d/one; chmod +x d/one; ln -s one d/link; head -c 9999999 /dev/zero > d/e/big"
    first = made_later(office, folder, f"{made}; echo x > x", "--output", "d", "--output", "*")
    shown = "[ -x in/one ] && [ -L in/link ] && cat in/one in/link x; wc -c < in/e/big"
    taking = ("--input", f"@{first}/d:in", "--input", f"@{first}/x")
    second = office.submit("--key", "taking", *taking, "--", "sh", "-c", shown)
    text = f"{second} waits for {first} to end with exit code 0, for its d, x\n"
    assert text in office.run("status", second).stdout
    assert office.submit("--key", "taking", *taking, "--", "sh", "-c", shown) == second
    (folder / "go").touch()
    finish(office, second)
    assert office.run("logs", second).stdout == "one\none\nx\n9999999\n"
    # By now the other one has ended, and its outputs are found at once.
    assert office.submit("--key", "taking", *taking, "--", "sh", "-c", shown) == second


def test_a_submit_is_repeated_although_what_it_took_is_cleaned_up(office: Federation, folder: Path) -> None:
    made = ("--output", "d", "--", "sh", "-c", "mkdir d; echo x > d/x")
    first, gone = office.submit(*made), office.submit(*made)
    late = made_later(office, folder, "echo y > y", "--output", "y")
    finish(office, first)
    taking = ("--input", f"@{first}/d:in", "--input", f"@{late}/y", "--after-any", gone)
    repeated = ("submit", "--quiet", "--key", "repeated")
    second = office.run(*repeated, *taking, "--", "cat", "in/x", "y").stdout.strip()
    (folder / "go").touch()
    finish(office, second)
    assert office.run("clean", first, late, gone).returncode == 0
    again = office.run(*repeated, *taking, "--", "cat", "in/x", "y")
    assert (again.returncode, again.stdout.strip()) == (0, second), again.stderr
    # Whatever differs is still an error, and another key is none that was used.
    for other, why in (
        ((*repeated, *taking, "--", "cat", "y"), f"the key `repeated` is that of {second}, whose command is"),
        ((*repeated, *taking[2:], "--", "cat", "in/x", "y"), "with other inputs; use another key"),
        ((*repeated, "--input", f"@{first}/d:to", *taking[2:], "--", "cat", "in/x", "y"), "with other inputs"),
        ((*repeated, *taking[:4], "--", "cat", "in/x", "y"), "with other dependencies; use another key"),
        (("submit", "--key", "other", *taking, "--", "cat", "in/x", "y"), f"no task {first} is known here any more"),
    ):
        refused = office.run(*other)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert why in refused.stderr


def test_a_submit_is_repeated_although_the_task_has_failed_whose_output_it_takes(
    office: Federation, folder: Path
) -> None:
    bad = made_later(office, folder, "exit 3", "--output", "x")
    taking = ("--input", f"@{bad}/x", "--", "cat", "x")
    failed = office.submit("--key", "failed", *taking)
    (folder / "go").touch()
    assert why_never_run(office, failed) == [f"{bad} did not end with exit code 0 (exit code 3, output missing)"]
    assert office.submit("--key", "failed", *taking) == failed
    refused = office.run("submit", "--key", "another", *taking)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"{bad} did not end with exit code 0 (exit code 3, output missing), so its outputs" in refused.stderr


def test_an_array_and_a_file_are_repeated_although_what_they_took_is_cleaned_up(
    office: Federation, folder: Path
) -> None:
    first = office.submit("--array", "7-8", "--output", "{}.txt", "--", "sh", "-c", "echo {} > {}.txt")
    single = office.submit("--output", "y", "--", "sh", "-c", "echo y > y")
    office.run("wait", first, single)
    file = folder / "tasks.yaml"
    file.write_text(f"tasks:\n  last: {{command: cat in, input: '@{single}/y:in', after-any: {first}}}\n")
    submit = ("submit", "--quiet", "--key", "members")
    array = (*submit, "--array", "7-8", "--input", f"@{first}/{{}}.txt:in", "--", "cat", "in")
    both = [array, (*submit, "--file", str(file))]
    ids = [office.run(*words).stdout.strip() for words in both]
    assert all(ids)
    office.run("wait", *ids)
    assert office.run("clean", first, single).returncode == 0
    assert [office.run(*words).stdout.strip() for words in both] == ids
    file.write_text(file.read_text().replace("/y:in", "/y:to"))
    refused = office.run(*both[1])
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"the key `members` is that of {ids[1]}" in refused.stderr


def test_an_array_is_repeated_although_what_each_member_took_to_a_place_of_its_own_is_cleaned_up(
    office: Federation, folder: Path
) -> None:
    (folder / "items").write_text("a\nb/c\n")
    items = ("--each-line", str(folder / "items"))
    first = office.submit(*items, "--output", "{}.txt", "--", "sh", "-c", "mkdir -p b; echo {} > {}.txt")
    single = office.submit("--output", "d", "--", "sh", "-c", "mkdir d; echo x > d/x")
    office.run("wait", first, single)
    submit = ("submit", "--quiet", "--key", "places", *items)
    own, shared = ("--input", f"@{first}/{{}}.txt:in/./{{}}"), ("--input", f"@{single}/d:{{}}-d")
    command = ("--", "cat", "in/{}", "{}-d/x")
    second = office.run(*submit, *own, *shared, *command).stdout.strip()
    office.run("wait", second)
    assert [office.run("logs", f"{second}.{member}").stdout for member in (1, 2)] == ["a\nx\n", "b/c\nx\n"]
    assert office.run("clean", first, single).returncode == 0
    again = office.run(*submit, *own, *shared, *command)
    assert (again.returncode, again.stdout.strip()) == (0, second), again.stderr
    elsewhere = ("--input", f"@{first}/{{}}.txt:in/{{}}.txt")
    for inputs in ((*elsewhere, *shared), own, shared):
        refused = office.run(*submit, *inputs, *command)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "with other inputs; use another key" in refused.stderr


def test_all_members_of_an_array_take_what_a_member_of_another_one_leaves(office: Federation, folder: Path) -> None:
    first = made_later(office, folder, "echo {} > {}.txt", "--array", "7-8", "--output", "{}.txt")
    second = office.submit("--array", "1-2", "--input", f"@{first}.2/8.txt:in", "--", "sh", "-c", "cat in; echo {}")
    (folder / "go").touch()
    office.run("wait", second)
    assert [office.run("logs", f"{second}.{member}").stdout for member in (1, 2)] == ["8\n1\n", "8\n2\n"]


def test_a_task_whose_other_one_fails_or_leaves_no_such_file_never_runs(office: Federation, folder: Path) -> None:
    bad = made_later(office, folder, "echo x > x; exit 3", "--output", "x")
    good = made_later(office, folder, "mkdir d; echo x > d/x; echo y > d/y", "--output", "d")
    failed = office.submit("--input", f"@{bad}/x", "--", "true")
    without = office.submit("--input", f"@{good}/d/z", "--", "true")
    behind = office.submit("--after-ok", without, "--", "true")
    (folder / "go").touch()
    assert why_never_run(office, failed) == [f"{bad} did not end with exit code 0 (exit code 3)"]
    assert why_never_run(office, without) == [f"d/z was not there when {good} ended: it left d/x, d/y"]
    assert why_never_run(office, behind) == [f"{without} did not end with exit code 0 (denied)"]
    again = office.run("retry", without)
    assert (again.returncode, why_never_run(office, without)[0][:18]) == (0, "d/z was not there ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["@FIRST/other"], "`other` is no output of FIRST: it declares *.csv, d"),
        (["@FIRST"], "`@FIRST` names no output, such as @FIRST/NAME"),
        (["@FIRST/d:x", "@FIRST/a.csv:x/y"], "two inputs cannot have the names 'x' and 'x/y'"),
        (
            ["@FIRST/{}.csv", "--array", "1-2"],
            "`{}` stands for no item, since the other task has not ended",
        ),
        (["@ARRAY/d"], "ARRAY has 2 tasks: name one, such as @ARRAY.1/d"),
        (["@ARRAY/d", "--array", "1-2"], "ARRAY has not ended: `wait` for it, and submit then"),
    ],
)
def test_what_can_never_be_there_is_refused_at_once(
    office: Federation, folder: Path, options: list[str], said: str
) -> None:
    first = made_later(office, folder, "true", "--output", "d", "--output", "*.csv")
    array = made_later(office, folder, "true", "--output", "d", "--array", "1-2")
    given = [text.replace("FIRST", first).replace("ARRAY", array) for text in options]
    inputs = [part for text in given for part in (("--input", text) if text.startswith("@") else (text,))]
    refused = office.run("submit", *inputs, "--", "true")
    assert (refused.returncode > 0, refused.stdout) == (True, "")
    assert said.replace("FIRST", first).replace("ARRAY", array) in refused.stderr
    office.run("cancel", first)
    office.run("cancel", array)


def test_nobody_takes_outputs_of_tasks_of_another_user(office: Federation, folder: Path) -> None:
    office.folder("top").parent.chmod(0o711)
    waiting = f"while [ ! -e {folder / 'go'} ]; do sleep 0.05; done"
    theirs = str(ask_as(office, STRANGER, "submit", "sh", "-c", waiting)["id"])
    refused = office.run("submit", "--input", f"@{theirs}/x", "--", "true")
    assert f"{theirs} belongs to another user" in refused.stderr
    (folder / "go").touch()
    finish(office, theirs)


def test_what_waits_for_outputs_gets_them_although_the_daemon_is_killed(office: Federation, folder: Path) -> None:
    first = made_later(office, folder, "echo new > x", "--output", "x")
    second = office.submit("--input", f"@{first}/x", "--", "cat", "x")
    restart(office, "top")
    assert office.status(second)["after"] == [after(first, is_met=False)]
    # The folder in which files begin is away, so no content that is new can be taken.
    drafts = office.folder("top") / "files" / "drafts"
    aside = drafts.rename(drafts.with_name("aside"))
    (folder / "go").touch()
    eventually(lambda: office.status(second)["after"] == [after(first, is_met=True)])
    assert f"{second} waits for {first} to end with exit code 0, for its x\n" in office.run("status", second).stdout
    aside.rename(drafts)
    restart(office, "top")
    assert finish(office, second)["attempt"] == 1
    assert office.run("logs", second).stdout == "new\n"
    assert office.status(second)["after"][0]["is_taken"]


def after(on: str, *, is_met: bool) -> dict[str, object]:
    return {"on": on, "when": "ok", "is_met": is_met, "outputs": ["x"], "is_taken": False}


def test_the_outputs_of_the_tasks_of_a_file_go_from_stage_to_stage(office: Federation, folder: Path) -> None:
    file = folder / "tasks.yaml"
    file.write_text(PIPELINE.replace("GO", str(folder / "go")))
    printed = office.run("submit", "--file", str(file), "--key", "stages").stdout.splitlines()[1:]
    ids = {line.split()[0]: line.split()[1] for line in printed}
    assert list(ids) == ["prepare", "fit-1", "fit-2", "report"]
    assert office.run("submit", "--file", str(file), "--key", "stages", "--quiet").stdout.split() == [*ids.values()]
    restart(office, "top")
    (folder / "go").touch()
    finish(office, ids["report"])
    assert office.run("logs", ids["report"]).stdout == "1 a\n2 b\n"
    again = office.run("submit", "--file", str(file), "--key", "stages", "--quiet")
    assert again.stdout.split() == [*ids.values()]
    machines = [office.status(ids[name])["executed_on"] for name in ("prepare", "fit-1")]
    assert machines == ["left", "right"]


def test_a_file_is_repeated_although_some_of_what_it_takes_is_there_by_now(office: Federation, folder: Path) -> None:
    first = made_later(office, folder, "mkdir d; echo x > d/x; echo y > y", "--output", "d", "--output", "y")
    taking = f"'@{first}/d:in', '@{first}/y', '@made/z'"
    text = f"tasks:\n  made: {{command: echo z > z, output: z}}\n  last: {{command: cat in/x y z, input: [{taking}]}}\n"
    file = folder / "tasks.yaml"
    file.write_text(text)
    submit = ("submit", "--file", str(file), "--key", "mixed", "--quiet")
    ids = office.run(*submit).stdout.split()
    assert office.run(*submit).stdout.split() == ids
    (folder / "go").touch()
    finish(office, first)
    assert office.run(*submit).stdout.split() == ids
    finish(office, ids[1])
    assert office.run("logs", ids[1]).stdout == "x\ny\nz\n"
    assert office.run(*submit).stdout.split() == ids
    file.write_text(text.replace(f"'@{first}/y'", f"'@{first}/d/x:y'"))
    other = office.run(*submit)
    assert other.returncode == 2
    assert f"the key `mixed` is that of {ids[1]}" in other.stderr
    assert "with other inputs; use another key" in other.stderr


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("{command: x, input: '@one/y'}", "4:29: `@one/y`: `y` is no output of `one`: it declares d, x"),
        ("{command: x, input: '@many/x'}", "4:29: `@many/x`: `many` is an array"),
        ("{command: x, input: '@grid/x'}", "4:29: `@grid/x`: `grid` is 2 tasks: name one, such as `@grid-1/x`"),
        ("{command: x, input: '@one'}", "4:29: `@one`: it names no output, such as `@one/NAME`"),
        ("{command: x, array: 1-2, input: '@one/d/{}'}", "4:41: `@one/d/{}`: `{}` stands for no item here"),
        ("{command: x, input: ['@one/x', '@one/d:x']}", "two inputs cannot have the names 'x' and 'x'"),
        ("{command: x, input: '@one/x:../x'}", "`../x` cannot be the name of a task's file"),
    ],
)
def test_a_file_whose_tasks_take_what_can_never_be_there_is_refused(
    office: Federation, folder: Path, task: str, said: str
) -> None:
    file = folder / "tasks.yaml"
    one, many = "one: {command: x, output: [x, d]}", "many: {command: x, output: x, array: 1-2}"
    grid = "grid: {command: x, output: x, matrix: {n: [1, 2]}}"
    file.write_text(f"tasks:\n  {one}\n  {many}\n  last: {task}\n  {grid}\n")
    refused = office.run("submit", "--file", str(file))
    assert (refused.returncode, refused.stdout) == (2, "")
    assert said in refused.stderr


def test_python_takes_outputs_of_a_task_that_has_not_ended(office: Federation, folder: Path) -> None:
    first = made_later(office, folder, "echo py > x", "--output", "x")
    with messiahs.connect(module="top", state=office.state) as client:
        second = client.submit(["cat", "in"], inputs=[f"@{first}/x:in"])
        ((waits_for,),) = [each["after"] for each in client.status(second)]
        assert (waits_for["on"], waits_for["outputs"], waits_for["is_taken"]) == (first, ["x"], False)
        (folder / "go").touch()
        client.wait(second)
        assert b"".join(client.logs(second)) == b"py\n"
