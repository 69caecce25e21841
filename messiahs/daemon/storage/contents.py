"""The folder of files by content: whoever cannot list the folder in which it is does not find it."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from messiahs.config.whole_files import sync_folder

DRAFTS: Final = "drafts"
HEX_DIGITS: Final = 64
_PREFIX: Final = "contents-"
_MODE: Final = 0o711


def contents_folder(root: Path) -> Path:
    """Return the folder of files by content, below that for inputs, which this account can list.

    Its name is drawn when it is made: who may not list `root` reaches no file, although its hash may be known. It is
    no argument of a process, which every account could read. Raises `OSError`.
    """
    found = found_contents(root)
    if found is None:
        found = root / f"{_PREFIX}{secrets.token_hex(16)}"
        found.mkdir(mode=_MODE)
        sync_folder(root)
    # Undo the effect of the umask.
    found.chmod(_MODE)
    return found


def found_contents(root: Path) -> Path | None:
    """Return the folder of files by content; None if there is none yet, as in release 0.1.0."""
    return next(iter(sorted(root.glob(f"{_PREFIX}*"))), None)


def adopt_contents(root: Path, contents: Path) -> None:
    """Add the files that release 0.1.0 left, which had them in the folder itself. Raises `OSError`.

    They stay there until the next start: a starter of that release may still copy them for tasks.
    """
    with os.scandir(root) as entries:
        left = [entry.name for entry in entries if len(entry.name) == HEX_DIGITS]
    for name in left:
        try:
            (contents / name).hardlink_to(root / name)
        except FileExistsError:
            (root / name).unlink()
        except OSError:
            # The file system has no hard links.
            (root / name).rename(contents / name)
    if left:
        sync_folder(contents)


def stored_bytes(root: Path) -> int:
    """Return the size of all files and drafts below the folder for inputs. Raises `OSError`."""
    size_bytes = 0
    for folder in (found_contents(root) or root, root / DRAFTS):
        with os.scandir(folder) as entries:
            for entry in entries:
                # Files may be deleted meanwhile.
                with suppress(FileNotFoundError):
                    size_bytes += entry.stat().st_size if entry.is_file() else 0
    return size_bytes
