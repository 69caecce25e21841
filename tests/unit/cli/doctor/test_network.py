"""The doctor at the port of a module: an answer that takes long, or none, on a host that is busy."""

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from messiahs.cli.doctor.findings import Finding, Level, Patient
from messiahs.cli.doctor.network import check_ports
from messiahs.cli.federation.deployment import federation_directory, prepare
from messiahs.client.connection import Document
from messiahs.client.locating import ModulePlace
from messiahs.config.settings import ModuleSettings, load_settings
from messiahs.config.topology.reading import load_topology
from messiahs.wire.reach import ReachResult

TOPOLOGY = "version: 1\nfederation: pair\nsystems: {left: {}}\n"


@pytest.fixture
def state(short_folder: Path) -> Path:
    """Prepare a module that does not run."""
    (short_folder / "pair.yaml").write_text(TOPOLOGY)
    prepare(load_topology(short_folder / "pair.yaml"), federation_directory(short_folder / "s", "pair"))
    return short_folder / "s"


def settings_in(state: Path) -> ModuleSettings:
    return load_settings(state / "pair" / "left" / "settings.json")


@contextmanager
def listening(state: Path) -> Iterator[socket.socket]:
    """Hold the port of the module."""
    host, _, port = settings_in(state).listen.rpartition(":")
    with socket.create_server((host, int(port))) as listener:
        yield listener


def port_of(state: Path, *, reach: ReachResult, most_seconds: float, slow_seconds: float) -> Finding:
    """Look at the port of the module as if this process were its daemon, which answers its users."""
    answer: Document = {"name": "right", "result": reach, "address": "", "text": ""}
    patient = Patient(
        place=ModulePlace(federation="pair", module="left", state_directory=state),
        settings=settings_in(state),
        pid=os.getpid(),
        document={},
        neighbors=[],
        reach=[answer],
    )
    (finding,) = check_ports(patient, most_seconds=most_seconds, slow_seconds=slow_seconds)
    return finding


def answer_once(listener: socket.socket, settings: ModuleSettings) -> None:
    """Answer one handshake as the module does."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.certificate_file, settings.key_file)
    raw, _ = listener.accept()
    with raw, suppress(OSError), context.wrap_socket(raw, server_side=True) as secured:
        secured.recv(1)


@pytest.mark.parametrize(("slow_seconds", "level"), [(1e9, Level.OK), (0.0, Level.WARN)])
def test_an_answer_that_takes_long_is_a_warning_with_its_time(state: Path, slow_seconds: float, level: Level) -> None:
    with listening(state) as listener:
        answering = threading.Thread(target=answer_once, args=(listener, settings_in(state)))
        answering.start()
        found = port_of(state, reach=ReachResult.SILENT, most_seconds=600, slow_seconds=slow_seconds)
        answering.join()
    assert (found.level, " s: this host is busy" in found.text) == (level, level is Level.WARN)


def test_no_answer_is_a_failure_unless_a_neighbor_reaches_the_module(state: Path) -> None:
    with listening(state):
        alone = port_of(state, reach=ReachResult.SILENT, most_seconds=0.01, slow_seconds=0)
        reached = port_of(state, reach=ReachResult.ANSWERED, most_seconds=0.01, slow_seconds=0)
    assert (alone.level, reached.level) == (Level.FAIL, Level.WARN)
    assert "but right reaches it" in reached.text
