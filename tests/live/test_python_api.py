"""`import messiahs`: what a script does with the modules of this machine, from threads and from asyncio."""

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

import messiahs
from messiahs.client.status import TaskStatus
from messiahs.client.tasks import Client
from tests import system_python
from tests.live.conftest import ROOT, Federation
from tests.waiting import PATIENCE_SECONDS, eventually


@pytest.fixture(scope="module")
def left(pair: Federation) -> Iterator[Client]:
    with messiahs.connect("left", pair.state, patience=PATIENCE_SECONDS) as client:
        yield client


def test_a_task_is_submitted_with_its_files_followed_and_its_outputs_fetched(left: Client, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("seven\n")
    task = left.submit(
        ["sh", "-c", "tr a-z A-Z < in.txt > out.txt; echo done"],
        inputs=[f"{tmp_path}/data.txt:in.txt"],
        outputs=["out.txt"],
        mem="8MiB",
        time=60,
        name="shout",
    )
    (ended,) = left.wait(task, timeout=PATIENCE_SECONDS)
    assert (ended["state"], ended["exit_code"], ended["name"]) == ("finished", 0, "shout")
    assert b"".join(left.logs(task)) == b"done\n"
    assert left.fetch(task, into=tmp_path / "here") == [tmp_path / "here" / "out.txt"]
    assert (tmp_path / "here" / "out.txt").read_text() == "SEVEN\n"


def test_an_array_has_a_task_for_each_item_and_each_is_yielded_once_as_it_ends(left: Client) -> None:
    array = left.map(["sh", "-c", "echo $1; exit $1", "sh", "{}"], range(7))
    members = [f"{array}.{number}" for number in range(1, 8)]
    ended = list(left.as_completed([*members, array], timeout=PATIENCE_SECONDS))
    assert sorted(task["id"] for task in ended) == sorted([*members, array])
    assert {task["id"]: task["exit_code"] for task in ended if "counts" not in task} == {
        f"{array}.{number}": number - 1 for number in range(1, 8)
    }
    unfolded = left.status(array, members=True)
    assert [task["id"] for task in unfolded] == members
    # Whoever checks types may read all that a module sends.
    assert {key for task in (*left.status(array), *unfolded) for key in task} <= TaskStatus.__annotations__.keys()


def test_fetch_of_an_array_or_of_a_member_also_writes_what_was_printed(left: Client, tmp_path: Path) -> None:
    array = left.map(["sh", "-c", "echo $1 | tee out >&2", "sh", "{}"], ["a", "b"], outputs=["out"])
    left.wait(array, timeout=PATIENCE_SECONDS)
    names = ["1/out", "1/stderr", "2/out", "2/stderr"]
    assert sorted(left.fetch(array, into=tmp_path / "all")) == [tmp_path / "all" / name for name in names]
    assert (tmp_path / "all" / "2" / "stderr").read_text() == "b\n"
    assert sorted(left.fetch(f"{array}.2", into=tmp_path / "one")) == [tmp_path / "one" / name for name in names[2:]]


def test_a_script_reads_the_output_of_all_members_and_what_has_ended(left: Client) -> None:
    array = left.map(["sh", "-c", "echo $1; exit $1", "sh", "{}"], range(4))
    left.wait(array, timeout=PATIENCE_SECONDS)
    assert sorted(left.member_logs(array)) == [(number, b"%d\n" % (number - 1)) for number in range(1, 5)]
    assert sorted(number for number, _ in left.member_logs(array, failed=True)) == [2, 3, 4]
    ended = [task for task in left.history(since="1h") if task["id"].startswith(f"{array}.")]
    assert sorted(task["exit_code"] or 0 for task in ended) == [0, 1, 2, 3]
    assert left.history(since="1h", user="nobody-has-this-name") == []

    async def main() -> tuple[int, int]:
        async with messiahs.AsyncClient("left", left._state) as client:
            pieces = [piece async for piece in client.member_logs(array)]
            return len(pieces), len(await client.history(since=3600))

    count, of_all = asyncio.run(main())
    assert count == 4
    assert of_all >= 4


def test_hundreds_of_tasks_are_waited_for_together(left: Client) -> None:
    tasks = [left.submit(["true"]) for _ in range(150)]
    assert [task["id"] for task in left.wait(*tasks, timeout=PATIENCE_SECONDS)] == tasks


def test_a_task_that_waits_says_why_and_is_cancelled(left: Client) -> None:
    task = left.submit(["true"], require='$side eq "nowhere"')
    with pytest.raises(TimeoutError, match=task):
        left.wait(task, timeout=0.2)
    assert left.explain(task)["state"] == "executing"
    assert left.cancel(task) == [{"id": task, "cancelled": 1, "members": 1}]
    assert left.wait(task, timeout=PATIENCE_SECONDS)[0]["state"] == "killed"


def test_a_failed_task_runs_again_and_one_that_is_not_known_is_named(left: Client) -> None:
    task = left.submit(["false"])
    left.wait(task, timeout=PATIENCE_SECONDS)
    assert left.retry(task) == 1
    assert left.wait(task, timeout=PATIENCE_SECONDS)[0]["attempt"] == 2
    for ask in (left.status, left.wait, left.fetch, left.explain):
        with pytest.raises(messiahs.UnknownTaskError, match=r"left\.987654"):
            ask("left.987654")


@pytest.mark.parametrize("options", [{"mem": "8 apples"}, {"time": "1m"}, {"outputs": ["../x"]}, {"inputs": ["/no"]}])
def test_what_cannot_be_read_is_refused_before_anything_is_submitted(left: Client, options: dict[str, str]) -> None:
    before = left.status()
    with pytest.raises(messiahs.ClientError, match=r"apples|1m|\.\./x|/no"):
        left.submit(["true"], **options)  # type: ignore[arg-type]
    assert left.status() == before


def test_a_module_that_is_not_there_is_named(pair: Federation) -> None:
    with (
        messiahs.connect("attic", pair.state) as client,
        pytest.raises(messiahs.ClientError, match="no module `attic`"),
    ):
        client.status()


def test_who_waits_for_many_tasks_waits_through_a_restart_of_the_module(pair: Federation, left: Client) -> None:
    array = left.map(["sleep", "{}"], [0.1] * 8)
    members = [f"{array}.{number}" for number in range(1, 9)]
    ended = left.as_completed(members)
    first = next(ended)
    pair.kill("left", "daemon")
    assert sorted([first["id"], *(task["id"] for task in ended)]) == members


def test_coroutines_do_the_same_at_the_same_time(pair: Federation, tmp_path: Path) -> None:
    async def one(client: messiahs.AsyncClient, number: int) -> bytes:
        task = await client.submit(["sh", "-c", f"echo {number} | tee out"], outputs=["out"])
        text = b"".join([piece async for piece in client.logs(task, follow=True)])
        (ended,) = await client.wait(task, timeout=PATIENCE_SECONDS)
        assert ended["state"] == "finished"
        (path,) = await client.fetch(task, into=tmp_path / str(number))
        assert path.read_bytes() == text
        return text

    async def work() -> list[bytes]:
        async with messiahs.AsyncClient("left", pair.state, patience=PATIENCE_SECONDS) as client:
            return await asyncio.gather(*(one(client, number) for number in range(5)))

    assert asyncio.run(work()) == [f"{number}\n".encode() for number in range(5)]


def test_a_coroutine_that_is_cancelled_leaves_the_task_to_its_module(pair: Federation, left: Client) -> None:
    async def work() -> str:
        async with messiahs.AsyncClient("left", pair.state, patience=PATIENCE_SECONDS) as client:
            task = await client.submit(["sleep", "600"])
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.wait(task)
            await client.cancel(task)
            return task

    assert left.wait(asyncio.run(work()), timeout=PATIENCE_SECONDS)[0]["state"] == "killed"


def test_a_coroutine_that_stops_reading_keeps_no_thread(pair: Federation, left: Client) -> None:
    def threads() -> int:
        return sum(thread.name == "messiahs-stream" for thread in threading.enumerate())

    async def work() -> str:
        async with messiahs.AsyncClient("left", pair.state, patience=PATIENCE_SECONDS) as client:
            task = await client.submit(["sh", "-c", "echo ready; exec sleep 600"])
            async with aclosing(client.logs(task, follow=True)) as pieces:
                assert await anext(pieces) == b"ready\n"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await client.wait(task)
            return task

    before = threads()
    task = asyncio.run(work())
    eventually(lambda: threads() == before)
    left.cancel(task)


def test_tasks_of_two_modules_are_waited_for_together(pair: Federation) -> None:
    with messiahs.connect(state=pair.state) as client, messiahs.connect("right", pair.state) as right:
        far = right.submit(["true"])
        with messiahs.connect("left", pair.state) as left:
            slow, near = left.submit(["sleep", "600"]), left.submit(["true"])
        asked = [slow, far, near]
        assert [task["id"] for task in client.status(*asked)] == asked
        ended = client.as_completed(asked, timeout=PATIENCE_SECONDS)
        assert sorted([next(ended)["id"], next(ended)["id"]]) == sorted([far, near])
        client.cancel(slow)
        assert next(ended)["state"] == "killed"
        with pytest.raises(messiahs.UnknownTaskError, match=r"left\.987654 is known here; 1 more is not"):
            client.status("left.987654", far, "right.987654")


@pytest.mark.skipif(not system_python.IS_THERE, reason=system_python.WHY_NOT)
def test_the_scripts_of_the_page_about_python_work(pair: Federation, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    scripts = re.findall(r"^<!-- a script[^\n]*\n```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "data.bin").write_bytes(b"x" * 12_345)
    texts = []
    for script in scripts:
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=pair.environment)
        assert (done.returncode, done.stderr) == (0, "")
        texts.append(done.stdout)
    assert (tmp_path / "results" / "size.txt").read_text() == "12345\n"
    assert texts[0].count(" seed ") == 20
    assert 3.0 < float(texts[1]) < 3.3
