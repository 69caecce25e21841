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
_PATH_BYTES: Final = 1024
_INTERPRETER: Final = re.compile(r"(/[A-Za-z0-9._+@-]+)+", re.ASCII)
_LINKS: Final = 64
_SYSTEM: Final = ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "task", "usr")
"""Folders of a root in which nothing may be put."""
_TOPS: Final = (
    *("home", "lost+found", "media", "mnt", "opt", "root", "run", "srv", "tmp", "var"),
    *("dev/shm", "run/user", "var/cache", "var/lib", "var/log", "var/run", "var/tmp"),
)
"""Folders that may have something below them, and must not be covered themselves."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """An environment: where it belongs, and which interpreter outside of it a `venv` needs."""

    path: str
    variable: str
    """The variable that has its path."""
    interpreter: str = ""
    """Empty: it has one of its own."""
    links: tuple[str, ...] = ()
    """Where its links to that interpreter lead."""


def why_not_there(path: str) -> str:
    """Return why no environment can be shown at a path; empty if one can."""
    parts = path.split("/")[1:]
    if not path.startswith("/") or not {"", ".", ".."}.isdisjoint(parts) or has_control(path):
        return "its path is not absolute, or not a plain one"
    if len(path.encode(errors="surrogatepass")) > _PATH_BYTES or ":" in path:
        return f"its path is longer than {_PATH_BYTES} bytes, or has a colon"
    if parts[0] in _SYSTEM or "/".join(parts) in _TOPS:
        return "there it would hide what the system has"
    return ""


def unpack_environment(file: BinaryIO, root: str, /) -> tuple[int, Environment]:
    """Unpack an archive into an empty folder; return the size, and what the archive says. Raises `ImageError`."""
    size, content = unpack_one(file, root, head=ABOUT_NAME, limits=Limits())
    if not Path(root, TREE).is_dir() or Path(root, TREE).is_symlink():
        raise ImageError(f"it has no folder {TREE}")
    try:
        found = msgspec.json.decode(content, type=Environment)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ImageError(f"its {ABOUT_NAME} cannot be read: {error}") from error
    if why := why_not_there(found.path):
        raise ImageError(why)
    if found.variable not in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        raise ImageError(f"it is for no variable that is known: {found.variable[:80]!r}")
    if found.interpreter and not _INTERPRETER.fullmatch(found.interpreter):
        raise ImageError("the path of its interpreter is not a plain one")
    if any(has_control(link) or not link.startswith("/") for link in found.links):
        raise ImageError("a link to its interpreter is not a plain path")
    if len(found.links) > _LINKS:
        raise ImageError(f"more than {_LINKS} of its links lead to its interpreter")
    return size, found
