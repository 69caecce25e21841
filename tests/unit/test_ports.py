"""Ports for tests."""

from tests.ports import free_port


def test_no_port_is_given_twice() -> None:
    assert len({free_port() for _ in range(500)}) == 500
