"""Input files: which files the user's arguments mean, their names in the working directory, and their problems."""

import hashlib
import os
import re
from pathlib import Path

import pytest

from messiahs.client import Source, prepare_inputs
from messiahs.client.input_folders import Walked, walked
from messiahs.client.inputs import content_of, pieces_of, source_of
from messiahs.client.names import check_received_name
from messiahs.config.task_names import checked_name
from messiahs.core.model.output_names import Declared
from messiahs.core.model.task_files import DESCRIPTION_LIMIT_BYTES
from messiahs.errors import ClientError, OptionValueError
from tests.sparse_files import resident_pages


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt", "data/one", "data/deep/two"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def names(*words: str) -> list[str]:
    return [each.name for each in prepare_inputs([source_of(word) for word in words]).inputs]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("a.txt", ["a.txt"]),
        ("./a.txt", ["a.txt"]),
        ("a.txt:b/c.txt", ["b/c.txt"]),
        ("a.txt:in/", ["in/a.txt"]),
        ("data", ["data/deep/two", "data/one"]),
        ("data/", ["data/deep/two", "data/one"]),
        ("data:other", ["other/deep/two", "other/one"]),
        ("data:in/", ["in/data/deep/two", "in/data/one"]),
        ("data:.", ["deep/two", "one"]),
        ("data/deep:.", ["two"]),
        ("*.txt", ["a.txt", "b.txt"]),
        ("[ab].tx?:in/", ["in/a.txt", "in/b.txt"]),
        ("da*:.", ["deep/two", "one"]),
        ("data/*", ["deep/two", "one"]),
    ],
)
def test_a_file_or_folder_gets_its_name(here: Path, word: str, expected: list[str]) -> None:
    assert names(word) == expected


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(here: Path) -> None:
    (here / "[ab].txt").write_text("")
    assert names("[ab].txt") == ["[ab].txt"]


@pytest.mark.parametrize(
    ("word", "said"),
    [("*.csv", r"`\*\.csv` matches nothing"), ("*.txt:one", r"`\*\.txt:one/` puts what matches into that folder")],
)
def test_a_pattern_that_names_nothing_or_several_files_as_one_is_refused(here: Path, word: str, said: str) -> None:
    with pytest.raises(ClientError, match=said):
        names(word)


def test_a_folder_keeps_what_its_ignore_file_names(here: Path) -> None:
    for name in ("data/.git/config", "data/deep/big.o", "data/keep.o", "data/logs/x", "data/deep/logs"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text("")
    os.mkfifo(here / "data" / "pipe")
    (here / "data" / ".messiahsignore").write_text("# made here\n.git/\n*.o\n!/keep.o\nlogs/\n/pipe\n")
    assert names("data") == ["data/deep/logs", "data/deep/two", "data/keep.o", "data/one"]
    # Only the folder that is named has such a file; above and below it is a file as others are.
    assert names("data/deep:d") == ["d/big.o", "d/logs", "d/two"]


def test_an_ignore_file_that_cannot_be_used_is_named(here: Path) -> None:
    (here / "data" / ".messiahsignore").symlink_to("one")
    with pytest.raises(ClientError, match=r"the input `data/\.messiahsignore` cannot be read"):
        names("data")
    (here / "data" / ".messiahsignore").unlink()
    (here / "data" / ".messiahsignore").mkdir()
    with pytest.raises(ClientError, match=r"`data/\.messiahsignore` is no file"):
        names("data")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"*.o\n\xff\n", "line 2: it is not UTF-8"),
        (b"*.o\n\n!\n", "line 3: `!` is no pattern"),
        (b"[z-a]\n", r"line 1: `\[z-a\]` is no pattern"),
    ],
)
def test_a_line_of_an_ignore_file_that_is_no_pattern_is_named(here: Path, content: bytes, said: str) -> None:
    (here / "data" / ".messiahsignore").write_bytes(content)
    with pytest.raises(ClientError, match=rf"`data/\.messiahsignore`, {said}"):
        names("data")


def test_a_folder_of_which_everything_is_left_out_is_empty(here: Path) -> None:
    (here / "data" / ".messiahsignore").write_text("two\n")
    assert names("data") == ["data/deep", "data/one"]
    (here / "data" / ".messiahsignore").write_text("*\n")
    assert names("data") == ["data"]


@pytest.mark.parametrize("closed", ["data", "data/deep", "data/deep/two", "data/.messiahsignore"])
def test_what_cannot_be_read_in_a_folder_is_named(here: Path, closed: str) -> None:
    (here / "data" / ".messiahsignore").write_text("")
    here.chmod(0o755)
    (here / closed).chmod(0)
    own = os.geteuid()
    if own == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(ClientError, match=f"the input `{re.escape(closed)}` cannot be read: Permission denied"):
            names("data")
    finally:
        os.seteuid(own)
        (here / closed).chmod(0o700)


def test_a_folder_that_is_named_by_dots_has_its_own_name(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here / "data" / "deep")
    assert names("..") == ["data/deep/two", "data/one"]


def test_a_path_with_a_colon_that_is_there_is_taken_as_it_is(here: Path) -> None:
    (here / "x:y").write_text("")
    assert names("x:y") == ["x:y"]


def test_an_input_has_the_hash_size_and_mode_of_its_file(here: Path) -> None:
    (here / "a.txt").chmod(0o755)
    one, other = prepare_inputs([Source(path="a.txt"), Source(path="b.txt")]).inputs
    assert one.document() == {
        "name": "a.txt",
        "sha256": hashlib.sha256(b"a.txt").hexdigest(),
        "size": 5,
        "executable": True,
    }
    assert not other.is_executable


def test_the_holes_of_an_input_are_read_as_zeros_without_the_kernels_memory(here: Path) -> None:
    (here / "sparse").touch()
    os.truncate("sparse", 5 << 20)
    prepared = prepare_inputs([Source(path="sparse")])
    sha256 = hashlib.sha256(bytes(5 << 20)).hexdigest()
    assert [one.sha256 for one in prepared.inputs] == [sha256]
    assert b"".join(pieces_of(prepared.contents[sha256])) == bytes(5 << 20)
    assert resident_pages(here / "sparse", 5 << 20) == 0


def test_a_link_that_the_user_names_is_followed(here: Path) -> None:
    (here / "link").symlink_to("data")
    (here / "file").symlink_to("a.txt")
    assert names("link", "file") == ["link/deep/two", "link/one", "file"]


def test_links_inside_a_folder_stay_links(here: Path) -> None:
    for name, target in {"again": ".", "deep/up": "../one", "none": "not/here", "two": "./deep//two"}.items():
        (here / "data" / name).symlink_to(target)
    found = prepare_inputs([Source(path="data", name="x")]).inputs
    assert {one.name: one.link_target for one in found} == {
        "x/again": ".",
        "x/deep/two": "",
        "x/deep/up": "../one",
        "x/none": "not/here",
        "x/one": "",
        "x/two": "./deep//two",
    }
    assert found[0].document() == {"name": "x/again", "link": "."}


@pytest.mark.parametrize(
    "target", ["/etc/passwd", "..", "../a.txt", "deep/../one", "deep/../../a.txt", "a\x1bb", b"a\xff"]
)
def test_a_link_that_cannot_be_sent_is_named(here: Path, target: str | bytes) -> None:
    (here / "data" / "bad").symlink_to(os.fsdecode(target))
    with pytest.raises(ClientError, match="`data/bad`"):
        names("data")


def test_an_empty_folder_is_an_input(here: Path) -> None:
    (here / "data" / "deep" / "none").mkdir()
    found = prepare_inputs([Source(path="data"), Source(path="data/deep/none", name="own")]).inputs
    assert [(one.name, one.is_folder) for one in found] == [
        ("data/deep/none", True),
        ("data/deep/two", False),
        ("data/one", False),
        ("own", True),
    ]
    assert found[0].document() == {"name": "data/deep/none", "folder": True}
    assert prepare_inputs([Source(path="data/deep/none", name=".")]).inputs == ()


def test_a_pipe_in_a_folder_is_named_and_not_opened(here: Path) -> None:
    os.mkfifo(here / "data" / "pipe")
    with pytest.raises(ClientError, match="`data/pipe` is neither a file nor a folder"):
        names("data")


def test_a_name_that_is_not_utf8_is_refused_and_shown(here: Path) -> None:
    (here / os.fsdecode(b"data/a\xff")).write_text("")
    with pytest.raises(ClientError, match=r"`data/a\\udcff` cannot be the name of a task's file: it is not UTF-8"):
        names("data")


def test_a_folder_that_becomes_a_link_while_it_is_read_is_not_followed(here: Path) -> None:
    (here / "secret").mkdir()
    (here / "secret" / "two").write_text("secret")
    (file,) = [one for one in walked("data") if one.below == "deep/two"]
    (here / "data" / "deep" / "two").unlink()
    (here / "data" / "deep").rmdir()
    (here / "data" / "deep").symlink_to("../secret")
    with pytest.raises(ClientError, match="`data/deep/two` cannot be read: "):
        content_of(file, lambda _: None)


def test_a_file_that_becomes_a_link_or_a_pipe_is_not_read(here: Path) -> None:
    (file,) = [one for one in walked("data") if one.below == "one"]
    (here / "data" / "one").unlink()
    (here / "data" / "one").symlink_to("../a.txt")
    with pytest.raises(ClientError, match="`data/one` cannot be read: "):
        content_of(file, lambda _: None)
    (here / "data" / "one").unlink()
    os.mkfifo(here / "data" / "one")
    with pytest.raises(ClientError, match="`data/one` is neither a file nor a folder"):
        content_of(file, lambda _: None)


def test_a_file_that_changes_while_it_is_read_is_refused(here: Path) -> None:
    (here / "a.txt").write_bytes(b"x" * 3_000_000)

    def grow(_: int) -> None:
        with (here / "a.txt").open("ab") as file:
            file.write(b"y")

    with pytest.raises(ClientError, match=r"`a\.txt` changed while it was read; nothing was submitted"):
        content_of(walked("a.txt")[0], grow)


def test_more_files_than_can_be_described_are_refused_before_any_is_read(here: Path) -> None:
    many = here / "many"
    many.mkdir()
    # Each takes 64 bytes and the length of its name, which is `many/` and 11 letters.
    fitting = DESCRIPTION_LIMIT_BYTES // 80
    for number in range(fitting):
        (many / f"{number:011}").touch()
    assert len(names("many")) == fitting > 4_000
    with pytest.raises(ClientError, match=r"at most 327680 bytes to describe .*, and `a\.txt` brings more: pack it"):
        prepare_inputs([source_of("many"), source_of("{}:x")], items=["a.txt"])
    (many / "x").touch()
    with pytest.raises(ClientError, match="`many` brings more: pack it with tar"):
        prepare_inputs([Source(path="many")], on_progress=lambda *_: pytest.fail("a file was read"))


@pytest.mark.parametrize(
    ("words", "first", "second"),
    [
        (("a.txt", "b.txt:a.txt"), "a.txt", "b.txt"),
        (("a.txt:x", "data:x"), "a.txt", "data/deep/two"),
        (("data:x", "a.txt:x/deep"), "data/deep/two", "a.txt"),
        (("data", "a.txt:data/one/x"), "data/one", "a.txt"),
    ],
)
def test_two_files_in_one_place_are_an_error_that_names_both(
    here: Path, words: tuple[str, ...], first: str, second: str
) -> None:
    with pytest.raises(ClientError, match=f"`{first}` and `{second}` would both be"):
        names(*words)


@pytest.mark.parametrize("word", ["gone", "data/gone:x", "a.txt/x"])
def test_a_missing_input_is_named(here: Path, word: str) -> None:
    with pytest.raises(ClientError, match=f"the input `{source_of(word).path}` cannot be read: "):
        names(word)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(here: Path) -> None:
    (here / "data" / "one").chmod(0)
    with pytest.raises(ClientError, match="`data/one` cannot be read: Permission denied"):
        names("data")


def test_a_device_is_refused_as_an_input(here: Path) -> None:
    with pytest.raises(ClientError, match="neither a file nor a folder"):
        names("/dev/null")


def test_each_member_has_its_own_file_and_all_have_the_common_one(here: Path) -> None:
    sources = [source_of("a.txt:tool"), source_of("data/{}:in-{}")]
    prepared = prepare_inputs(sources, items=["one", "deep"])
    assert [each.name for each in prepared.inputs] == ["tool"]
    assert [[each.name for each in member] for member in prepared.member_inputs] == [["in-one"], ["in-deep/two"]]


def test_a_members_file_in_the_place_of_a_common_one_is_an_error(here: Path) -> None:
    with pytest.raises(ClientError, match=r"`a.txt` and `b.txt` would both be `x`"):
        prepare_inputs([source_of("a.txt:x"), source_of("{}:x")], items=["b.txt"])


def test_members_may_have_different_files_of_one_name(here: Path) -> None:
    prepared = prepare_inputs([source_of("{}:x")], items=["a.txt", "b.txt", "a.txt"])
    assert [member[0].name for member in prepared.member_inputs] == ["x", "x", "x"]
    assert len(prepared.contents) == 2


def test_without_members_braces_are_a_name_like_any_other(here: Path) -> None:
    (here / "{}").write_text("")
    assert names("{}") == ["{}"]


@pytest.mark.parametrize(("name", "plain"), [("a", "a"), ("./a//b/", "a/b"), ("a/./b", "a/b"), ("..a", "..a")])
def test_a_name_is_made_plain(name: str, plain: str) -> None:
    assert checked_name(name) == plain


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/etc/passwd", "leads out"),
        ("../x", "leads out"),
        ("a/../b", "leads out"),
        ("", "names nothing"),
        (".", "names nothing"),
        ("a\0b", "NUL"),
        ("a\udcff", "UTF-8"),
        ("x" * 256, "longer than 255"),
    ],
)
def test_a_name_that_cannot_be_is_a_usage_error(name: str, why: str) -> None:
    with pytest.raises(ClientError, match=why) as caught:
        checked_name(name)
    assert caught.value.code == 2


@pytest.mark.parametrize("name", ["../x", "/x", "a//b", "./a", "a/", "", "a\x1b[2J", "a\u2028b", "a\u202eb"])
def test_a_name_from_outside_must_be_plain(name: str) -> None:
    with pytest.raises(ClientError):
        check_received_name(name, Declared([name]))


def test_a_name_that_is_refused_is_shown_without_its_control_characters() -> None:
    with pytest.raises(ClientError) as caught:
        check_received_name("a\u202eb\x1b", Declared(["a\u202eb\x1b"]))
    assert r"`a\u202eb\x1b`" in str(caught.value)


def test_a_path_below_the_root_has_one_slash() -> None:
    assert Walked("/", "dev/autofs").path == "/dev/autofs"


def test_what_is_no_input_is_a_wrong_value(here: Path) -> None:
    os.mkfifo(here / "data" / "pipe")
    with pytest.raises(OptionValueError, match=r"^the input `data/pipe` is neither a file nor a folder$") as caught:
        names("data")
    assert caught.value.code == ClientError.USAGE
