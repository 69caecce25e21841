"""Unpacking layers, good and hostile ones: whatever they contain, nothing outside of the folder changes."""

import gzip
import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from messiahs.executor.images.archive import ImageError, read_image
from messiahs.executor.images.layers import TOP_ENTRIES, Limits, unpack
from messiahs.executor.starter.sandbox.unpacking import processor_seconds
from tests.oci_images import Archive, Entry, folder, hard_link, image_of, layer_of, link

ROOM = 1 << 26
PLENTY = Limits(unpacked_bytes=ROOM)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "outside" / "root"
    made.mkdir(parents=True)
    return made


def unpacked(root: Path, *layers: bytes, limits: Limits = PLENTY) -> int:
    """Unpack an image of these layers."""
    file = io.BytesIO(image_of(*layers))
    return unpack(file, read_image(file, os.uname().machine), str(root), limits=limits)


def outside(root: Path) -> list[str]:
    """Return what is beside the root: nothing may ever be."""
    return [path.name for path in root.parent.iterdir() if path != root] + [
        path.name for path in root.parent.parent.iterdir() if path != root.parent
    ]


def test_later_layers_replace_and_hide_what_earlier_ones_have(root: Path) -> None:
    unpacked(
        root,
        layer_of(
            Entry(name="a/kept", content=b"1"),
            Entry(name="a/changed", content=b"1"),
            Entry(name="a/gone"),
            Entry(name="b/deep/one"),
            Entry(name="file", content=b"1"),
            folder("was_folder"),
            Entry(name="was_folder/x"),
        ),
        layer_of(
            Entry(name="a/.wh.gone"),
            Entry(name="a/changed", content=b"2"),
            Entry(name="b/new", content=b"2"),
            Entry(name="b/.wh..wh..opq"),
            Entry(name="file/below"),
            Entry(name="was_folder", content=b"2"),
        ),
    )
    assert (root / "a/kept").read_bytes() == b"1"
    assert (root / "a/changed").read_bytes() == b"2"
    assert sorted(one.name for one in (root / "a").iterdir()) == ["changed", "kept"]
    assert [one.name for one in (root / "b").iterdir()] == ["new"]
    assert (root / "file/below").is_file()
    assert (root / "was_folder").read_bytes() == b"2"


def test_a_mark_hides_nothing_of_its_own_layer(root: Path) -> None:
    unpacked(
        root,
        layer_of(Entry(name="a/old")),
        layer_of(Entry(name="a/sub/new"), Entry(name="a/new"), Entry(name="a/.wh..wh..opq"), Entry(name="a/.wh.new")),
    )
    assert sorted(str(one.relative_to(root)) for one in (root / "a").rglob("*")) == ["a/new", "a/sub", "a/sub/new"]


def test_marks_that_are_repeated_hide_as_much_as_one_and_nothing_that_comes_after(root: Path) -> None:
    mark = Entry(name="a/.wh..wh..opq")
    unpacked(
        root,
        layer_of(Entry(name="a/old"), Entry(name="a/sub/old")),
        layer_of(Entry(name="a/sub/new"), Entry(name="a/sub/.wh..wh..opq"), mark, Entry(name="a/later/file"), mark),
        layer_of(Entry(name="a/new"), mark, mark),
    )
    assert sorted(str(one.relative_to(root)) for one in (root / "a").rglob("*")) == ["a/new"]


def test_a_mark_that_is_repeated_looks_through_its_folder_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []

    def note(folder: str) -> list[str]:
        listed.append(folder)
        return list_folder(folder)

    list_folder = os.listdir
    monkeypatch.setattr(os, "listdir", note)
    marks = [Entry(name="d/.wh..wh..opq"), Entry(name="d/below/.wh..wh..opq")] * 20
    unpacked(root, layer_of(Entry(name="d/file"), Entry(name="d/below/file"), *marks))
    assert (listed.count(f"{root}/d"), listed.count(f"{root}/d/below")) == (1, 1)


@pytest.mark.parametrize(("size_mib", "seconds"), [(0, 60), (2, 61), (200, 160), (100_000, 1_200)])
def test_a_small_archive_may_take_less_processor_time_than_a_large_one(size_mib: int, seconds: int) -> None:
    assert processor_seconds(size_mib << 20) == seconds


def test_modes_are_readable_by_all_and_set_uid_bits_owners_and_devices_are_dropped(root: Path) -> None:
    unpacked(
        root,
        layer_of(
            folder("dir"),
            Entry(name="dir/su", mode=0o6711),
            Entry(name="dir/secret", mode=0o600),
            Entry(name="dir/sda", kind=tarfile.BLKTYPE),
            Entry(name="dir/tty", kind=tarfile.CHRTYPE),
            Entry(name="dir/pipe", kind=tarfile.FIFOTYPE),
        ),
    )
    modes = {one.name: stat.S_IMODE(one.stat().st_mode) for one in (root / "dir").iterdir()}
    assert modes == {"su": 0o755, "secret": 0o644}
    assert stat.S_IMODE((root / "dir").stat().st_mode) == 0o755
    assert (root / "dir/su").stat().st_uid == os.geteuid()


def test_a_layer_without_compression_is_unpacked_too_and_files_keep_their_times(root: Path) -> None:
    file = io.BytesIO(Archive(layers=[layer_of(Entry(name="a", content=b"1"))]).content())
    unpack(file, read_image(file, os.uname().machine), str(root))
    assert (root / "a").read_bytes() == b"1"
    assert (root / "a").stat().st_mtime == 0


@pytest.mark.parametrize(
    "name", ["../out", "a/../../out", "/../out", "./../../out", "a/..", ".wh...", "a/.wh..", "..//out"]
)
def test_names_that_lead_out_are_refused(root: Path, name: str) -> None:
    with pytest.raises(ImageError):
        unpacked(root, layer_of(Entry(name=name, content=b"bad")))
    assert outside(root) == []


@pytest.mark.parametrize("target", ["/", "..", "../..", "/../..", "/..//../", "../../../../../../../.."])
def test_whatever_is_written_through_a_link_stays_in_the_image(root: Path, target: str) -> None:
    unpacked(root, layer_of(link("way", target)), layer_of(Entry(name="way/out/file", content=b"in")))
    assert (root / "out/file").read_bytes() == b"in"
    assert (root / "way").is_symlink()
    assert outside(root) == []


def test_an_absolute_link_to_a_folder_is_followed_within_the_image(root: Path) -> None:
    entries = (
        folder("usr/bin"),
        link("bin", "/usr/bin"),
        link("there", "../bin"),
        Entry(name="there/sh", content=b"x"),
    )
    unpacked(root, layer_of(*entries))
    assert (root / "usr/bin/sh").read_bytes() == b"x"
    assert (root / "bin").readlink() == Path("/usr/bin")


def test_a_link_is_replaced_and_not_written_through(root: Path, tmp_path: Path) -> None:
    victim = tmp_path / "outside" / "victim"
    victim.write_text("mine")
    unpacked(
        root,
        layer_of(link("a", str(victim)), link("b", "../victim"), link("c", str(victim.parent))),
        layer_of(Entry(name="a", content=b"bad"), Entry(name="b", content=b"bad"), folder("c"), Entry(name="c/victim")),
    )
    assert victim.read_text() == "mine"
    assert (root / "a").read_bytes() == b"bad"
    assert not (root / "c").is_symlink()


def test_hard_links_join_files_of_the_image_alone(root: Path, tmp_path: Path) -> None:
    victim = tmp_path / "outside" / "victim"
    victim.write_text("mine")
    unpacked(root, layer_of(Entry(name="a/one", content=b"1"), hard_link("two", "a/one"), hard_link("a/one", "a/one")))
    assert (root / "two").stat().st_ino == (root / "a/one").stat().st_ino
    for number, target in enumerate(("../victim", str(victim), "way/victim", "nothing", "way", "dir", "")):
        place = root.parent / f"root{number}"
        place.mkdir()
        with pytest.raises(ImageError):
            unpacked(place, layer_of(folder("dir"), link("way", str(victim.parent)), hard_link("bad", target)))
    assert (victim.read_text(), victim.stat().st_nlink) == ("mine", 1)


def test_links_in_circles_are_refused(root: Path) -> None:
    with pytest.raises(ImageError, match="circles"):
        unpacked(root, layer_of(link("a", "b"), link("b", "a"), Entry(name="a/x")))


def test_marks_remove_nothing_outside(root: Path, tmp_path: Path) -> None:
    victim = tmp_path / "outside" / "victim"
    victim.mkdir()
    (victim / "file").write_text("mine")
    unpacked(
        root,
        layer_of(link("way", str(victim)), link("up", "..")),
        layer_of(Entry(name="way/.wh.file"), Entry(name="way/.wh..wh..opq"), Entry(name="up/.wh.victim")),
    )
    assert (victim / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("entries", "limits"),
    [
        ((Entry(name="a", content=bytes(40_000)),), Limits(unpacked_bytes=30_000)),
        (tuple(Entry(name=f"{one}", content=b"x") for one in range(9)), Limits(unpacked_bytes=30_000)),
        (tuple(Entry(name=f"d/{one}") for one in range(9)), Limits(unpacked_bytes=ROOM, entries=8)),
        ((Entry(name="/".join("abcdefghij")),), Limits(unpacked_bytes=ROOM, entries=8)),
        ((Entry(name="claims", size=1 << 50),), PLENTY),
        (tuple(Entry(name=f"top{one}") for one in range(TOP_ENTRIES + 1)), PLENTY),
    ],
    ids=["bytes", "blocks", "files", "folders that names imply", "claimed", "entries of the root"],
)
def test_an_image_that_takes_too_much_is_refused(root: Path, entries: tuple[Entry, ...], limits: Limits) -> None:
    with pytest.raises(ImageError, match="more than"):
        unpacked(root, layer_of(*entries), limits=limits)
    assert sum(one.lstat().st_size for one in root.rglob("*") if one.is_file()) <= 2 * limits.unpacked_bytes


def test_the_same_file_again_and_again_is_counted_each_time(root: Path) -> None:
    with pytest.raises(ImageError, match="more than"):
        unpacked(root, layer_of(*[Entry(name="a", content=bytes(9_000))] * 9), limits=Limits(unpacked_bytes=60_000))


def test_a_header_that_claims_to_be_large_is_not_decompressed_for_ever(root: Path) -> None:
    header = tarfile.TarInfo("names")
    header.type, header.size = tarfile.XHDTYPE, 1 << 40
    bomb = gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + bytes(ROOM))
    file = io.BytesIO(Archive(layers=[bomb]).content())
    with pytest.raises(ImageError, match="more than"):
        unpack(file, read_image(file, os.uname().machine), str(root), limits=Limits(unpacked_bytes=1 << 20))


def test_a_file_with_holes_counts_as_large_as_it_is(root: Path) -> None:
    info = tarfile.TarInfo("holes")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 40)}
    info.size = 512
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w", format=tarfile.PAX_FORMAT) as written:
        written.addfile(info, io.BytesIO(b"1\n0\n1\n".ljust(512, b"\0")))
    with pytest.raises(ImageError, match="more than"):
        unpacked(root, layer.getvalue())


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (b"\x28\xb5\x2f\xfd" + bytes(64), "zstd"),
        (b"no tar" * 100, "cannot be read"),
        (gzip.compress(layer_of(Entry(name="a", content=bytes(9_000))))[:-40], "cannot be"),
        (layer_of(Entry(name="n" * 300)), "cannot be unpacked"),
        (layer_of(Entry(name="/".join(["d" * 200] * 30))), "cannot be unpacked"),
        (layer_of(link("empty", "")), "cannot be unpacked"),
    ],
    ids=("zstd", "no tar file", "cut off", "long name", "deep", "empty link"),
)
def test_a_layer_that_cannot_be_unpacked_is_refused_with_the_reason(root: Path, layer: bytes, said: str) -> None:
    file = io.BytesIO(Archive(layers=[layer]).content())
    with pytest.raises(ImageError, match=said):
        unpack(file, read_image(file, os.uname().machine), str(root))


def test_where_a_sandbox_mounts_there_are_ordinary_folders_and_files(root: Path) -> None:
    unpacked(
        root,
        layer_of(
            link("etc", "/../../outside"),
            link("var", "proc"),
            folder("x"),
        ),
    )
    assert [stat.S_ISDIR((root / name).lstat().st_mode) for name in ("etc", "var", "var/tmp")] == [True] * 3
    assert outside(root) == []
    other = root.parent / "other"
    other.mkdir()
    unpacked(
        other,
        layer_of(
            link("etc/passwd", "/etc/shadow"),
            folder("etc/group"),
            Entry(name="etc/hosts", content=b"kept"),
            Entry(name="etc/resolv.conf", content=bytes(1 << 20)),
            link("var/tmp", "/proc"),
        ),
    )
    found = {name: (other / "etc" / name).lstat() for name in ("passwd", "group", "hosts", "resolv.conf")}
    assert all(stat.S_ISREG(one.st_mode) for one in found.values())
    assert [one.st_size for one in found.values()] == [0, 0, 4, 0]
    assert stat.S_ISDIR((other / "var/tmp").lstat().st_mode)
