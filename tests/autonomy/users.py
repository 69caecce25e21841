"""Users whose tasks run at the module under test while a neighbor misbehaves, and must end once, with their results."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final

from messiahs.client import Submission
from tests.commands import Command
from tests.live.conftest import Federation
from tests.waiting import PATIENCE_SECONDS, eventually

SEAT_ARCH: Final = "seat"
"""The instruction set of the machine that the seat shows: tasks that nobody may lose do not run there."""
ONLY_THERE: Final = f'$arch eq "{SEAT_ARCH}"'
ELSEWHERE: Final = f'$arch ne "{SEAT_ARCH}"'
_MANY: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Users:
    """Users, by the modules at which they submit."""

    places: Mapping[str, Federation]

    @contextmanager
    def working(self) -> Iterator[list[str]]:
        """Keep a task of each user running during a block, and return their ids, the local user's first.

        Afterwards they end at their first attempt with their results.
        """
        with ExitStack() as stack:
            running = {who: stack.enter_context(_reading(place)) for who, place in self.places.items()}
            yield [task for _, task, _ in running.values()]
            for who, (place, task, command) in running.items():
                word = token_hex(8)
                out, err = command.communicate(word, timeout=PATIENCE_SECONDS)
                assert (command.returncode, out) == (0, f"{word}\n"), f"{who}: {err}"
                status = place.status(task)
                assert (status["state"], status["attempt"]) == ("finished", 1), f"{who}: {status}"

    def serve(self, requirement: str = ELSEWHERE) -> None:
        """Run a new task of each user to its end; its output is right."""
        for who, place in self.places.items():
            word = token_hex(8)
            with place.client() as client:
                task = client.submit(Submission(argv=("echo", word), requirement=requirement))
                ended = client.wait(task, timeout=PATIENCE_SECONDS)
                output = b"".join(client.logs(task))
            assert (ended["exit_code"], output) == (0, f"{word}\n".encode()), f"{who}: {ended}"

    def serve_many(self) -> None:
        """Run an array of each user to its end, wherever there is room; the output of each member is right."""
        asked = Submission(argv=("echo", "{}"), members=_MANY, tdv={"est_time": 1})
        arrays = {who: _submitted(place, asked) for who, place in self.places.items()}
        for who, place in self.places.items():
            with place.client() as client:
                ended = client.wait(arrays[who], timeout=PATIENCE_SECONDS)["counts"]
                assert ended.get("finished") == _MANY, f"{who}: {ended}"
                members = client.tasks(arrays[who], members=True)["tasks"]
                outputs = sorted(int(b"".join(client.logs(each["id"]))) for each in members)
            assert outputs == list(range(1, _MANY + 1)), who


def _submitted(place: Federation, submission: Submission) -> str:
    with place.client() as client:
        return client.submit(submission)


@contextmanager
def _reading(place: Federation) -> Iterator[tuple[Federation, str, "Command[str]"]]:
    """Begin a task that repeats the word which it is given on its standard input."""
    name = f"word-{token_hex(4)}"
    words = ("run", "--name", name, "--require", ELSEWHERE, "--", "sh", "-c", "read word; echo $word")
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "messiahs.cli.main", *words]
    with Command(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=place.environment) as process:
        eventually(lambda: _states(place, name) == ["running"], f"{name} runs")
        task = _named(place, name)[0]["id"]
        try:
            yield place, task, process
        finally:
            # After a failure it would keep its slot.
            with place.client() as client:
                client.cancel(task)


def _states(place: Federation, name: str) -> list[str]:
    return [each["substate"] for each in _named(place, name)]


def _named(place: Federation, name: str) -> list[dict[str, Any]]:
    with place.client() as client:
        return [each for each in client.tasks()["tasks"] if each["name"] == name]
