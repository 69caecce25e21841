"""Inputs of tasks that are real processes, and the executor that copies them, for several suites."""

import hashlib
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from messiahs.core.interface.messages import Command
from messiahs.core.model.images import IMAGE_INPUT
from messiahs.core.model.task_files import InputFile
from messiahs.daemon.storage.contents import contents_folder
from messiahs.executor.os_process.back_end import OsProcessExecutor
from messiahs.executor.os_process.launch import StarterSettings
from messiahs.executor.protocol.layout import prepare_files_root, task_account
from messiahs.executor.starter.staging import INLINE_BYTES
from tests.contract.executor_rig import BACK_ENDS, OFFSET_NS, Rig, play_scene, start_of, starter_settings
from tests.live.disks import mounted
from tests.oci_images import image_of_programs

LARGE = b"large" * INLINE_BYTES
"""Copied by the task's own process."""
IMAGE = "image"
ROOTS = (*BACK_ENDS, IMAGE)
"""The back ends, and own sandboxes whose root is an image."""


class Files:
    """A folder of inputs, and the executor that copies from it."""

    def __init__(self, root: Path, settings: StarterSettings) -> None:
        self.root, self.settings = root, replace(settings, files=root)
        self.executor = OsProcessExecutor(self.settings, boottime_offset_ns=OFFSET_NS)
        self.image: InputFile | None = None
        """The image in which commands run; None: none."""

    def limit_accounts(self, uid: int) -> None:
        """Let all tasks in sandboxes have one account, so that one runs at a time."""
        self.settings = replace(self.settings, task_uids=(uid, uid))
        self.executor = OsProcessExecutor(self.settings, boottime_offset_ns=OFFSET_NS)

    def add(self, name: str, content: bytes, *, is_executable: bool = False) -> InputFile:
        """Make an input."""
        sha256 = hashlib.sha256(content).digest()
        path = self.root / sha256.hex()
        path.write_bytes(content)
        path.chmod(0o444)
        return InputFile(name=name, sha256=sha256, size_bytes=len(content), is_executable=is_executable)

    def add_absent(self, name: str, content: bytes) -> InputFile:
        """Add an input that does not arrive before its file is opened for writing."""
        waits = self.add(name, content)
        path = self.path_of(waits)
        path.unlink()
        os.mkfifo(path, 0o444)
        return waits

    def path_of(self, file: InputFile) -> Path:
        """Return the path from which an input is copied."""
        return self.root / file.sha256.hex()

    def play(self, act: Callable[[Rig], Awaitable[None]]) -> None:
        """Play a scene."""
        play_scene(act, lambda: self.executor, image=self.image)


@contextmanager
def starter_files(tmp_path: Path, *, kind: str = "namespace", disk: tuple[str, ...] = ()) -> Iterator[Files]:
    """Return a folder of inputs and an executor with a starter of its own; for an `image` also one with programs.

    They may be on a `disk` of their own, as `mount` takes it.
    """
    with ExitStack() as stack:
        settings = stack.enter_context(starter_settings(tmp_path, kind="sandbox" if kind == IMAGE else kind))
        if disk:
            # Closed to the accounts of tasks, so that their folders are on the disk.
            tmp_path.chmod(0o700)
            stack.enter_context(mounted(settings.fallback, *disk))
        settings.directory.mkdir(mode=0o711)
        root = prepare_files_root(settings.directory, task_account(settings.task_uids), fallback=settings.fallback)
        root = contents_folder(root)
        files = Files(root, settings)
        if kind == IMAGE:
            files.image = files.add(IMAGE_INPUT, image_of_programs())
        yield files


def run(
    rig: Rig, number: int, *, script: str, inputs: tuple[InputFile, ...] = (), outputs: tuple[str, ...] = ()
) -> None:
    """Start a script with inputs and declared outputs."""
    command = Command(argv=("sh", "-c", script), inputs=inputs, outputs=outputs)
    rig.begin(replace(start_of(number), command=command))
