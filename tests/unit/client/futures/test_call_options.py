"""Options that tasks have, and tasks of calls do not."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from messiahs.client.futures.call_options import checked_call_options
from messiahs.client.futures.executor import Executor
from messiahs.client.inputs import Source
from messiahs.client.task_options import TaskOptions
from messiahs.errors import ClientError
from tests.unit.client.local_api_peer import StartPeer
from tests.waiting import eventually


@pytest.fixture
def executor(start_peer: StartPeer, tmp_path: Path) -> Iterator[Executor]:
    peer = start_peer((200, {"id": "left.1"}), state=tmp_path)
    peer.by_path = {
        "/v1/endings": {"ids": [], "gap": False, "after": "1"},
        "/v1/tasks?": {"tasks": [{"id": "left.1.1", "state": "executing"}], "unknown": []},
        "/cancel": {"id": "left.1"},
    }
    with Executor(module="left", state=tmp_path) as made:
        yield made
        eventually(lambda: any(method == "PUT" for method, _, _ in peer.asked))
        made.cancel_all()


@pytest.mark.parametrize("first", ["ndesk", True, 2.5])
def test_a_name_in_the_place_of_a_number_is_refused_with_how_a_module_is_named(first: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"`max_workers` is a whole number, not .*") as caught:
        Executor(cast("int", first))
    assert isinstance(caught.value, ValueError) or "a module is named with `module=`" in str(caught.value)


@pytest.mark.parametrize("given", [{"key": "again"}, {"outputs": ["results.csv"]}])
def test_options_that_would_do_nothing_are_refused(executor: Executor, given: Mapping[str, object]) -> None:
    with pytest.raises(TypeError, match=f"no option `{next(iter(given))}`"):
        executor.with_options(**cast("TaskOptions", given))
    executor.submit(int)


@pytest.mark.parametrize(
    "given",
    [
        {"inputs": ["a", "{}.csv"]},
        {"inputs": [Path("{}")]},
        {"inputs": [Source(path="a", name="{}")]},
        {"env": {"CONFIG": "{}"}},
        {"attributes": {"part": "{}"}},
        {"name": "part {}"},
    ],
)
def test_calls_have_no_items(given: Mapping[str, object]) -> None:
    with pytest.raises(ClientError, match=f"`{next(iter(given))}` has `{{}}`"):
        checked_call_options(cast("TaskOptions", given))


def test_other_options_are_those_of_tasks() -> None:
    assert checked_call_options({"outputs": []}) == {"outputs": []}
    given: TaskOptions = {"mem": "1KiB", "inputs": ["a"], "env": {"A": "1"}, "name": "calls", "attributes": {"n": 1}}
    assert checked_call_options(given) == {**given, "mem": 1_024}


@pytest.mark.parametrize("name", ["calls", "results", "messiahs-calls.pyz", "results/one"])
def test_an_input_cannot_take_the_place_of_a_file_of_the_calls(executor: Executor, tmp_path: Path, name: str) -> None:
    (tmp_path / "data").write_text("1")
    error = executor.with_options(inputs=[f"{tmp_path / 'data'}:{name}"]).submit(int).exception()
    assert isinstance(error, ClientError)
    assert f"cannot be `{name}`" in str(error)


def test_a_folder_whose_files_lie_in_the_working_directory_is_checked_as_well(
    executor: Executor, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/calls").write_text("1")
    error = executor.with_options(inputs=[f"{tmp_path / 'data'}:."]).submit(int).exception()
    assert "cannot be `calls`" in str(error)
