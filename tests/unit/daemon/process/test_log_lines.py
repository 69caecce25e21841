"""The daemon's log: input from others cannot forge a record, steer a terminal, or rotate other records away."""

import logging
from logging.handlers import BufferingHandler
from pathlib import Path

import pytest

from messiahs.core.interface.actions import Report, ReportCode
from messiahs.core.model.ids import SystemId
from messiahs.daemon.process.log_lines import (
    ALIKE_LIMIT,
    KIND_LIMIT,
    WINDOW_SECONDS,
    LineFormatter,
    LogFile,
    RateLimit,
    log_report,
)


def line_of(message: str, *, error: Exception | None = None) -> str:
    info = (type(error), error, None) if error is not None else None
    record = logging.LogRecord("messiahs", logging.INFO, "", 0, "%s", (message,), info)
    return LineFormatter("%(levelname).1s %(message)s").format(record)


def test_control_characters_are_escaped_and_further_lines_are_indented() -> None:
    assert line_of("b\x1b[2J\u202e\nI forged") == "I b\\x1b[2J\\u202e\n    I forged"


def test_the_text_of_an_exception_forges_nothing_either() -> None:
    lines = line_of("failed", error=ValueError("x\nI forged\x9b")).splitlines()
    assert [line for line in lines if line.startswith("I ")] == ["I failed"]
    assert "\x9b" not in "".join(lines)


def warning(peer: str, *, at: float = 0.0, level: int = logging.WARNING) -> logging.LogRecord:
    record = logging.LogRecord("messiahs", level, "", 0, "%s: %s", (peer, "spoiled"), None)
    record.created = at
    return record


def written(limit: RateLimit, records: list[logging.LogRecord]) -> list[str]:
    return [record.getMessage() for record in records if limit.filter(record)]


def test_warnings_about_one_peer_are_left_out_when_they_are_too_many_which_is_said_once() -> None:
    lines = written(RateLimit(), [warning("left") for _ in range(1_000)])
    assert lines[:-1] == ["left: spoiled"] * (ALIKE_LIMIT - 1)
    assert lines[-1] == "left: spoiled (more of these are omitted for 10 s)"


def test_other_peers_are_still_heard_and_the_same_one_later() -> None:
    limit = RateLimit()
    written(limit, [warning("left") for _ in range(100)])
    assert written(limit, [warning("right")]) == ["right: spoiled"]
    assert written(limit, [warning("left", at=WINDOW_SECONDS)]) == ["left: spoiled"]


def test_peers_that_change_their_port_or_their_name_are_too_many_all_the_same() -> None:
    ports = written(RateLimit(), [warning(f"ipv4:127.0.0.1:{port}") for port in range(1_000)])
    names = written(RateLimit(), [warning(f"ipv4:127.0.{name // 256}.{name % 256}:1") for name in range(10_000)])
    assert (len(ports), len(names)) == (ALIKE_LIMIT, KIND_LIMIT)


def test_decisions_are_never_left_out() -> None:
    assert len(written(RateLimit(), [warning("left", level=logging.INFO) for _ in range(1_000)])) == 1_000


@pytest.mark.parametrize("code", [ReportCode.NO_LINK, ReportCode.NOT_A_NEIGHBOR])
def test_reports_of_one_neighbor_are_limited_whether_they_are_warnings_or_not(code: ReportCode) -> None:
    kept = BufferingHandler(1_000)
    kept.addFilter(RateLimit())
    log = logging.getLogger("messiahs.test_of_reports")
    log.setLevel(logging.INFO)
    log.addHandler(kept)
    for _ in range(500):
        log_report(log, Report(neighbor=SystemId("left"), code=code, text="dropped"))
    log.removeHandler(kept)
    assert len(kept.buffer) == ALIKE_LIMIT


def test_lines_that_cannot_be_written_are_counted_and_reported_later(tmp_path: Path) -> None:
    (tmp_path / "module.log").symlink_to("/dev/full")
    log = LogFile(tmp_path / "module.log")
    log.setFormatter(LineFormatter("%(message)s"))
    for _ in range(3):
        log.handle(warning("lost"))
    (tmp_path / "module.log").unlink()
    log.handle(warning("left"))
    log.close()
    lines = (tmp_path / "module.log").read_text().splitlines()
    assert lines == ["3 lines before this one could not be written", "left: spoiled"]
