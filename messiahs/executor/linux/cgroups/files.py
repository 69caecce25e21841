"""Files of a control group, which are opened once: opening costs more than reading and writing."""

import os

_READ_BYTES = 1 << 16
_SHORT_BYTES = 4096


def remove_folder(folder: str) -> bool:
    """Remove the folder of a group, if no process is in it; return whether there is none any more."""
    try:
        os.rmdir(folder)  # noqa: PTH106 - a name from the kernel
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


class GroupFile:
    """A file of a group; if it cannot be opened, it does not exist (mutable)."""

    def __init__(self, path: str, flags: int = os.O_RDWR) -> None:
        try:
            self._file = os.open(path, flags | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    def __bool__(self) -> bool:
        """Whether the file exists."""
        return self._file >= 0

    def read(self) -> str:
        """Return the content. Raises `OSError`."""
        text = b""
        while piece := os.pread(self._file, _READ_BYTES, len(text)):
            text += piece
        return text.decode()

    def write(self, text: str) -> None:
        """Replace the content; nothing happens if there is no file. Raises `OSError`."""
        if self._file >= 0:
            os.pwrite(self._file, text.encode(), 0)

    def number(self) -> int | None:
        """Return a content that is one number; None if it is none, or there is no file."""
        if self._file < 0:
            return None
        try:
            return int(os.pread(self._file, _SHORT_BYTES, 0))
        except (OSError, ValueError):
            return None

    def entry(self, name: str) -> int | None:
        """Return the number after a name in a file of names and numbers; None if it has none."""
        if self._file < 0:
            return None
        try:
            words = os.pread(self._file, _SHORT_BYTES, 0).decode().split()
        except OSError:
            return None
        return int(words[words.index(name) + 1]) if name in words[:-1] else None

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
