"""Unpacked images: which of them a starter keeps, within small bounds, and what it finds of an earlier one."""

import hashlib
import os
import signal
from pathlib import Path

import pytest

from messiahs.core.interface.causes import Cause
from messiahs.executor.attempt_values import Staged, Start, folder_name
from messiahs.executor.attempts import Held, NotSpawned
from messiahs.executor.linux.kernel import boottime_ns
from messiahs.executor.protocol.layout import TRASH
from messiahs.executor.starter.pool import Pool, Taken
from messiahs.executor.starter.sandbox.images import IMAGES, Images, Unpacked
from tests.contract.executor_rig import CLAIM, attempt_id
from tests.oci_images import Entry, image_of, layer_of
from tests.waiting import eventually

pytestmark = pytest.mark.processes

SIZE = 100_000
"""More than a small image takes when it is unpacked, and less than two take."""
LONG_NS = 10**18


class Kept:
    """The images of a starter, and the attempts that ask for them; `end` ends the starter (mutable)."""

    def __init__(self, root: Path, *, cache_bytes: int = SIZE, life_seconds: float = 1e9) -> None:
        self.root = root
        self.pool = Pool(root)
        self.images = Images(self.pool, cache_bytes=cache_bytes, life_seconds=life_seconds)
        self.pool.open(set())
        self._number = 0

    def image(self, text: str, size: int = 0) -> Path:
        """Make the archive of an image that has a text in the file `what`, under the name of its hash."""
        content = image_of(layer_of(Entry(name="what", content=text.encode()), Entry(name="more", content=bytes(size))))
        path = self.root / hashlib.sha256(content).hexdigest()
        path.write_bytes(content)
        return path

    def ask(self, source: Path) -> Held:
        """Let an attempt ask for an image."""
        self._number += 1
        image = Staged(name="", source=str(source), size_bytes=1, is_executable=False)
        start = Start(
            attempt_id(self._number), CLAIM, argv=(), env=(), places=1, limit_ns=None, lease_until=0, archive=image
        )
        held = Held(attempt=start.attempt, folder=folder_name(start.attempt), start=start)
        with Path(os.devnull).open("rb+", buffering=0) as file:
            self.images.ask(held, Taken("", file.fileno(), file.fileno()))
        return held

    def answer(self, source: Path) -> Unpacked | NotSpawned:
        """Return what an attempt gets that asks for an image; it uses it until the image is released."""
        self.ask(source)
        return self.next_answer()

    def next_answer(self) -> Unpacked | NotSpawned:
        """Wait until the present process has unpacked its image, and return what an attempt gets."""
        if self.pool.unpacker:
            os.waitpid(self.pool.unpacker, 0)
            self.images.unpacked()
        ((waiting, answer),) = self.images.ready()
        waiting.taken.close()
        self.remove()
        return answer

    def used(self, source: Path) -> Unpacked:
        """Return the image that an attempt has used, which has ended."""
        answer = self.answer(source)
        assert isinstance(answer, Unpacked)
        self.images.release(answer.digest)
        return answer

    def remove(self) -> None:
        """Let the removal of folders end."""
        while self.pool.remover:
            os.waitpid(self.pool.remover, 0)
            self.pool.removed()

    def names(self) -> set[str]:
        """Return the names of all that is kept."""
        return {entry.name for entry in (self.root / IMAGES).iterdir()}

    def trash(self) -> list[str]:
        """Return what is still to be removed."""
        return [entry.name for entry in (self.root / TRASH).iterdir()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can unpack images")
    return tmp_path


def test_the_least_recently_used_image_goes_when_all_take_too_much(root: Path) -> None:
    kept = Kept(root, cache_bytes=2 * SIZE)
    first, second, third = (kept.image(text, SIZE * 3 // 4) for text in ("1", "2", "3"))
    for source in (first, second, first, third):
        kept.used(source)
    assert kept.names() == {first.name, third.name}
    assert kept.trash() == []
    # It is unpacked again, and another one goes.
    again = kept.used(second)
    assert Path(again.root, "what").read_text() == "2"
    assert kept.names() == {third.name, second.name}


def test_an_image_in_use_stays_and_what_has_no_room_beside_it_is_refused(root: Path) -> None:
    kept = Kept(root)
    first, second = kept.image("1", SIZE * 3 // 4), kept.image("2", SIZE * 3 // 4)
    running = kept.answer(first)
    assert isinstance(running, Unpacked)
    refused = kept.answer(second)
    assert isinstance(refused, NotSpawned)
    # Another machine may have room for it.
    assert refused.cause == Cause.STAGING_FAILED
    assert refused.text == f"the image: those of running tasks fill the {SIZE} bytes for all images and environments"
    assert kept.names() == {first.name}
    assert Path(running.root, "what").read_text() == "1"
    kept.images.release(running.digest)
    kept.used(second)
    assert kept.names() == {second.name}


def test_an_image_that_two_attempts_use_stays_until_the_second_one_has_ended(root: Path) -> None:
    kept = Kept(root)
    first, second = kept.image("1", SIZE * 3 // 4), kept.image("2", SIZE * 3 // 4)
    one, other = kept.answer(first), kept.answer(first)
    assert one == other
    kept.images.release(first.name)
    assert isinstance(kept.answer(second), NotSpawned)
    kept.images.release(first.name)
    kept.used(second)
    assert kept.names() == {second.name}


def test_an_old_image_goes_though_nobody_asks_for_it_but_not_from_a_task(root: Path) -> None:
    kept = Kept(root, cache_bytes=9 * SIZE, life_seconds=0)
    unused, running = kept.image("1"), kept.image("2")
    kept.used(unused)
    answer = kept.answer(running)
    assert isinstance(answer, Unpacked)
    assert boottime_ns() < kept.images.due_at < boottime_ns() + LONG_NS
    kept.images.step(kept.images.due_at - 1)
    assert kept.names() == {unused.name, running.name}
    kept.images.step(kept.images.due_at)
    kept.remove()
    assert kept.names() == {running.name}
    assert Path(answer.root, "what").read_text() == "2"
    kept.images.release(answer.digest)
    kept.images.step(kept.images.due_at)
    assert kept.names() == set()
    assert kept.images.due_at > boottime_ns() + LONG_NS


def test_the_next_starter_knows_which_image_was_used_last_and_which_are_old(root: Path) -> None:
    kept = Kept(root, cache_bytes=2 * SIZE)
    first, second, third = (kept.image(text, SIZE * 3 // 4) for text in ("1", "2", "3"))
    for source in (first, second, first):
        kept.used(source)
    inode = (root / IMAGES / first.name).stat().st_ino
    following = Kept(root, cache_bytes=2 * SIZE)
    following.used(third)
    assert following.names() == {first.name, third.name}
    following.used(first)
    assert (root / IMAGES / first.name).stat().st_ino == inode
    last = Kept(root, life_seconds=0)
    last.remove()
    assert (last.names(), last.trash()) == (set(), [])


@pytest.mark.parametrize(
    ("number", "cause", "text"),
    [
        (signal.SIGKILL, Cause.STAGING_FAILED, "its unpacking was killed"),
        # The kernel sends it when the limit of processor time is reached.
        (
            signal.SIGXCPU,
            Cause.IMAGE_UNUSABLE,
            "its unpacking takes more processor time than archives of its size may",
        ),
    ],
)
def test_a_process_that_ends_while_it_unpacks_leaves_nothing_and_the_image_is_unpacked_again(
    root: Path, number: signal.Signals, cause: Cause, text: str
) -> None:
    kept = Kept(root)
    source = kept.image("1")
    content = source.read_bytes()
    source.unlink()
    # The process waits for its archive until it is killed.
    os.mkfifo(source)
    kept.ask(source)
    name = Path(f"/proc/{kept.pool.unpacker}/comm")
    eventually(lambda: name.read_text() == "messiahs-image\n")
    os.kill(kept.pool.unpacker, number)
    ended = kept.next_answer()
    assert isinstance(ended, NotSpawned)
    assert (ended.cause, ended.text) == (cause, f"the image: {text}")
    assert (kept.names(), kept.trash(), kept.images.due_at > boottime_ns() + LONG_NS) == (set(), [], True)
    source.unlink()
    source.write_bytes(content)
    assert Path(kept.used(source).root, "what").read_text() == "1"


@pytest.mark.parametrize("name", ["new", "half"])
def test_the_next_starter_removes_what_was_unpacked_in_part_and_does_not_count_it(root: Path, name: str) -> None:
    kept = Kept(root)
    source = kept.image("1", SIZE * 3 // 4)
    kept.used(source)
    folder = root / IMAGES / (source.name if name == "half" else name)
    if name == "half":
        # It has no description before it is whole.
        (folder / "about").unlink()
    else:
        (root / IMAGES / source.name).rename(folder)
    following = Kept(root)
    following.remove()
    assert (following.names(), following.trash()) == (set(), [])
    following.used(following.image("2", SIZE * 3 // 4))
    assert Path(Kept(root).used(source).root, "what").read_text() == "1"
