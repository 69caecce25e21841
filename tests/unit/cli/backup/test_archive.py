"""The file of a backup: what is damaged, cut off or made by others is refused, and writes nowhere else."""

import hashlib
import io
import random
import tarfile
from pathlib import Path

import msgspec
import pytest

from messiahs.cli.backup.archive import FORMAT, LIST, Contents, Stored, Writer, _list_in, member_of, unpack
from messiahs.errors import ClientError

CONTENT = b"rows and keys\n" * 40
LISTED = Stored(path="modules/left/module.db", size_bytes=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())


def contents(*files: Stored, **other: object) -> Contents:
    made = Contents(
        format=FORMAT,
        release="0.2.0",
        federation="pair",
        modules=("left",),
        made_at="2026-11-23T09:00:00+00:00",
        state_directory="/state/pair",
        files=files,
        outside={},
    )
    return msgspec.convert({**msgspec.to_builtins(made), **other}, Contents)


def archive(tmp_path: Path, listed: Contents | None = None) -> bytes:
    """Return an archive with one file, and with the list that is given in place of the right one."""
    (tmp_path / "source").write_bytes(CONTENT)
    file = io.BytesIO()
    writer = Writer(file)
    writer.add(LISTED.path, tmp_path / "source")
    writer.finish(contents(*writer.files) if listed is None else listed)
    return file.getvalue()


def unpacked(tmp_path: Path, content: bytes) -> Contents:
    folder = tmp_path / hashlib.sha256(content).hexdigest()[:8]
    folder.mkdir(exist_ok=True)
    for left in folder.iterdir():
        left.unlink()
    return unpack(io.BytesIO(content), folder)


def with_member(info: tarfile.TarInfo, body: bytes = b"") -> bytes:
    info.size = len(body)
    return info.tobuf(tarfile.GNU_FORMAT) + body + bytes(-len(body) % 512) + bytes(1024)


def test_files_come_back_with_their_paths(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    found = unpack(io.BytesIO(archive(tmp_path)), folder)
    assert found == contents(LISTED)
    assert member_of(folder, 0).read_bytes() == CONTENT


def test_an_archive_that_is_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path)
    for length in (0, 1, 511, 512, 600, *range(1024, len(whole), 257), len(whole) - 1):
        with pytest.raises(ClientError, match="nothing was changed"):
            unpacked(tmp_path, whole[:length])


def test_every_damaged_byte_is_noticed_unless_it_means_nothing(tmp_path: Path) -> None:
    whole, dice = archive(tmp_path), random.Random(14)
    refused = 0
    for place in dice.sample(range(len(whole)), 600):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << dice.randrange(8)
        try:
            # The padding behind a member means nothing.
            assert unpacked(tmp_path, bytes(damaged)) == contents(LISTED)
        except ClientError:
            refused += 1
    assert refused > 200


def test_something_behind_the_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="follows its end"):
        unpacked(tmp_path, archive(tmp_path) + b"x")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_devices_and_folders_are_refused(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("00000000")
    info.type, info.linkname = kind, "/etc/passwd"
    with pytest.raises(ClientError, match="no regular file"):
        unpacked(tmp_path, with_member(info))


@pytest.mark.parametrize("content", [b"", b"notes", 40 * b"no backup at all"])
def test_a_file_that_is_no_backup_is_called_that(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ClientError, match="it is no file that `messiahs backup` made; nothing was changed"):
        unpacked(tmp_path, content)


@pytest.mark.parametrize("name", ["../escaped", "/etc/escaped", "00000001", "settings.json"])
def test_a_member_with_a_name_of_its_own_is_refused_before_anything_is_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(ClientError, match="a name"):
        unpacked(tmp_path, with_member(tarfile.TarInfo(name), b"content"))
    assert not list(tmp_path.rglob("*escaped*"))


def test_a_size_that_the_file_does_not_have_writes_no_more_than_the_file_has(tmp_path: Path) -> None:
    info = tarfile.TarInfo("00000000")
    info.size = 1 << 50
    with pytest.raises(ClientError, match="cut off"):
        unpacked(tmp_path, info.tobuf(tarfile.GNU_FORMAT) + b"short")


@pytest.mark.parametrize(
    "path",
    [
        "../../escaped",
        "/etc/escaped",
        "modules/left/../../escaped",
        "modules//x",
        "",
        "modules/left/.",
        "a/" * 9 + "a",
        "x\n",
    ],
)
def test_a_list_with_a_path_that_leads_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    listed = contents(Stored(path=path, size_bytes=LISTED.size_bytes, sha256=LISTED.sha256))
    with pytest.raises(ClientError, match="is not one that"):
        unpacked(tmp_path, archive(tmp_path, listed))


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        (contents(), "not the one that was stored"),
        (contents(LISTED, LISTED), "contradicts itself"),
        (contents(LISTED, outside={"left": {"/etc/x": "modules/left/x"}}), "contradicts itself"),
        (contents(LISTED, federation="../other"), "no module of a federation"),
        (contents(LISTED, federation="a/b"), "no module of a federation"),
        (contents(LISTED, modules=("..",)), "no module of a federation"),
        (contents(LISTED, modules=("tls",)), "no module of a federation"),
        (contents(LISTED, modules=("left", "left")), "contradicts itself"),
        (contents(LISTED, format=FORMAT + 1), "use the release that made it"),
    ],
)
def test_a_list_that_does_not_fit_is_refused(tmp_path: Path, listed: Contents, text: str) -> None:
    with pytest.raises(ClientError, match=text):
        unpacked(tmp_path, archive(tmp_path, listed))


def test_a_list_of_great_depth_is_refused() -> None:
    line = b'{"format":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
    with pytest.raises(ClientError, match="its list cannot be read"):
        _list_in(line + hashlib.sha256(line).hexdigest().encode() + b"\n")


def test_an_ordinary_tar_is_refused(tmp_path: Path) -> None:
    (tmp_path / LIST).write_text("{}")
    with tarfile.open(tmp_path / "ordinary.tar", "w") as tar:
        tar.add(tmp_path / LIST, LIST)
    with pytest.raises(ClientError, match="nothing was changed"):
        unpacked(tmp_path, (tmp_path / "ordinary.tar").read_bytes())
