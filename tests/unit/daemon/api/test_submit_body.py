"""Refused submits, and differences between submits with the same key."""

import dataclasses

import msgspec
import pytest

from messiahs.core.interface.dependencies import When
from messiahs.core.interface.events import Submitted
from messiahs.core.interface.rows import SubmissionRow
from messiahs.core.model.descriptions import TDV
from messiahs.core.model.environments import ENVIRONMENT_INPUT, ENVIRONMENT_REQUIREMENT
from messiahs.core.model.ids import SystemId, TaskId, part_key
from messiahs.core.model.images import IMAGE_INPUT, IMAGE_REQUIREMENT
from messiahs.core.model.instants import MILLISECOND, Instant
from messiahs.core.origin.submission import COMMAND_TOO_LONG
from messiahs.daemon.api.predecessors import AfterBody
from messiahs.daemon.api.same_key import difference
from messiahs.daemon.api.submit_body import InputBody, SubmitBody, own_key, submitting
from messiahs.daemon.api.submit_checks import checking, problem_of_key
from messiahs.daemon.api.terminal_body import TerminalBody
from messiahs.wire.limits import FILE_LIMIT
from tests.unit.daemon.api.steps import counted, result_of


def _problem_of(body: SubmitBody) -> str:
    return result_of(checking(body))


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"argv": ("",) * 100_000}, COMMAND_TOO_LONG),
        ({"env": {str(number): "" for number in range(100_000)}}, COMMAND_TOO_LONG),
        ({"tdv": {f"a{number}": 1 for number in range(100_000)}}, "a task may state at most 8 attributes of its own"),
        ({"outputs": ("a",) * 100_000}, "100000 outputs, at most 1024 are allowed"),
        ({"name": "x" * 100_000}, "the name of a task has at most 256 characters, and this one has 100000"),
    ],
)
def test_lengths_and_counts_are_judged_before_any_value_and_at_once(said: dict[str, object], problem: str) -> None:
    body = SubmitBody(**{"key": "k", "argv": ("true",), "items": ("\0",) * 10_000, **said})  # type: ignore[arg-type]
    assert counted(checking(body)) == (problem, [])


def test_values_are_checked_in_slices_of_a_bounded_number() -> None:
    items = tuple(map(str, range(50_000)))
    body = SubmitBody(key="k", argv=("{}",), items=items, members=50_000, cwd="{}", outputs=("{}",))
    problem, costs = counted(checking(body))
    assert not problem
    assert len(costs) > 3 * 50_000 // 256
    assert max(costs) <= MILLISECOND


def test_a_folder_with_many_places_for_a_long_item_is_not_written_out() -> None:
    body = SubmitBody(key="k", argv=("true",), members=1, items=("x" * 4_000_000,), cwd="{}" * 2_000)
    assert _problem_of(body) == "a text of 8000000000 bytes, at most 4096 are allowed"


@pytest.mark.parametrize(("count", "problem"), [(FILE_LIMIT, ""), (18_000, "18000 outputs, at most 1024 are allowed")])
def test_as_many_outputs_are_declared_as_can_travel(count: int, problem: str) -> None:
    body = SubmitBody(key="k", argv=("true",), outputs=tuple(f"{number:x}" for number in range(count)))
    assert _problem_of(body) == problem


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"cwd": "x\n"}, "control characters in 'x\\n'"),
        ({"cwd": "{}", "items": ("a", "b\n")}, "control characters in 'b\\n'"),
        ({"cwd": "{}{}", "items": ("a", "b" * 3_000)}, "a text of 6000 bytes, at most 4096 are allowed"),
        ({"cwd": "x", "items": ("a", "b\n")}, ""),
        ({"cwd": "../../usr"}, "`cwd` leads above the working folder of the task"),
        ({"cwd": "x/{}", "items": ("a", "../..")}, "`cwd` leads above the working folder of the task"),
        ({"cwd": "x/../y/{}", "items": ("a", "..")}, ""),
        ({"cwd": "/usr/../.."}, ""),
        ({"items": ("a", "b\0")}, "a NUL byte cannot be passed to a program"),
        ({"terminal": TerminalBody(rows=24, columns=80)}, ""),
        ({"terminal": TerminalBody(rows=24, columns=80), "items": ("a", "b")}, "an array cannot have a terminal"),
        (
            {"terminal": TerminalBody(rows=24, columns=80), "retries": 1},
            "a task with a terminal runs once, since what was typed is gone: it has no retries",
        ),
    ],
)
def test_what_no_machine_would_take_is_refused_for_each_member(said: dict[str, object], problem: str) -> None:
    body = SubmitBody(**{"key": "k", "argv": ("echo", "{}"), "members": len(said.get("items", ())), **said})  # type: ignore[arg-type]
    assert _problem_of(body) == problem


@pytest.mark.parametrize(("when", "count", "is_refused"), [("each", 4, False), ("each", 5, True), ("ok", 5, False)])
def test_an_array_waits_member_by_member_for_few_others(when: str, count: int, *, is_refused: bool) -> None:
    after = tuple(AfterBody(on=f"left.{number}", when=When(when)) for number in range(1, count + 1))
    problem = _problem_of(SubmitBody(key="k", argv=("true",), members=2, after=after))
    assert problem == ("a task waits for at most 256 others, 4 of them with --after-each" if is_refused else "")


KEY = own_key("ann", "k")
TASK_TDV = TDV((("cpus", 1), ("origin", "left"), ("user", "ann")))
BODY = SubmitBody(key="k", argv=("echo", "a b"), env={"A": "1"}, members=2, items=("x", "y"), name="n", outputs=("o",))
FILE = InputBody(name="in", sha256="ab" * 32, size=1)


def _submitted(tdv: TDV = TASK_TDV, **said: object) -> Submitted:
    body = SubmitBody(**{field: getattr(BODY, field) for field in SubmitBody.__struct_fields__} | said)
    return result_of(submitting(body, tdv, key=KEY, notification=None))


def _stored() -> SubmissionRow:
    parts = {field.name for field in dataclasses.fields(SubmissionRow)}
    said = {name: value for name, value in _as_dict(_submitted()).items() if name in parts}
    return SubmissionRow(id=TaskId(SystemId("left"), 1, 17), submitted_at=Instant(1), **said)  # type: ignore[arg-type]


def _as_dict(event: Submitted) -> dict[str, object]:
    return {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}


@pytest.mark.parametrize("key", ["", "x" * 65])
def test_a_key_has_1_to_64_characters(key: str) -> None:
    assert problem_of_key(key) == "the key of a submit must have 1 to 64 characters"
    assert problem_of_key("x" * 64) == ""


def test_no_key_of_a_single_submit_is_that_of_a_part_of_a_workflow() -> None:
    parts = {part_key(own_key("ann", "k"), place) for place in range(2)}
    assert len(parts) == 2
    for key in ("k", "k/0", "0:ann:k", ":0:ann:k"):
        assert own_key("ann", key) not in parts


def test_a_repeated_submit_is_the_same_whatever_its_deadline() -> None:
    assert difference(_stored(), _submitted()) == ""
    assert difference(_stored(), _submitted(deadline_s=5)) == ""


def test_a_repeated_submit_is_the_same_if_an_earlier_release_stored_no_size_of_its_inputs() -> None:
    files = (InputBody(name="in", sha256="ab" * 32, size=1 << 20),)
    submitted = _submitted(inputs=files)
    assert dict(submitted.tdv.pairs)["input_size"] == 1 << 20
    stored = dataclasses.replace(_stored(), command=submitted.command)
    assert difference(stored, submitted) == ""


def test_the_input_size_of_an_array_is_that_of_the_member_with_the_largest_inputs() -> None:
    shared, own, other = (
        InputBody(name=name, sha256=sha256 * 32, size=size << 20)
        for name, sha256, size in (("in", "ab", 4), ("own", "cd", 3), ("other", "ef", 5))
    )
    again = InputBody(name="again", sha256=shared.sha256, size=shared.size)
    for members, size in (((), 4), (((own,), ()), 8), (((own,), (other,)), 16), (((again,), ()), 4)):
        stated = dict(_submitted(inputs=(shared,), member_inputs=members).tdv.pairs)
        assert stated["input_size"] == size << 20


def test_another_command_under_the_same_key_is_named_beside_the_first() -> None:
    found = difference(_stored(), _submitted(argv=("rm", "x")))
    assert found == "whose command is `echo 'a b'`, and this one's is `rm x`"


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ({"env": {"A": "2"}}, "environment"),
        ({"inputs": (FILE,)}, "inputs"),
        ({"member_inputs": ((FILE,), ())}, "inputs"),
        ({"outputs": ()}, "outputs"),
        ({"items": ("x", "z")}, "members"),
        ({"tdv": TDV((("cpus", 2), *TASK_TDV.pairs[1:]))}, "needs or stated attributes"),
        ({"requirement": "$x = 1"}, "requirement"),
        ({"name": "m"}, "name"),
        ({"retries": 1}, "`--retries`"),
        ({"waits": False, "name": "m"}, "name, `--no-wait`"),
    ],
)
def test_whatever_else_differs_under_the_same_key_is_named(said: dict[str, object], what: str) -> None:
    tdv = said.pop("tdv", TASK_TDV)
    assert isinstance(tdv, TDV)
    assert difference(_stored(), _submitted(tdv, **said)) == f"whose command is `echo 'a b'`, with other {what}"


def test_a_long_command_is_shown_in_part() -> None:
    assert len(difference(_stored(), _submitted(argv=("x" * 100_000,)))) < 400


@pytest.mark.parametrize("item", ["../../../tasks", "/etc/passwd", "", "a\0b", "..", "a//b"])
def test_no_item_makes_the_name_of_an_output_lead_out_of_the_working_directory(item: str) -> None:
    body = SubmitBody(key="k", argv=("true",), outputs=("{}",), items=("fine/name", item), members=2)
    assert "is not a relative path" in _problem_of(body)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"name": "n" * 256, "retries": 1_000}, ""),
        ({"name": "n" * 300}, "the name of a task has at most 256 characters, and this one has 300"),
        ({"retries": 1_001}, "a task can be retried at most 1000 times"),
        ({"deadline_s": 400_000_000}, "a deadline may be at most 316224000 s (10 years) away"),
    ],
)
def test_an_exceeded_limit_is_reported_with_the_allowed_value(said: dict[str, object], problem: str) -> None:
    body = msgspec.json.decode(msgspec.json.encode({"key": "k", "argv": ["true"], **said}), type=SubmitBody)
    assert _problem_of(body) == problem


def test_names_that_are_too_long_to_travel_are_refused_at_once() -> None:
    body = SubmitBody(key="k", argv=("true",), outputs=tuple(f"{number}/{'n' * 254}" for number in range(1_024)))
    assert "take 329" in _problem_of(body)
    assert "at most 327680 are allowed" in _problem_of(body)


@pytest.mark.parametrize(
    ("shared", "own", "clash"),
    [
        (("a", "b/c", "b/d"), ("b/cc", "b-c", "bb"), ""),
        (("a", "b"), ("b",), "'b' and 'b'"),
        (("a", "b"), ("b/c",), "'b' and 'b/c'"),
        (("a/b/c", "a-"), ("a",), "'a' and 'a/b/c'"),
        ((), ("x/y", "x"), "'x' and 'x/y'"),
        (("x/y", "x"), (), "'x' and 'x/y'"),
    ],
)
def test_no_input_of_one_task_is_in_the_way_of_those_of_all(
    shared: tuple[str, ...], own: tuple[str, ...], clash: str
) -> None:
    inputs, members = _inputs(shared), ((), _inputs(own), ())
    body = SubmitBody(key="k", argv=("true",), inputs=inputs, member_inputs=members, members=3)
    assert _problem_of(body) == (f"two inputs cannot have the names {clash}" if clash else "")


def test_inputs_of_all_are_not_looked_at_again_for_each_task() -> None:
    looked_at = 0

    class Name(str):
        __slots__ = ()

        def split(self, *_: object) -> list[str]:
            nonlocal looked_at
            looked_at += 1
            return [str(self)]

    inputs = _inputs(tuple(Name(f"in{number}") for number in range(4_000)))
    members = (_inputs(("own",)),) * 200
    assert _problem_of(SubmitBody(key="k", argv=("true",), inputs=inputs, member_inputs=members, members=200)) == ""
    assert looked_at == len(inputs)


def test_one_task_has_no_more_inputs_than_can_travel() -> None:
    # Each takes 80 bytes, so that as many as these take exactly what is allowed.
    inputs = _inputs(tuple(f"{number:016}" for number in range(4_096)))
    assert _problem_of(SubmitBody(key="k", argv=("true",), inputs=inputs)) == ""
    text = "take {} bytes to describe (names, targets of links, and 64 bytes for each), at most 327680 are allowed"
    own = SubmitBody(key="k", argv=("true",), inputs=inputs, member_inputs=((), _inputs(("own",))), members=2)
    assert text.format(327_680 + 67) in _problem_of(own)
    outputs = SubmitBody(key="k", argv=("true",), inputs=inputs, outputs=("x{}",), items=("abcd",), members=1)
    assert text.format(327_680 + 64 + 3 + 4) in _problem_of(outputs)


@pytest.mark.parametrize(("parts", "is_refused"), [(256, False), (257, True)])
def test_no_input_lies_in_more_folders_than_an_executor_makes(parts: int, *, is_refused: bool) -> None:
    body = SubmitBody(key="k", argv=("true",), inputs=_inputs(("/".join("a" * parts),)))
    assert _problem_of(body).startswith("an input may be in at most 255 folders: a/a/") == is_refused
    assert bool(_problem_of(body)) == is_refused


def test_outputs_of_very_many_tasks_are_refused_before_each_of_their_names_is_checked() -> None:
    outputs = tuple(f"{number:x}-{{}}" for number in range(FILE_LIMIT))
    body = SubmitBody(key="k", argv=("true",), outputs=outputs, items=("",) * 100_000, members=100_000)
    assert _problem_of(body) == "102400000 outputs with {} of all tasks together, at most 4194304 are allowed"


def _inputs(names: tuple[str, ...]) -> tuple[InputBody, ...]:
    return tuple(InputBody(name=name, sha256="ab" * 32, size=1) for name in names)


def _problem_of_inputs(*inputs: InputBody, **said: object) -> str:
    return _problem_of(SubmitBody(key="k", argv=("true",), inputs=inputs, **said))  # type: ignore[arg-type]


def test_links_and_empty_folders_are_accepted_without_content() -> None:
    link, folder = InputBody(name="data/link", link="../x"), InputBody(name="none", folder=True)
    assert _problem_of_inputs(FILE, link, folder) == ""
    (_, first, second) = _submitted(inputs=(FILE, link, folder)).command.inputs
    assert (first.link_target, first.is_file, first.sha256) == ("../x", False, b"")
    assert (second.is_folder, second.is_file) == (True, False)


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (InputBody(name="link", link="../x"), "the link 'link' leads to '../x', out of the working directory"),
        (InputBody(name="link", link="/x"), "out of the working directory"),
        (InputBody(name="link", link="x", folder=True), "of several kinds"),
        (InputBody(name="link", link="x", sha256="ab" * 32), "has no content"),
        (InputBody(name="none", folder=True, executable=True), "has no content"),
        (InputBody(name="none", folder=True, size=1), "of several kinds"),
        (InputBody(name="file"), "is not a SHA-256"),
        (InputBody(name="in/below", folder=True), "two inputs cannot have the names"),
        (InputBody(name="a\udcff", folder=True), "names must be UTF-8"),
        (InputBody(name="link", link="a\udcff"), "names must be UTF-8"),
    ],
)
def test_odd_inputs_are_refused(bad: InputBody, problem: str) -> None:
    assert problem in _problem_of_inputs(FILE, bad)
    assert problem in _problem_of_inputs(FILE, members=1, member_inputs=((bad,),))


def test_names_and_targets_of_one_task_are_bounded_together() -> None:
    links = tuple(InputBody(name=f"link{number}", link="x/" * 2_000) for number in range(81))
    assert "bytes to describe" in _problem_of_inputs(*links)
    half = links[:20]
    assert _problem_of_inputs(*half) == ""
    assert "bytes to describe" in _problem_of_inputs(*half, members=1, member_inputs=(links[20:],))


IMAGE = InputBody(name=IMAGE_INPUT, sha256="cd" * 32, size=1)


@pytest.mark.parametrize("requirement", ["", "$slots > 1", IMAGE_REQUIREMENT, f"($slots > 1) and {IMAGE_REQUIREMENT}"])
def test_a_task_with_an_image_requires_a_machine_that_unpacks_it_whoever_submits_it(requirement: str) -> None:
    body = SubmitBody(key="k", argv=("true",), tdv={"image": IMAGE.sha256}, inputs=(FILE, IMAGE))
    assert _problem_of(body) == ""
    tdv = TDV((("image", IMAGE.sha256), ("user", "ann")))
    stored = result_of(
        submitting(msgspec.structs.replace(body, requirement=requirement), tdv, key=KEY, notification=None)
    )
    plain = requirement.removesuffix(IMAGE_REQUIREMENT).removesuffix(" and ").strip("()")
    assert stored.requirement == (f"({plain}) and {IMAGE_REQUIREMENT}" if plain else IMAGE_REQUIREMENT)
    assert _submitted(requirement=requirement).requirement == requirement


@pytest.mark.parametrize(
    ("image", "inputs"),
    [
        (IMAGE.sha256, ()),
        (IMAGE.sha256, (FILE,)),
        (IMAGE.sha256, (msgspec.structs.replace(IMAGE, name="image"),)),
        (FILE.sha256, (FILE, IMAGE)),
        ("debian:12", (IMAGE,)),
        (7, (IMAGE,)),
    ],
)
def test_an_image_that_the_task_does_not_bring_is_refused(image: str | int, inputs: tuple[InputBody, ...]) -> None:
    body = SubmitBody(key="k", argv=("true",), tdv={"image": image}, inputs=inputs)
    assert "image" in _problem_of(body)


@pytest.mark.parametrize(
    ("tdv", "problem"),
    [
        ({"gpus": -1}, "$gpus is out of range"),
        ({"gpus": "two"}, "$gpus must be an integer"),
        ({"gpus": 0}, ""),
        ({"mem": -1}, "$mem is out of range"),
        ({"mem": 0}, "$mem must be more than 0: leave it out if the task states no memory"),
        ({"disk": 0}, "$disk must be more than 0: leave it out if the task states no disk"),
        ({"est_time": 0}, "$est_time must be more than 0: leave it out if the task states no time"),
        ({"est_time": 1}, ""),
        ({"priority": -100}, ""),
        ({"priority": 101}, "$priority must be from -100 to 100"),
        ({"priority": -(2**62)}, "$priority must be from -100 to 100"),
        ({"priority": "high"}, "$priority must be an integer"),
        ({"own": -1}, ""),
        ({"comm_load": -1}, "$comm_load is out of range"),
        ({"input_size": 5}, "$input_size cannot be set by users"),
    ],
)
def test_a_stated_attribute_that_everybody_knows_has_a_value_of_its_kind(
    tdv: dict[str, int | str], problem: str
) -> None:
    assert _problem_of(SubmitBody(key="k", argv=("true",), tdv=tdv)) == problem


ENVIRONMENT = InputBody(name=ENVIRONMENT_INPUT, sha256="cd" * 32, size=5)


def test_a_task_with_an_environment_requires_a_machine_that_shows_it_whoever_submits_it() -> None:
    body = SubmitBody(key="k", argv=("true",), tdv={"environment": ENVIRONMENT.sha256}, inputs=(ENVIRONMENT,))
    assert _problem_of(body) == ""
    tdv = TDV((("environment", ENVIRONMENT.sha256), ("user", "ann")))
    assert result_of(submitting(body, tdv, key=KEY, notification=None)).requirement == ENVIRONMENT_REQUIREMENT


@pytest.mark.parametrize(
    ("tdv", "inputs", "said"),
    [
        ({"environment": "cd" * 32}, (), "which is among the inputs as `.messiahs-environment`"),
        ({"environment": "ab" * 32}, (ENVIRONMENT,), "which is among the inputs"),
        ({"environment": "cd" * 32, "image": IMAGE.sha256}, (ENVIRONMENT, IMAGE), "not both"),
    ],
)
def test_an_environment_that_the_task_does_not_bring_is_refused(
    tdv: dict[str, str | int], inputs: tuple[InputBody, ...], said: str
) -> None:
    assert said in _problem_of(SubmitBody(key="k", argv=("true",), tdv=tdv, inputs=inputs))
