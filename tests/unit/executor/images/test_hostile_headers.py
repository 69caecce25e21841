"""Headers of tar files that claim what cannot be: of archives, which the client reads too, and of layers."""

import io
import os
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from messiahs.executor.images.archive import LAYERS, ImageError, check_layout, read_image
from messiahs.executor.images.layers import Limits, unpack
from tests.oci_images import Archive, Entry, folder, hard_link, layer_of, link

PLENTY = Limits(unpacked_bytes=1 << 26)
EMPTY = bytes(2048)
SIZE, SUM = slice(124, 136), slice(148, 156)
NEGATIVE = "a file in it has a negative size"


def header(name: str, size: int, *, kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a header that claims any size, in the binary form of GNU."""
    info = tarfile.TarInfo(name)
    info.type = kind
    made = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    made[SIZE] = (b"\x80" if size >= 0 else b"\xff") + (size % 256**11).to_bytes(11)
    made[SUM] = b" " * 8
    made[SUM] = b"%06o\0 " % sum(made)
    return bytes(made)


def with_records(records: Mapping[str, str], kind: bytes = tarfile.REGTYPE) -> bytes:
    """Return a layer whose only entry has such records, which stand above what its header says."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as layer:
        info = tarfile.TarInfo("a")
        info.type, info.pax_headers = kind, dict(records)
        layer.addfile(info)
    return content.getvalue()


def unpacked(root: Path, *layers: bytes) -> Path:
    """Unpack an image of these layers, which are not compressed."""
    made = root / "root"
    made.mkdir()
    file = io.BytesIO(Archive(layers=list(layers)).content())
    unpack(file, read_image(file, os.uname().machine), str(made), limits=PLENTY)
    return made


@pytest.mark.parametrize(
    ("start", "said"),
    [
        (header("index.json", -5), NEGATIVE),
        (header("other", -512), NEGATIVE),
        (header("other", -5_000), NEGATIVE),
        (header("index.json", 1 << 62), "not a tar file"),
        (header("index.json", 1 << 70), "not a tar file"),
        (header("deep", 0, kind=tarfile.GNUTYPE_LONGNAME) * 3_000, "not a tar file"),
        (with_records({"size": "9" * 4_000}), "not a tar file"),
        (with_records({"GNU.sparse.map": "1,x", "GNU.sparse.size": "3"}), "not a tar file"),
    ],
    ids=("negative index", "block", "backwards", "large", "larger", "deep", "digits", "holes"),
)
def test_an_archive_with_such_a_header_is_refused_by_the_client_and_by_the_machine(start: bytes, said: str) -> None:
    content = start + EMPTY
    with pytest.raises(ImageError, match=said):
        check_layout(io.BytesIO(content))
    with pytest.raises(ImageError, match=said):
        read_image(io.BytesIO(content), "x86_64")


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (header("a", -5) + EMPTY, NEGATIVE),
        (header("a", -(1 << 40)) + EMPTY, NEGATIVE),
        (header("a", 1 << 70) + EMPTY, "more than"),
        (header("a", -5_000, kind=tarfile.XHDTYPE) + EMPTY, "cannot be"),
        (header("a", 0, kind=tarfile.XHDTYPE) * 3_000 + EMPTY, "too deeply nested"),
        (with_records({"mtime": "inf"}), "cannot be unpacked"),
        (with_records({"mtime": "nan"}), "cannot be unpacked"),
        (with_records({"size": "9" * 4_000}), "more than"),
        (with_records({"path": "a\0b"}), "cannot be unpacked"),
        (with_records({"linkpath": "a\0b"}, tarfile.SYMTYPE), "cannot be unpacked"),
        (with_records({"linkpath": "a\0b"}, tarfile.LNKTYPE), "leads to no file"),
        (with_records({"GNU.sparse.map": "1,x", "GNU.sparse.size": "3"}), "cannot be"),
        (b"", "cannot be read"),
    ],
    ids=(
        *("negative", "very negative", "large", "negative records", "deep", "endless time", "no time", "digits"),
        *("NUL in a name", "NUL in a target", "NUL in a hard link", "holes", "empty"),
    ),
)
def test_a_layer_with_such_a_header_is_refused_with_the_reason(tmp_path: Path, layer: bytes, said: str) -> None:
    with pytest.raises(ImageError, match=said):
        unpacked(tmp_path, layer)
    assert [one.name for one in tmp_path.iterdir()] == ["root"]


def test_names_may_have_any_other_byte_and_be_as_long_as_the_disk_takes(tmp_path: Path) -> None:
    names = ("line\nline", "n" * 255, "\x1b[31m", " ", "é")
    made = unpacked(tmp_path, layer_of(*(Entry(name=f"d/{name}") for name in names)))
    assert {one.name for one in (made / "d").iterdir()} == set(names)


def test_what_an_entry_says_of_the_root_itself_changes_nothing(tmp_path: Path) -> None:
    entries = (Entry(name=".", content=b"x"), link("/", "/etc"), folder("./"), hard_link("", "a"), Entry(name="a"))
    made = unpacked(tmp_path, layer_of(*entries))
    assert (made.is_dir(), made.is_symlink(), (made / "a").is_file()) == (True, False, True)


def test_an_entry_never_replaces_the_folder_in_which_its_own_target_is(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="cannot be unpacked"):
        unpacked(tmp_path, layer_of(Entry(name="a/b"), hard_link("a", "a/b")))


def test_the_same_layer_may_come_as_often_as_layers_are_possible(tmp_path: Path) -> None:
    made = unpacked(tmp_path, *[layer_of(Entry(name="a", content=b"1"))] * LAYERS)
    assert (made / "a").read_bytes() == b"1"
