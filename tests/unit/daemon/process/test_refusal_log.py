"""Failures of connections in the log: once each, until they change or the link is up."""

import logging

import pytest

from messiahs.daemon.process.refusal_log import REMINDER_SECONDS, RefusalLog


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "messiahs.daemon")
    return caplog


def test_streams_that_fail_every_second_for_two_reasons_are_two_lines(warnings: pytest.LogCaptureFixture) -> None:
    log = RefusalLog()
    for _ in range(100):
        log.note("gate", "does not answer")
        log.note("gate", "the connection broke")
    assert warnings.messages == ["gate: does not answer", "gate: the connection broke"]


def test_a_failure_is_written_again_once_the_link_was_up(warnings: pytest.LogCaptureFixture) -> None:
    log = RefusalLog()
    for peer in ("gate", "hub", "gate", "hub"):
        log.note(peer, "does not answer")
    log.forget("gate")
    log.note("gate", "does not answer")
    log.note("hub", "does not answer")
    assert warnings.messages == ["gate: does not answer", "hub: does not answer", "gate: does not answer"]


def test_a_stranger_is_known_by_its_host_and_written_again_after_an_hour(warnings: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = RefusalLog(lambda: now)
    for port in range(50):
        log.note(f"ipv4:192.0.2.1:{port}", "no root signed it")
    assert warnings.messages == ["ipv4:192.0.2.1:0: no root signed it"]
    now = REMINDER_SECONDS
    log.note("ipv4:192.0.2.1:7", "no root signed it")
    assert warnings.messages[1:] == ["ipv4:192.0.2.1:7: no root signed it"]


def test_a_peer_whose_failures_differ_each_time_is_few_lines_in_an_hour(warnings: pytest.LogCaptureFixture) -> None:
    now = 0.0
    log = RefusalLog(lambda: now)
    for number in range(2_000):
        log.note("gate", f"text {number}")
    assert warnings.messages[:-1] == [f"gate: text {number}" for number in range(16)]
    assert warnings.messages[-1] == "gate: further failures differ, and are written after an hour"
    now = REMINDER_SECONDS
    log.note("gate", "text 2000")
    assert warnings.messages[-1] == "gate: text 2000"


def test_what_is_remembered_is_bounded_and_the_latest_peer_is_kept(warnings: pytest.LogCaptureFixture) -> None:
    log = RefusalLog()
    for number in range(2_000):
        log.note(f"peer{number}", "x")
    before = len(warnings.messages)
    log.note("peer1999", "x")
    assert len(warnings.messages) == before
    log.note("peer0", "x")
    assert len(warnings.messages) == before + 1
