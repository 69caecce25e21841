"""The process that unpacks one image or environment.

Nothing but a new folder is left of the machine, and no capability of root.
"""

import fcntl
import os
import resource
import signal
from contextlib import suppress
from typing import Final

import msgspec

from messiahs.core.interface.causes import Cause
from messiahs.core.model.environments import ENVIRONMENT_INPUT
from messiahs.executor.attempt_values import Staged
from messiahs.executor.attempts import NotSpawned
from messiahs.executor.images.archive import ImageError, NotHereError, read_image
from messiahs.executor.images.environments import Environment, unpack_environment
from messiahs.executor.images.layers import unpack
from messiahs.executor.linux import namespaces
from messiahs.executor.linux.kernel import be_named, die_with_parent, give_up_new_privileges
from messiahs.executor.linux.seccomp import install
from messiahs.executor.starter.capabilities import keep_only

ROOT: Final = "root"
ABOUT: Final = "about"
"""In the folder of an image: its unpacked root, and a description of it."""
MEMORY_BYTES: Final = 1 << 30
PROCESSOR_SECONDS: Final = 1200
LEAST_PROCESSOR_SECONDS: Final = 60
"""What the process may take: headers in an archive can claim any size. A small archive may take less time."""
_LAST_SECONDS: Final = 5
"""After the signal for too much processor time, so that it can be reported."""
_BYTES_OF_SECOND: Final = 2 << 20
"""So much of an archive gives its unpacking one more second."""
_TEXT_LIMIT: Final = 500
_SOURCE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_SOURCE_FILE, _REPORT_FILE = 3, 4
_HIGH: Final = 64
_NAMESPACES: Final = namespaces.NEW_MOUNTS | namespaces.NEW_NETWORK | namespaces.NEW_IPC


class About(msgspec.Struct, frozen=True):
    """What is known of an unpacked image: its size, and the variables that it sets; or of an environment."""

    size_bytes: int
    variables: tuple[tuple[str, str], ...]
    environment: Environment | None = None


def start_unpacking(archive: Staged, folder: str) -> tuple[int, int]:
    """Start a process that unpacks an archive into an empty folder; return its number and a descriptor.

    If it fails, a `NotSpawned` can be read from the descriptor. Raises `OSError` if it cannot be started.
    """
    report, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        number = os.fork()
    except OSError:
        os.close(report)
        os.close(write_end)
        raise
    if number == 0:
        _unpack_and_end(archive, folder, write_end)
    os.close(write_end)
    return number, report


def what_of(archive: Staged) -> str:
    """Return what an archive is, in words."""
    return "the environment" if archive.name == ENVIRONMENT_INPUT else "the image"


def unusable(archive: Staged, text: str) -> NotSpawned:
    """Return that nobody can use an archive."""
    cause = Cause.ENVIRONMENT_UNUSABLE if archive.name == ENVIRONMENT_INPUT else Cause.IMAGE_UNUSABLE
    return NotSpawned(cause=cause, exit_code=None, text=f"{what_of(archive)}: {text}")


def not_here(archive: Staged, text: str) -> NotSpawned:
    """Return that an archive cannot be used here and now."""
    return NotSpawned(cause=Cause.STAGING_FAILED, exit_code=None, text=f"{what_of(archive)}: {text}")


def _unpack_and_end(archive: Staged, folder: str, report: int) -> None:
    """Unpack, report what is wrong, and end: the starter's code must not go on here."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGXCPU, _refuse)
        be_named("messiahs-image")
        die_with_parent()
        file = fcntl.fcntl(os.open(archive.source, _SOURCE), fcntl.F_DUPFD_CLOEXEC, _HIGH)
        report = fcntl.fcntl(report, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        _confine(folder, processor_seconds(os.fstat(file).st_size))
        os.dup2(file, _SOURCE_FILE, inheritable=False)
        report = os.dup2(report, _REPORT_FILE, inheritable=False)
        os.closerange(_REPORT_FILE + 1, os.sysconf("SC_OPEN_MAX"))
        about = _unpack(_SOURCE_FILE, is_environment=archive.name == ENVIRONMENT_INPUT)
        with open(f"/{ABOUT}", "wb") as written:  # noqa: PTH123 - once, and nothing else is needed here
            written.write(msgspec.json.encode(about))
        os._exit(0)
    except NotHereError as error:
        _report(report, not_here(archive, _printable(error)))
    except ImageError as error:
        _report(report, unusable(archive, _printable(error)))
    except MemoryError:
        _report(report, unusable(archive, f"its unpacking takes more than {MEMORY_BYTES} bytes of memory"))
    except BaseException as error:  # noqa: BLE001 - as above
        _report(report, not_here(archive, _printable(f"it cannot be unpacked: {error!r}")))
    finally:
        os._exit(1)


def processor_seconds(archive_bytes: int) -> int:
    """Return how much processor time the unpacking of an archive of this size may take."""
    return min(PROCESSOR_SECONDS, LEAST_PROCESSOR_SECONDS + archive_bytes // _BYTES_OF_SECOND)


def _refuse(*_: object) -> None:
    raise ImageError("its unpacking takes more processor time than archives of its size may")


def _confine(folder: str, seconds: int) -> None:
    """Make the folder the root of this process, without capabilities, and limit what it can take."""
    os.umask(0o022)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _LAST_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if os.geteuid() == 0:
        namespaces.unshare(_NAMESPACES)
    else:
        # In a namespace of accounts, an ordinary one may make mounts; it has its own number there.
        uid, gid = os.geteuid(), os.getegid()
        namespaces.be_transparent()
        namespaces.unshare(_NAMESPACES | namespaces.NEW_USERS)
        namespaces.map_account(uid, uid, gid, gid)
    namespaces.bound_capabilities()
    namespaces.mount("none", "/", flags=namespaces.PRIVATE | namespaces.RECURSIVE)
    namespaces.mount(folder, folder, flags=namespaces.BIND)
    namespaces.make_root(folder)
    keep_only(())
    give_up_new_privileges()
    install()


def _unpack(source: int, *, is_environment: bool) -> About:
    with open(source, "rb") as file:
        if is_environment:
            os.mkdir(f"/{ROOT}")  # noqa: PTH102 - as above
            size_bytes, environment = unpack_environment(file, f"/{ROOT}")
            return About(size_bytes=size_bytes, variables=(), environment=environment)
        image = read_image(file, os.uname().machine)
        os.mkdir(f"/{ROOT}")  # noqa: PTH102 - as above
        return About(size_bytes=unpack(file, image, f"/{ROOT}"), variables=image.variables)


def _printable(error: object) -> str:
    return str(error)[:_TEXT_LIMIT].encode(errors="replace").decode()


def _report(report: int, problem: NotSpawned) -> None:
    with suppress(OSError):
        os.write(report, msgspec.json.encode(problem))
