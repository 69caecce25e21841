"""Fixtures that every folder of tests shares."""

import signal
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    """Let the commands under test hear Ctrl-C, also when whoever runs the tests in the background does not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _signal_mask() -> Iterator[None]:
    """Restore the signal mask: `module run` blocks SIGHUP before it becomes a daemon, and children inherit that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
