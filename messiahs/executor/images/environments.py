"""The archive of an environment: a tar file that states first where its folder belongs, and then has that folder.

Nothing in it is trusted. Its links may lead anywhere: they are followed only where its task is.
"""

import re
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from messiahs.core.model.texts import has_control
from messiahs.executor.images.archive import ImageError
from messiahs.executor.images.layers import Limits, unpack_one

ABOUT_NAME: Final = "environment.json"
"""The first file of the archive: an `Environment`."""
TREE: Final = "tree"
"""The folder of the archive that is the environment."""
_PATH_BYTES, _NAME_BYTES = 1024, 255
_INTERPRETER: Final = re.compile(r"(/[A-Za-z0-9._+@-]+)+", re.ASCII)
_LINKS: Final = 16
_VARIABLES: Final = ("VIRTUAL_ENV", "CONDA_PREFIX")
_SYSTEM: Final = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "task", "usr")
"""Folders of a root in which nothing may be put."""
_TOPS: Final = (
    *("home", "lost+found", "media", "mnt", "opt", "root", "run", "srv", "tmp", "var"),
    *("dev/shm", "run/user", "var/cache", "var/lib", "var/log", "var/run", "var/tmp"),
)
"""Folders that may have something below them, and must not be covered themselves."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment: where it belongs, and which interpreter outside of it a `venv` needs.

    One that is not valid cannot be made, nor read from a file: that raises `ValueError` with the reason.
    """

    path: str
    variable: str
    """The variable that has its path."""
    interpreter: str = ""
    """Empty: it has one of its own."""
    links: tuple[str, ...] = ()
    """Where its links to that interpreter lead."""

    def __post_init__(self) -> None:
        """Check everything that an archive can state."""
        if why := self._why_not_valid():
            raise ValueError(why)

    def _why_not_valid(self) -> str:
        if why := why_not_there(self.path):
            return why
        if self.variable not in _VARIABLES:
            return f"it is for no variable that is known: {self.variable[:80]!r}"
        if self.interpreter and not (_is_plain(self.interpreter) and _INTERPRETER.fullmatch(self.interpreter)):
            return "the path of its interpreter is not a plain one, or too long"
        if len(self.links) > _LINKS:
            return f"more than {_LINKS} of its links lead to its interpreter"
        is_plain = all(map(_is_plain, self.links))
        return "" if is_plain else "a link to its interpreter is not a plain path, or too long"


def why_not_there(path: str) -> str:
    """Return why no environment can be shown at a path; empty if one can."""
    if ":" in path:
        return "its path has a colon"
    if not _is_plain(path):
        return f"its path is not absolute, or not a plain one, or too long: {_PATH_BYTES} bytes, {_NAME_BYTES} a name"
    parts = path.split("/")[1:]
    if parts[0] in _SYSTEM or "/".join(parts) in _TOPS:
        return "there it would hide what the system has"
    return ""


def _is_plain(path: str) -> bool:
    """Whether a path is absolute, has no needless parts, and is one that a system can have."""
    try:
        first, *names = path.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    is_short = len(path.encode()) <= _PATH_BYTES and all(len(name) <= _NAME_BYTES for name in names)
    return not first and is_short and {b"", b".", b".."}.isdisjoint(names or [b""]) and not has_control(path)


def unpack_environment(file: BinaryIO, root: str, /) -> tuple[int, Environment]:
    """Unpack an archive into an empty folder; return the size, and what the archive says. Raises `ImageError`."""
    size, content = unpack_one(file, root, head=ABOUT_NAME, limits=Limits())
    if not Path(root, TREE).is_dir() or Path(root, TREE).is_symlink():
        raise ImageError(f"it has no folder {TREE}")
    try:
        found = msgspec.json.decode(content, type=Environment)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ImageError(f"its {ABOUT_NAME} cannot be used: {error}") from error
    return size, found
