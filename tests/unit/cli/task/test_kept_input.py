"""What of a standard input can be read again."""

import tempfile
from pathlib import Path

import pytest

from messiahs.cli.task.kept_input import KeptInput


def read_again(kept: KeptInput, offset: int) -> list[bytes]:
    assert kept.go_to(offset)
    pieces = list[bytes]()
    while (piece := kept.read(4)) is not None:
        pieces.append(piece)
        if not piece:
            break
    return pieces


def test_what_was_added_is_read_again_from_any_byte_and_more_can_follow() -> None:
    kept = KeptInput(100)
    assert kept.read(4) is None
    kept.add(b"abcdef")
    assert read_again(kept, 0) == [b"abcd", b"ef"]
    assert read_again(kept, 3) == [b"def"]
    assert not kept.go_to(7)
    kept.add(b"gh")
    kept.add(b"")
    # A terminal could bring more after its end, which the first attempt did not get.
    assert read_again(kept, 5) == [b"fgh", b""]
    assert kept.read(4) is None
    kept.close()
    assert not kept.go_to(0)


def test_beyond_the_limit_nothing_is_kept() -> None:
    kept = KeptInput(1 << 20)
    kept.add(bytes(1 << 20))
    assert kept.go_to(0)
    kept.add(b"x")
    assert kept.why_gone == "it is longer than 1 MiB"
    assert not kept.go_to(0)
    kept.add(b"x")
    assert not kept.go_to(0)


def test_input_that_cannot_be_written_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    kept = KeptInput(100)
    kept.add(b"x")
    assert kept.why_gone == f"it cannot be kept in {tmp_path / 'none'}: No such file or directory"
    assert not kept.go_to(0)
