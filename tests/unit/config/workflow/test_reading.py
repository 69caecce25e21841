"""Files of tasks: what they mean, and every problem at its line and column."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from messiahs.cli.task.commands import submit
from messiahs.config.workflow import reading
from messiahs.config.workflow.options import OPTIONS
from messiahs.config.workflow.reading import Workflow, WorkflowTask, load_workflow, read_workflow
from messiahs.core.interface.dependencies import When
from messiahs.core.interface.limits import WORKFLOW_LIMIT
from messiahs.core.model.output_names import why_never_left
from messiahs.errors import ClientError, WorkflowError
from tests.property.budget import examples

NO_PREDICATE = (
    "`$x >` is not a predicate: 1:5: the second operand is missing at the end "
    "(compare with a variable, an integer or a string)"
)
NOT_OF_TASKS = {"module", "state", "json", "quiet", "help", "file", "key"}


def read(text: str) -> Workflow:
    return read_workflow(text, "tasks.yaml")


def problems(text: str) -> tuple[str, ...]:
    with pytest.raises(WorkflowError) as raised:
        read(text)
    return raised.value.problems


def task(text: str) -> WorkflowTask:
    (only,) = read(f"tasks: {{a: {text}}}").tasks
    return only


def check_places(lines: tuple[str, ...]) -> None:
    assert lines
    for line in lines:
        assert re.match(r"tasks\.yaml:[1-9]\d*:[1-9]\d*: .", line)


def waits(workflow: Workflow) -> dict[str, list[str]]:
    names = [one.name for one in workflow.tasks]
    return {one.name: [f"{names[on]} {when}" for on, when in one.within] for one in workflow.tasks}


def test_the_keys_of_a_task_are_the_options_of_submit() -> None:
    options = {name.removeprefix("--") for each in submit.params for name in each.opts if name.startswith("--")}
    assert options - NOT_OF_TASKS == set(OPTIONS)


def test_a_command_is_a_list_of_words_or_a_text_for_the_shell() -> None:
    assert task("{command: [echo, 007, 1.50, '{}']}").command == ("echo", "007", "1.50", "{}")
    assert task("{command: echo $HOME}").command == ("sh", "-c", "echo $HOME")


def test_options_are_those_of_the_python_api(tmp_path: Path) -> None:
    (tmp_path / "site.env").write_text("A=file\nB=file\n")
    (tmp_path / "data").touch()
    file = tmp_path / "tasks.yaml"
    file.write_text("""
defaults: {env: {C: all}, set: {side: left}, mem: 1GiB, time: 1h}
tasks:
  a:
    command: [x]
    mem: 500MB
    env-file: site.env
    env: {B: 2.50}
    set: {n: 7, t: "7"}
    use: {seats: 2}
    input: [data:d, "@left.3/x"]
    output: out
    no-wait: true
    priority: -3
    after-ok: [left.1, right.2.4]
""")
    (one,) = load_workflow(file).tasks
    assert one.options == {
        "name": "a",
        "mem": 500_000_000,
        "time": 3600,
        "env": {"A": "file", "B": "2.50", "C": "all"},
        "attributes": {"side": "left", "n": 7, "t": "7"},
        "uses": {"seats": 2},
        "inputs": [f"{tmp_path}/data:d", "@left.3/x"],
        "outputs": ["out"],
        "waits": False,
        "priority": -3,
        "after_ok": ["left.1", "right.2.4"],
    }


def test_a_matrix_has_a_task_for_each_combination() -> None:
    workflow = read("""
tasks:
  train:
    matrix: {seed: [1, 2], rate: [0.10, a b]}
    command: [run, "{seed}", "{rate}", "${seed}", "{other}"]
    env: {R: "{rate}"}
    cpus: "{seed}"
    set: {n: "{seed}"}
    output: ["{seed}.out"]
""")
    assert [one.name for one in workflow.tasks] == ["train-1-0.10", "train-1-a-b", "train-2-0.10", "train-2-a-b"]
    last = workflow.tasks[-1]
    assert last.command == ("run", "2", "a b", "${seed}", "{other}")
    assert last.options == {
        "env": {"R": "a b"},
        "cpus": 2,
        "attributes": {"n": 2},
        "outputs": ["2.out"],
        "name": "train-2-a-b",
    }


def test_a_task_takes_outputs_of_tasks_of_the_file_and_waits_for_them(tmp_path: Path) -> None:
    file = tmp_path / "tasks.yaml"
    file.write_text("""
tasks:
  report: {command: x, input: ["@fit-a-b/fit:one", "@left.3/x", "@fit-2/"], after: fit-2}
  fit: {matrix: {seed: [a b, 2]}, command: x, output: fit, input: "@make/parts/{seed}.csv"}
  "make": {command: x, output: "parts/*.csv"}
""")
    with pytest.raises(WorkflowError, match="3:65: `@fit-2/`: it names no output, such as `@fit-2/NAME`"):
        load_workflow(file)
    file.write_text(file.read_text().replace('"@fit-2/"', '"@fit-2/fit:two/"'))
    workflow = load_workflow(file)
    assert [(one.name, one.outputs) for one in workflow.tasks] == [
        ("make", ()),
        ("fit-a-b", ((0, "parts/a b.csv", ""),)),
        ("fit-2", ((0, "parts/2.csv", ""),)),
        ("report", ((1, "fit", "one"), (2, "fit", "two/"))),
    ]
    assert workflow.tasks[3].within == ((2, When.STARTED), (1, When.OK), (2, When.OK))
    assert (workflow.tasks[1].options["inputs"], workflow.tasks[3].options["inputs"]) == ([], ["@left.3/x"])


@pytest.mark.parametrize(
    ("declared", "name", "may"),
    [
        ("d", "d", True),
        ("d", "d/e", True),
        ("d/e", "d", True),
        ("*.csv", "a.csv", True),
        ("*.csv", "a.txt", False),
        ("d?/e/*.csv", "d1", True),
        ("d?/e/*.csv", "d1/e", True),
        ("d?/e/*.csv", "x", False),
        ("**/*.csv", "anything", True),
        ("d/e", "d/f", False),
        ("d", "dd", False),
    ],
)
def test_whether_a_task_may_leave_something_follows_from_what_it_declares(
    declared: str, name: str, *, may: bool
) -> None:
    assert why_never_left([declared], name, of="left.1") == (
        "" if may else f"`{name}` is no output of left.1: it declares {declared}"
    )


def test_a_matrix_is_waited_for_as_a_whole_or_by_values() -> None:
    workflow = read("""
tasks:
  make: {command: x}
  train: {matrix: {seed: [1, 2]}, command: x, after-ok: make}
  "score-{seed}": {matrix: {seed: [1, 2]}, command: x, after-ok: "train-{seed}"}
  all: {command: x, after-any: ["score-{seed}"], after: train}
  first: {command: x, after-ok: train-1}
""")
    assert waits(workflow) == {
        "make": [],
        "train-1": ["make ok"],
        "train-2": ["make ok"],
        "score-1": ["train-1 ok"],
        "score-2": ["train-2 ok"],
        "all": ["train-1 started", "train-2 started", "score-1 ended", "score-2 ended"],
        "first": ["train-1 ok"],
    }


def test_tasks_come_after_those_for_which_they_wait_and_else_as_in_the_file() -> None:
    workflow = read("tasks: {a: {command: x, after: c}, b: {command: x}, c: {command: x, after: d}, d: {command: x}}")
    assert [one.name for one in workflow.tasks] == ["b", "d", "c", "a"]
    assert workflow.tasks[3].within == ((2, When.STARTED),)


def test_arrays_are_as_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "names").write_text("x\n\ny\n")
    file = tmp_path / "tasks.yaml"
    file.write_text("""
tasks:
  a: {command: x, array: 0-9:5%1}
  b: {command: x, each-line: names}
  c: {command: x, array: 1-2, after-each: b}
""")
    a, b, c = load_workflow(file).tasks
    assert a.numbers is not None
    assert (list(a.numbers.numbers), a.numbers.at_once) == ([0, 5], 1)
    assert b.lines == ("x", "y")
    assert c.within == ((1, When.EACH),)


def test_all_problems_are_found_at_once_each_at_its_place() -> None:
    assert problems("""
defaults: {memm: 3, time: 90}
tasks:
  one: {command: [], after: two, cpus: many, inptu: x, input: nope.txt}
  two: {after-ok: [one, left.3, onne], command: 3, no-wait: 1}
  three: {command: x, env: [A], matrix: {1a: [1], z: [], q: 3}, require: "$x >"}
  9x: {command: x, array: 5-1, env: {A: true, B: null}}
""") == (
        "tasks.yaml:2:12: unknown key `memm`; did you mean `mem`?",
        "tasks.yaml:2:27: `time`: `90` is not a duration: it needs a unit, as in 90s or 90min or 90h",
        "tasks.yaml:4:9: `command` is a list of a program and its words, or a text for `sh -c`, not a list",
        "tasks.yaml:4:29: these tasks wait for each other, so none can run: `one` waits for `two` waits for `one`",
        "tasks.yaml:4:40: `cpus`: `many` is not a whole number from 1",
        "tasks.yaml:4:46: unknown key `inptu`; did you mean `input`?",
        "tasks.yaml:4:63: `input`: there is no `nope.txt`",
        "tasks.yaml:5:33: `onne` is no task of this file, and no id such as laptop.17; did you mean `one`?",
        "tasks.yaml:5:40: `command` is a list of a program and its words, or a text for `sh -c`, not `3`",
        "tasks.yaml:5:61: `no-wait` is true or false, not `1`",
        "tasks.yaml:6:23: `env` has values by their names, as in `env: {NAME: 1}`",
        "tasks.yaml:6:42: `1a` is no variable of a matrix: letters, digits and `_`, no digit first",
        "tasks.yaml:6:51: `z` needs a list of values, such as [1, 2], not an empty list",
        "tasks.yaml:6:58: `q` needs a list of values, such as [1, 2], not `3`",
        f"tasks.yaml:6:74: `require`: {NO_PREDICATE}",
        "tasks.yaml:7:3: `9x` is no name of a task: letters, digits, `_`, `-` and `.`, a letter first, at most 200",
        "tasks.yaml:7:27: `array`: `5-1`: a range does not descend",
        "tasks.yaml:7:41: `A` of `env` is a text, not `true`: put it into quotes",
        "tasks.yaml:7:50: `B` of `env` is a text, not nothing",
    )


def test_values_that_no_task_can_have_are_found_with_all_other_problems() -> None:
    assert problems("""
tasks:
  one: {command: x, output: [../x, "{}/../y"], env: {B=C: 1}, cpus: many}
  two: {command: x, cwd: .., notify: "ftp://x"}
""") == (
        "tasks.yaml:3:30: `output`: `../x` cannot be the name of a task's file: it leads out of its folder",
        "tasks.yaml:3:54: `env`: `B=C` names no variable: a name has no blanks, `=` or `#`",
        "tasks.yaml:3:69: `cpus`: `many` is not a whole number from 1",
        "tasks.yaml:4:26: `cwd` .. leads above the working folder of the task: a folder of the machine begins with /",
        "tasks.yaml:4:38: `notify`: ftp:// is no webhook, whose URL begins with https:// or http://",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "1:1: a file of tasks is a mapping with the key `tasks`"),
        ("{}", "1:1: a file of tasks is a mapping with the key `tasks`"),
        ("tasks: {}", "1:8: `tasks` has no task"),
        ("tasks: {a: {command: x}, a: {command: y}}", "1:26: found duplicate key"),
        ("tasks: {a: {command: x, matrix: {v: [1, 1]}}}", "1:41: `v` has the value `1` twice"),
        ("tasks: {a: {command: x, matrix: {v: [1]}}, a-1: {command: y}}", "1:44: there is another task `a-1`"),
        (
            "tasks: {a: {command: x, array: 1-2}, b: {command: x, after-each: a}}",
            "`after-each` joins two arrays member by member, and `b` is a single task: write `after-ok`",
        ),
        (
            "tasks: {a: {command: x}, b: {command: x, after-each: a}}",
            "`after-each` joins two arrays member by member, and `b` and `a` are single tasks: write `after-ok`",
        ),
        (
            "tasks: {a: {command: x, array: 1-2}, b: {command: x, array: 1-3, after-each: a}}",
            "`after-each` needs two arrays of as many members: `b` has 3 and `a` 2",
        ),
        ("tasks: {a: {command: x, after: a}}", "so none can run: `a` waits for `a`"),
        ("tasks: {a: {command: x, array: 1-2, each-line: nope}}", "`nope` cannot be read"),
        ("tasks: {a: {command: x, input: 5}}", "there is no `5`"),
        (
            "tasks: {a: {command: x}, b: {command: x, input: '@a/o'}}",
            "`o` is no output of `a`: it declares none",
        ),
        ("tasks: {a: {command: x, image: nowhere.tar}}", "`image`: there is no `nowhere.tar`"),
        (
            f"tasks: {{a: {{command: x, after: [{', '.join(f'left.{n}' for n in range(1, 259))}]}}}}",
            "at most 256 others",
        ),
        (
            "tasks: {one: {command: x}, b: {command: x, input: '@onne/q', after: two}}",
            "1:51: `onne` is no task of this file, and no id such as laptop.17; did you mean `one`?",
        ),
        ("tasks: {b: {command: x, input: '@onne/q', after: two}}", "`two` is no task of this file"),
        ("\ttasks: x", "1:1: this is not YAML: found character '\\t' that cannot start any token"),
        ("[" * 600, "1:34: lists and mappings are nested more than 32 deep"),
        (
            f"tasks: {{t: {{command: [x], cpus: 0x{'f' * 5_000}}}}}",
            "1:33: a number has at most 100 characters: put a text into quotes",
        ),
        ("a: &a [x, x]\nb: &b [*a, *a]\ntasks: *b", "2:8: `*a` stands in a value that has a name"),
        ("tasks: {a: {command: !run x}}", "`command` is a list of a program and its words"),
        ("tasks: {a: {command: !!python/object/apply:os.system [x], after: b}}", "`b` is no task of this file"),
    ],
)
def test_what_is_no_file_of_tasks_is_refused(text: str, said: str) -> None:
    assert any(said in line for line in problems(text)), problems(text)


def test_too_many_tasks_are_refused_before_they_are_made() -> None:
    many = ", ".join(map(str, range(2_000)))
    (line,) = problems(f"tasks: {{a: {{command: x, matrix: {{x: [{many}], y: [{many}], z: [{many}]}}}}}}")
    assert f"a file has at most {WORKFLOW_LIMIT} tasks, not 8000000000" in line


def test_a_file_that_is_too_large_or_no_text_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LIMIT_BYTES", 100)
    file = tmp_path / "tasks.yaml"
    for content, said in ((b"#" * 101, "it is longer than 100 bytes"), (b"\xff", "it is not UTF-8")):
        file.write_bytes(content)
        with pytest.raises(ClientError, match=re.escape(said)) as raised:
            load_workflow(file)
        assert raised.value.code == ClientError.USAGE


WORDS = st.sampled_from(
    ["a", "b", "a-1", "left.3", "{v}", "b-{v}", "1", "2.50", "true", "~", "1GiB", "[a, b]", "{}", "{v: 1}", "x y", "*a"]
)
KEYS = st.sampled_from(["command", "matrix", "v", "x", *OPTIONS])
TASKS = st.dictionaries(st.sampled_from(["a", "b", "b-{v}", "9"]), st.dictionaries(KEYS, WORDS | st.text(max_size=9)))


@examples(200)
@given(tasks=TASKS, has_matrix=st.booleans())
def test_any_file_has_tasks_or_problems_with_places(tasks: dict[str, dict[str, str]], *, has_matrix: bool) -> None:
    lines = ["tasks:"]
    for name, options in tasks.items():
        lines += [f"  {name}:", "    command: x"] + ["    matrix: {v: [1, 2]}"] * has_matrix
        lines += [f"    {key}: {value}" for key, value in options.items() if key != "command"]
    try:
        workflow = read("\n".join(lines))
    except WorkflowError as error:
        check_places(error.problems)
    else:
        assert workflow.tasks
        assert all(on < place for place, one in enumerate(workflow.tasks) for on, _ in one.within)


@examples(200)
@given(text=st.text(alphabet="tasks: {}[]&*!\n-'\"ab,|>#%@`\t"))
def test_any_text_has_tasks_or_problems_with_places(text: str) -> None:
    try:
        read(text)
    except WorkflowError as error:
        check_places(error.problems)


@pytest.mark.parametrize(
    ("head", "style"),
    [
        ("tasks:\n", "  t{}: {{command: x}}\n"),
        ("tasks:\n", "  t{}:\n    command: x\n"),
        ("tasks: {\n", "t{}: {{command: x}},\n"),
        ("{tasks: {\n", "t{}: {{command: x}},\n"),
    ],
)
def test_a_file_of_too_many_tasks_is_read_no_further(head: str, style: str) -> None:
    tasks = "".join(style.format(number) for number in range(WORKFLOW_LIMIT + 1))
    # What follows is no YAML.
    (line,) = problems(f"{head}{tasks}]")
    assert line.endswith(f": a file has at most {WORKFLOW_LIMIT} tasks: an `array` of up to a million counts as one")


def test_of_a_long_cycle_its_ends_are_shown() -> None:
    tasks = "".join(f"  t{number}: {{command: x, after: [t{(number + 1) % 100}]}}\n" for number in range(100))
    (line,) = problems("tasks:\n" + tasks)
    path = [f"`t{number}`" for number in (0, 1, 2, 3)] + ["… (94 more)", "`t98`", "`t99`", "`t0`"]
    assert line.endswith(": these tasks wait for each other, so none can run: " + " waits for ".join(path))


def test_of_many_problems_the_first_ones_are_shown_and_the_others_counted() -> None:
    lines = problems("tasks:\n" + "".join(f"  t{number}: {{x: y, command: z}}\n" for number in range(150)))
    assert (len(lines), lines[-1]) == (101, "tasks.yaml: 50 more problems")
    assert lines[99].startswith("tasks.yaml:101:")
