"""The files of tasks: a large input, a large output, and many small inputs."""

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from messiahs.client import ModuleClient, Source, Submission, prepare_inputs, upload
from tests.benchmarks.federations import PAIR, Measurable, up
from tests.benchmarks.measuring import OURS, Budget, Contender, Entrant, Reading, Row, Sizes

UPLOAD, STAGE, TOGETHER = "upload", "from bound to the end of `true`", "both together"
INPUT, OUTPUT = "an input, from bound to started", "an output, from exit to home"
_PIECE_BYTES = 1 << 20
_SMALL_BYTES = 4_000
_NAME = "large.bin"


def rows() -> tuple[Row, ...]:
    """Return the rows about one large file and about many small ones."""
    return (
        Row(
            name="bytes",
            what="one large file between two modules, hashed and stored on both sides",
            budgets=tuple(Budget(figure=each, at_least=200, aim=400, is_more_better=True) for each in (INPUT, OUTPUT)),
            enter=_between_two,
        ),
        Row(
            name="files",
            what="1,000 inputs of 4 KB for one task, stored safely on both sides",
            budgets=(Budget(figure=TOGETHER, at_least=1.5, aim=0.5),),
            enter=_many_small,
        ),
    )


@contextmanager
def _between_two(sizes: Sizes) -> Iterator[Sequence[Entrant]]:
    with up(PAIR) as measurable:
        yield (
            _ours(measurable, sizes.file_bytes),
            Contender(name="cp", measure=lambda: _copied(measurable.folder, sizes.file_bytes)),
            Contender(name="plain socket into a file", measure=lambda: _sent(measurable.folder, sizes.file_bytes)),
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
    def measure() -> list[Reading]:
        with measurable.client() as client:
            inward, outward = _input_seconds(client, measurable.folder, size_bytes), _output_seconds(client, size_bytes)
        return [
            Reading(INPUT, "MB/s", size_bytes / 1e6 / inward),
            Reading(OUTPUT, "MB/s", size_bytes / 1e6 / outward),
        ]

    return Contender(name=OURS, measure=measure, processes=measurable.processes)


def _input_seconds(client: ModuleClient, folder: Path, size_bytes: int) -> float:
    """Return the delay of a bound task's start by its input; the file is new to both modules."""
    path = _fresh_file(folder, size_bytes)
    prepared = prepare_inputs([Source(path=str(path))])
    upload(client, prepared.contents)
    path.unlink()
    document = client.wait(client.submit(Submission(argv=("test", "-s", _NAME), inputs=prepared.inputs)))
    _check(document)
    bound = next(step["at"] for step in document["history"] if step["event"] == "bound")
    return (datetime.fromisoformat(document["started_at"]) - datetime.fromisoformat(bound)).total_seconds()


def _output_seconds(client: ModuleClient, size_bytes: int) -> float:
    """Return the time from the end of a task until it is finished, with its output fetched."""
    made = f"head -c {size_bytes} /dev/urandom > {_NAME} && date +%s.%N"
    task = client.submit(Submission(argv=("sh", "-c", made), outputs=(_NAME,)))
    document = client.wait(task)
    _check(document)
    exited_at = float(b"".join(client.logs(task)))
    return datetime.fromisoformat(document["ended_at"]).timestamp() - exited_at


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
