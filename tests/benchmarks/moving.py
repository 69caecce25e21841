"""The files of tasks: a large input and a large output, all the way, and many small inputs, of one task or of many."""

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from messiahs.client import ModuleClient, Source, Submission, fetch, outputs_of, prepare_inputs, upload
from tests.benchmarks.federations import EXECUTOR, ORIGIN, PAIR, Measurable, cpu_seconds, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes
from tests.benchmarks.tls_pipes import RECEIVING, SENDING, pipes

SUBMIT, RUN = "hashing, upload and submit", "from there until all have ended"
_MEMBERS_FOR_EACH_FILE = 10
UPLOAD, STAGE, TOGETHER = "upload", "from bound to the end of `true`", "both together"
INPUT, OUTPUT = "an input, from bound to started", "an output, from exit to home"
UPLOADED, FETCHED = "the input from the user to the origin", "the output from the origin to the user"
NO_OTHERS: Mapping[str, str] = MappingProxyType({})
_PIECE_BYTES = 1 << 20
_SMALL_BYTES = 4_000
_NAME = "large.bin"


def rows() -> tuple[Row, ...]:
    """Return the rows about one large file and about many small ones."""
    return (
        Row(
            name="bytes",
            what="one large file between two modules, hashed and stored on both sides",
            budgets=(
                *(Budget(figure=each, at_least=400, aim=600, is_more_better=True) for each in (INPUT, OUTPUT)),
                Budget(figure=f"{INPUT}: {SENDING}", at_least=1.6, aim=0.8),
                Budget(figure=f"{INPUT}: {RECEIVING}", at_least=1.2, aim=1.0),
                Budget(figure=f"{OUTPUT}: {SENDING}", at_least=1.0, aim=0.8),
                Budget(figure=f"{OUTPUT}: {RECEIVING}", at_least=2.25, aim=1.2),
            ),
            enter=_between_two,
        ),
        Row(
            name="files",
            what="1,000 inputs of 4 KB for one task, stored safely on both sides",
            budgets=(Budget(figure=TOGETHER, at_least=1.5, aim=0.5),),
            enter=_many_small,
        ),
        Row(
            name="members",
            what="10,000 tasks of one submit, each with one input of 4 KB",
            budgets=(Budget(figure=SUBMIT, at_least=4, aim=2),),
            enter=_many_members,
        ),
    )


@contextmanager
def _between_two(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(PAIR) as measurable:
        folder = measurable.folder
        yield (
            _ours(measurable, sizes.file_bytes),
            Contender(name="cp", measure=lambda: _copied(folder, sizes.file_bytes)),
            Contender(name="plain socket into a file", measure=lambda: _sent(folder, sizes.file_bytes)),
            *pipes(folder, partial(_fresh_file, folder, sizes.file_bytes), figures=(INPUT, OUTPUT)),
        )


@contextmanager
def _many_small(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(PAIR) as measurable:
        folder = measurable.folder / "many"
        count = sizes.small_files
        yield (
            Contender(name=OURS, measure=lambda: _brought(measurable, folder, count), processes=measurable.processes),
            Contender(name="cp -r, and one sync", measure=lambda: _copied_folder(folder, count)),
        )


@contextmanager
def _many_members(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(PAIR) as measurable:
        folder = measurable.folder / "many"
        count = sizes.small_files * _MEMBERS_FOR_EACH_FILE
        yield (
            Contender(name=OURS, measure=lambda: _submitted(measurable, folder, count), processes=measurable.processes),
        )


def _submitted(measurable: Measurable, folder: Path, count: int) -> list[Reading]:
    """Submit an array whose members have files that are new to both modules, and return the time."""
    _fill(folder, count)
    items = tuple(str(number) for number in range(count))
    with measurable.client() as client:
        begun_at = time.monotonic()
        prepared = prepare_inputs([Source(path=str(folder / "{}"), name="data")], items=items)
        upload(client, prepared.contents)
        array = Submission(argv=("true",), members=count, items=items, member_inputs=prepared.member_inputs)
        task = client.submit(array)
        submitted = time.monotonic() - begun_at
        document = client.wait(task)
        ended = time.monotonic() - begun_at
    if document["counts"] != {"finished": count}:
        raise RuntimeError(f"not all tasks finished: {document['counts']}")
    return [Reading(SUBMIT, "s", submitted), Reading(RUN, "s", ended - submitted)]


def _brought(measurable: Measurable, folder: Path, count: int) -> list[Reading]:
    """Send files that are new to both modules to a task, and return the time."""
    _fill(folder, count)
    with measurable.client() as client:
        prepared = prepare_inputs([Source(path=str(folder))])
        begun_at = time.monotonic()
        upload(client, prepared.contents)
        uploaded = time.monotonic() - begun_at
        document = client.wait(client.submit(Submission(argv=("true",), inputs=prepared.inputs)))
    _check(document)
    bound, ended = (
        datetime.fromisoformat(next(step["at"] for step in document["history"] if step["event"] == "bound")),
        datetime.fromisoformat(document["ended_at"]),
    )
    staged = (ended - bound).total_seconds()
    return [
        Reading(UPLOAD, "s", uploaded),
        Reading(STAGE, "s", staged),
        Reading(TOGETHER, "s", uploaded + staged),
    ]


def _copied_folder(folder: Path, count: int) -> list[Reading]:
    _fill(folder, count)
    begun_at = time.monotonic()
    shutil.copytree(folder, folder.with_name("copy of many"))
    os.sync()
    took_seconds = time.monotonic() - begun_at
    shutil.rmtree(folder.with_name("copy of many"))
    return [Reading(TOGETHER, "s", took_seconds)]


def _fill(folder: Path, count: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number in range(count):
        (folder / str(number)).write_bytes(os.urandom(_SMALL_BYTES))


def _ours(measurable: Measurable, size_bytes: int) -> Contender:
    daemons = {role: measurable.processes[f"daemon of {role}"] for role in (ORIGIN, EXECUTOR)}

    def measure() -> list[Reading]:
        metered = Metered(daemons, size_bytes)
        with measurable.client() as client:
            move_input(client, measurable.folder, metered)
            move_output(client, measurable.folder, metered)
        return metered.readings

    return Contender(name=OURS, measure=measure, processes=measurable.processes)


class Metered:
    """Speeds and uses of processors by the daemons, while bytes of one size move (mutable)."""

    def __init__(self, daemons: dict[str, int], size_bytes: int) -> None:
        self.readings: list[Reading] = []
        self.size_bytes = size_bytes
        self._daemons = daemons

    @contextmanager
    def moving(self, figure: str, roles: dict[str, str], *, seconds: list[float]) -> Iterator[None]:
        """Measure what the daemons use meanwhile; `seconds` then has the time, if it is not all of this."""
        before, begun_at = cpu_seconds(self._daemons), time.monotonic()
        yield
        after, took_seconds = cpu_seconds(self._daemons), time.monotonic() - begun_at
        self.readings.append(Reading(figure, "MB/s", self.size_bytes / 1e6 / (seconds[0] if seconds else took_seconds)))
        for system, role in roles.items():
            used = (after[system] - before[system]) / (self.size_bytes / 1e9)
            self.readings.append(Reading(f"{figure}: {role}", "s/GB", used))


def move_input(
    client: ModuleClient, folder: Path, metered: Metered, /, *, further: Mapping[str, str] = NO_OTHERS
) -> None:
    """Move a file that is new to all modules to a task; `further` modules are on its way."""
    path = _fresh_file(folder, metered.size_bytes)
    prepared = prepare_inputs([Source(path=str(path))])
    with metered.moving(UPLOADED, {ORIGIN: RECEIVING}, seconds=[]):
        upload(client, prepared.contents)
    path.unlink()
    seconds: list[float] = []
    with metered.moving(INPUT, {ORIGIN: SENDING, EXECUTOR: RECEIVING, **further}, seconds=seconds):
        document = client.wait(client.submit(Submission(argv=("test", "-s", _NAME), inputs=prepared.inputs)))
        _check(document)
        bound = next(step["at"] for step in document["history"] if step["event"] == "bound")
        seconds.append((datetime.fromisoformat(document["started_at"]) - datetime.fromisoformat(bound)).total_seconds())


def move_output(
    client: ModuleClient, folder: Path, metered: Metered, /, *, further: Mapping[str, str] = NO_OTHERS
) -> None:
    """Move what a task has made to its origin, and from there to a folder."""
    made = f"head -c {metered.size_bytes} /dev/urandom > {_NAME} && date +%s.%N"
    seconds: list[float] = []
    with metered.moving(OUTPUT, {EXECUTOR: SENDING, ORIGIN: RECEIVING, **further}, seconds=seconds):
        task = client.submit(Submission(argv=("sh", "-c", made), outputs=(_NAME,)))
        document = client.wait(task)
        _check(document)
        exited_at = float(b"".join(client.logs(task)))
        seconds.append(datetime.fromisoformat(document["ended_at"]).timestamp() - exited_at)
    with metered.moving(FETCHED, {ORIGIN: SENDING}, seconds=[]):
        list(fetch(client, outputs_of(client, task), into=folder / "fetched"))
    shutil.rmtree(folder / "fetched")


def _check(document: dict[str, object]) -> None:
    if document["exit_code"] != 0:
        raise RuntimeError(f"the task did not finish, so no bytes were moved: {document}")


def _copied(folder: Path, size_bytes: int) -> list[Reading]:
    path = _fresh_file(folder, size_bytes)
    begun_at = time.monotonic()
    shutil.copyfile(path, folder / "copy")
    took_seconds = time.monotonic() - begun_at
    (folder / "copy").unlink()
    path.unlink()
    return [Reading(figure, "MB/s", size_bytes / 1e6 / took_seconds) for figure in (INPUT, OUTPUT)]


def _sent(folder: Path, size_bytes: int) -> list[Reading]:
    """Send a file over loopback without encryption or hash: a practical lower bound."""
    path = _fresh_file(folder, size_bytes)
    listener = socket.create_server(("127.0.0.1", 0))
    receiving = threading.Thread(target=_receive, args=(listener, folder / "copy"))
    receiving.start()
    begun_at = time.monotonic()
    with socket.create_connection(listener.getsockname()) as connection, path.open("rb") as file:
        connection.sendfile(file)
    receiving.join()
    took_seconds = time.monotonic() - begun_at
    listener.close()
    (folder / "copy").unlink()
    path.unlink()
    return [Reading(figure, "MB/s", size_bytes / 1e6 / took_seconds) for figure in (INPUT, OUTPUT)]


def _receive(listener: socket.socket, path: Path) -> None:
    connection, _ = listener.accept()
    with connection, path.open("wb") as file:
        while piece := connection.recv(_PIECE_BYTES):
            file.write(piece)


def _fresh_file(folder: Path, size_bytes: int) -> Path:
    path = folder / _NAME
    with path.open("wb") as file:
        for start in range(0, size_bytes, _PIECE_BYTES):
            file.write(os.urandom(min(_PIECE_BYTES, size_bytes - start)))
    return path
