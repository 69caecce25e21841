"""Shared by all tests: kinds of tests, how many examples a law is tried with, and signals.

Every test is of one kind, which is a marker. A test without one is `quick`; those in `live` are `live`. `pytest` alone
runs the quick ones; named files or a marker select exactly what they name.
"""

import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

LIVE = Path(__file__).parent / "live"
KINDS = ("quick", "processes", "live", "swarm", "docs", "netns")
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system")
"""The interpreter's audit event for the start of a process."""

settings.register_profile("full", deadline=None, max_examples=100)
settings.register_profile("quick", deadline=None, max_examples=20)
settings.load_profile("quick")


class Guard:
    """Fails a quick test that starts a process (mutable)."""

    def __init__(self) -> None:
        self.item: pytest.Item | None = None

    def hear(self, event: str, arguments: tuple[object, ...]) -> None:
        """Take an audit event of the interpreter."""
        if event in STARTS and self.item is not None:
            pytest.fail(f"{self.item.nodeid} starts {arguments[:1]}: mark it with `pytest.mark.processes`")


GUARD = pytest.StashKey[Guard]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose the quick tests by default, watch for processes, and let commands under test handle Ctrl-C.

    Tests that run in the background may ignore Ctrl-C.
    """
    if not config.option.markexpr and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.option.markexpr = "quick"
    config.stash[GUARD] = Guard()
    sys.addaudithook(config.stash[GUARD].hear)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a kind to every test without one; a `UsageError` names a test with several."""
    for item in items:
        kinds = [kind for kind in KINDS if item.get_closest_marker(kind)]
        if len(kinds) > 1:
            raise pytest.UsageError(f"{item.nodeid} is of several kinds: {', '.join(kinds)}")
        if not kinds:
            item.add_marker("live" if _is_live(item) else "quick")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Watch a quick test; one in `live` is quick because it says so."""
    guard = item.config.stash[GUARD]
    guard.item = item if item.get_closest_marker("quick") and not _is_live(item) else None
    try:
        return (yield)
    finally:
        guard.item = None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Let fixtures of other tests end their processes after the last test of a session, which may be a quick one."""
    item.config.stash[GUARD].item = None


def _is_live(item: pytest.Item) -> bool:
    return item.path.is_relative_to(LIVE)


@pytest.fixture(autouse=True)
def _signal_mask() -> Iterator[None]:
    """Restore the signal mask: `module run` blocks SIGHUP before it becomes a daemon, and children inherit that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Create a folder whose name is short enough for sockets in it, which that of `tmp_path` may not be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)
