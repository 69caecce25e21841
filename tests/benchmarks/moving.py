"""The bytes of tasks: one large input to where the task runs, and one large output home."""

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

INPUT, OUTPUT = "an input, from bound to started", "an output, from exit to home"
_PIECE_BYTES = 1 << 20
_NAME = "large.bin"


def rows() -> tuple[Row, ...]:
    """Give the row about bytes."""
    return (
        Row(
            name="bytes",
            what="one large file between two modules, hashed and stored on both sides",
            budgets=tuple(Budget(figure=each, at_least=200, aim=400, is_more_better=True) for each in (INPUT, OUTPUT)),
            enter=_between_two,
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
    """Give how long the input of a task that is bound delays its start; the file is new to both modules."""
    path = _fresh_file(folder, size_bytes)
    prepared = prepare_inputs([Source(path=str(path))])
    upload(client, prepared.contents)
    path.unlink()
    document = client.wait(client.submit(Submission(argv=("test", "-s", _NAME), inputs=prepared.inputs)))
    _check(document)
    bound = next(step["at"] for step in document["history"] if step["event"] == "bound")
    return (datetime.fromisoformat(document["started_at"]) - datetime.fromisoformat(bound)).total_seconds()


def _output_seconds(client: ModuleClient, size_bytes: int) -> float:
    """Give how long after its end a task is finished: its output is home by then."""
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
    """Send a file over loopback without encryption or hash: what nobody can be faster than by much."""
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
