"""Fixtures that every folder of tests shares."""

import signal


def pytest_configure() -> None:
    """Let the commands under test hear Ctrl-C, also when whoever runs the tests in the background does not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
