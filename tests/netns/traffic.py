"""Bytes of every kind on their way between an origin and a machine, at once: files, a followed log, standard input."""

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from messiahs.client import ModuleClient, Source, Submission, fetch, outputs_of, prepare_inputs, upload
from messiahs.client.connection import Document
from tests.live.sites import Sites, on
from tests.waiting import PATIENCE_SECONDS, eventually

_DELAYS: Final = (
    "waits; asked and refused by|waits for its files|cannot be reached|has ended, and its output is not here yet"
)
_WAITING: Final = rf"^messiahs: \S+ ({_DELAYS})( since \S+ \S+)?$|^ {{4,}}\S|^  Ctrl-C cancels it$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Tasks from `origin` at `machine`: one with an input, one with an output, one with a long log, one that is fed.

    Each kind is about `size_bytes` long, and all begin together, when `begin` is called. `folder` is one that tasks can
    read and write.
    """

    sites: Sites
    folder: Path
    origin: str
    machine: str
    size_bytes: int
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(max_workers=4))
    journeys: list["Future[None]"] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    def begin(self) -> None:
        """Start all of them, and return when the machine runs the tasks that send."""
        output, log = (self._submit(script, outputs=outputs) for script, outputs in self._senders())
        with self._client() as client:
            for task in (output, log):
                eventually(lambda task=task: client.tasks(task)["tasks"][0]["substate"] == "running", task)  # type: ignore[misc]
        journeys: tuple[Callable[[], None], ...] = (
            self._send_input,
            lambda: self._fetch_output(output),
            lambda: self._follow_log(log),
            self._feed,
        )
        self.journeys.extend(self.pool.submit(journey) for journey in journeys)
        (self.folder / "go").touch()

    def end(self) -> None:
        """Return when everything has arrived whole, and every task has ended in its first attempt."""
        for journey in self.journeys:
            journey.result(timeout=PATIENCE_SECONDS)
        self.pool.shutdown()

    def cancel(self) -> None:
        """Cancel every task, and return when each has ended."""
        with self._client() as client:
            for task in self.tasks:
                client.cancel(task)
            for task in self.tasks:
                client.wait(task, timeout=PATIENCE_SECONDS)
        for journey in self.journeys:
            # The killed task fails what waits for its result.
            journey.exception(timeout=PATIENCE_SECONDS)
        self.pool.shutdown()

    def _senders(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        wait = f"while [ ! -e {self.folder}/go ]; do sleep 0.02; done"
        output = f"{wait}; head -c {self.size_bytes} /dev/urandom > out; sha256sum < out"
        log = f"{wait}; yes 0123456789abcde | head -c {self.size_bytes}"
        return (output, ("out",)), (log, ())

    def _send_input(self) -> None:
        source = self.folder / "input"
        # No file like it has been sent before.
        source.write_bytes(os.urandom(self.size_bytes))
        task = self._submit("sha256sum < input", inputs=(source,))
        self._ended(task)
        assert self._log(task).split()[0] == hashlib.sha256(source.read_bytes()).hexdigest().encode()

    def _fetch_output(self, task: str) -> None:
        self._ended(task)
        with self._client() as client:
            (output,) = fetch(client, outputs_of(client, task), into=self.folder / "fetched")
        content = (self.folder / "fetched" / output.place).read_bytes()
        assert self._log(task).split()[0] == hashlib.sha256(content).hexdigest().encode()

    def _follow_log(self, task: str) -> None:
        line = b"0123456789abcde\n"
        with self._client() as client:
            content = b"".join(client.logs(task, follow=True))
        assert content == (line * (self.size_bytes // len(line) + 1))[: self.size_bytes]
        self._ended(task)

    def _feed(self) -> None:
        here, content = self.sites.at(self.origin), os.urandom(self.size_bytes)
        command = [sys.executable, "-m", "messiahs.cli.main", "run", *on(self.machine), "--", "sha256sum"]
        done = subprocess.run(command, input=content, capture_output=True, env=here.environment, check=False)
        # It reports why its task waits, and nothing else.
        other = [line for line in done.stderr.decode().splitlines() if not re.search(_WAITING, line)]
        assert (done.returncode, other) == (0, []), done.stderr
        assert done.stdout.split()[0] == hashlib.sha256(content).hexdigest().encode()

    def _ended(self, task: str) -> Document:
        with self._client() as client:
            ended = client.wait(task, timeout=PATIENCE_SECONDS)
        assert (ended["state"], ended["exit_code"], ended["attempt"]) == ("finished", 0, 1), ended
        return ended

    def _log(self, task: str) -> bytes:
        with self._client() as client:
            return b"".join(client.logs(task))

    def _submit(self, script: str, *, inputs: tuple[Path, ...] = (), outputs: tuple[str, ...] = ()) -> str:
        prepared = prepare_inputs([Source(path=str(path)) for path in inputs])
        argv, (_, requirement) = ("sh", "-c", script), on(self.machine)
        submission = Submission(argv=argv, requirement=requirement, inputs=prepared.inputs, outputs=outputs)
        with self._client() as client:
            upload(client, prepared.contents)
            self.tasks.append(client.submit(submission))
        return self.tasks[-1]

    def _client(self) -> ModuleClient:
        return self.sites.client(self.origin)
