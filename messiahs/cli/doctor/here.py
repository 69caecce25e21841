"""Checks of the host of a module: clock, disk, users, certificates, units. None needs the daemon."""

import os
import pwd
import shlex
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from messiahs.cli.certificate.showing import LIST, shown_in
from messiahs.cli.doctor.findings import Finding, Patient, fail, ok, warn
from messiahs.cli.federation.private_folders import check_federation
from messiahs.config.disk import available_bytes, has_room, is_last_part_reached, spare_bytes
from messiahs.config.local_users import EVERYONE, OWNER, group_in, users_for
from messiahs.config.settings import BUBBLEWRAP
from messiahs.config.topology.units import SYSTEM_SOCKETS
from messiahs.core.model.instants import SECOND
from messiahs.daemon.storage.contents import stored_bytes
from messiahs.daemon.storage.high_water_mark import Mark
from messiahs.errors import ClientError, MessiahsError
from messiahs.executor.protocol.layout import FILES, find_work_folders

_SET_BACK_NS: Final = 60 * SECOND
_LITTLE_BYTES = 1 << 30
_MIB = 1 << 20
_FEW_INODES = 1_000
_SYSTEMD: Final = Path("/run/systemd/system")
_SYNCHRONIZED: Final = Path("/run/systemd/timesync/synchronized")


def check_clock(patient: Patient) -> Iterator[Finding]:
    """Compare the clock with what the module stored last: a clock that was set back shows in certificates and dates."""
    reached = Mark(patient.settings.directory / "module.mark").reached
    behind_ns = 0 if reached is None else reached.newest - time.time_ns()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    if behind_ns > _SET_BACK_NS:
        text = f"it is {now} here, {behind_ns // SECOND} s before the last thing that the module stored"
        yield warn("clock", f"{text}: set it right, and reboot (daemons count from the boot)")
    elif _SYSTEMD.is_dir() and not _SYNCHRONIZED.exists():
        yield ok("clock", f"{now}; systemd-timesyncd does not keep it, so make sure that another service does")
    else:
        yield ok("clock", now)


def check_disk(patient: Patient) -> Iterator[Finding]:
    """Look at the space and the inodes of the disk of the module's folder, and of other disks with files of tasks."""
    folder = patient.settings.directory
    on_each_disk: dict[int, Path] = {}
    folders = find_work_folders(folder, patient.settings.task_uids)
    inputs = folders.files or folder / FILES
    for one in folders.all():
        on_each_disk.setdefault(one.stat().st_dev, one)
    for disk, one in on_each_disk.items():
        has_inputs = inputs.is_dir() and inputs.stat().st_dev == disk
        yield from _check_disk_of(one, inputs if has_inputs else None)
    if patient.pid is not None and not (folder / "ballast").exists():
        yield warn("reserve", f"{folder / 'ballast'} is missing: a start on a full disk may fail; free 16 MiB")


def _check_disk_of(folder: Path, inputs: Path | None) -> Iterator[Finding]:
    free, found = available_bytes(folder), os.statvfs(folder)
    _, lacks_inodes = is_last_part_reached(folder)
    text = f"{free / (1 << 30):.1f} GiB free at {folder}"
    taken = "" if inputs is None or free >= _LITTLE_BYTES else _taken(inputs, found.f_blocks * found.f_frsize)
    if not has_room(folder):
        text = f"{text}, {found.f_favail} inodes"
        yield fail(
            "disk", f"{text}: the module accepts no work; free space or remove files, and it continues by itself{taken}"
        )
    elif spare_bytes(folder) <= 0:
        kept = "a last part of the disk is kept free of inputs"
        yield warn("disk", f"{text}: {kept}, so those that no task needs make room for new ones; free space{taken}")
    elif free < _LITTLE_BYTES:
        yield warn("disk", f"{text}: that is little for the files of tasks; free space, or use a larger disk{taken}")
    else:
        yield ok("disk", text)
    if found.f_files and (lacks_inodes or found.f_favail < _FEW_INODES):
        yield warn("inodes", f"{found.f_favail} left at {folder}: each file of a task takes one; remove small files")


def _taken(inputs: Path, size_bytes: int) -> str:
    """Return what the inputs of tasks take of a disk; empty if this account cannot see it."""
    try:
        taken_bytes = stored_bytes(inputs)
    except OSError:
        return ""
    share = 100 * taken_bytes // max(1, size_bytes)
    return f"; inputs of tasks take {taken_bytes // _MIB} of {size_bytes // _MIB} MiB ({share} %)"


def check_folder(patient: Patient) -> Iterator[Finding]:
    """See whether the next start accepts the folder of the federation, which no other user may be able to change."""
    folder = patient.settings.state_directory
    owner = folder.stat().st_uid
    if owner != os.geteuid():
        yield warn("folder", f"{folder} is not checked: run this command as {name_of(owner)}, who owns it")
        return
    try:
        check_federation(folder)
    except ClientError as error:
        yield fail("folder", f"the next start will be refused: {error}")
    else:
        yield ok("folder", f"other users cannot change {folder}")


def check_users(patient: Patient) -> Iterator[Finding]:
    """Say which accounts of the host may use the module, and whether they can reach its socket."""
    settings = patient.settings
    owner = settings.directory.stat().st_uid
    users = users_for(settings.users, owner)
    if users == OWNER:
        yield ok("users", f"{name_of(owner)} alone; `users: everyone` or `users: group:NAME` opens it to others")
        return
    whom = "every account of this host" if users == EVERYONE else f"the group {group_in(users)}"
    if closed := _closed_to_users(settings.users_socket):
        text = f"{whom} may use it, and cannot enter or read {closed[0][0]}"
        opened = " && ".join(f"chmod o+{rights} {shlex.quote(str(folder))}" for folder, rights in closed)
        yield warn("users", f"{text}: run it with `--sockets {SYSTEM_SOCKETS}`, or open it (`{opened}`)")
    elif users_for("", owner) == OWNER and settings.machine is not None and settings.machine.isolation != BUBBLEWRAP:
        text = f"{whom} may use it, and all tasks run as {name_of(owner)}"
        yield warn("users", f"{text}: write `isolation: bubblewrap`, or run it as root")
    else:
        yield ok("users", f"{whom}, at {settings.users_socket}")


def _closed_to_users(socket: Path) -> list[tuple[Path, str]]:
    """Return the folders above a socket that keep users out, and which rights they need there, the uppermost first.

    Users look for modules in the lowest two, those of the federation and of all federations.
    """
    needed = [*[("rx", stat.S_IROTH | stat.S_IXOTH)] * 2, *[("x", stat.S_IXOTH)] * (len(socket.parents) - 2)]
    found = zip(socket.parents, needed, strict=True)
    return [(each, rights) for each, (rights, mode) in found if each.stat().st_mode & mode != mode][::-1]


def check_certificates(patient: Patient) -> Iterator[Finding]:
    """Look at the certificates of the module and its site, and at who can read the keys."""
    settings = patient.settings
    try:
        shown = [
            each
            for each in shown_in(settings.state_directory)
            if each.kind in {"root", LIST} or each.name == settings.name
        ]
    except MessiahsError as error:
        yield fail("certificate", str(error))
        return
    for each in shown:
        what = each.kind if each.kind in {"root", LIST} else "certificate"
        if not each.warning:
            yield ok(what, f"valid until {each.ends_at.date()}")
        else:
            yield (warn if each.state == "soon" else fail)(what, each.warning)
    for key in (settings.key_file, settings.state_directory / "tls" / "root.key", settings.directory / "border.key"):
        yield from _check_key(key, is_needed=key == settings.key_file)


def _check_key(key: Path, *, is_needed: bool) -> Iterator[Finding]:
    try:
        mode = stat.S_IMODE(key.stat().st_mode)
    except OSError as error:
        if is_needed:
            yield fail("key", f"{key}: {error.strerror}: `messiahs certificate request` makes one")
        return
    if mode & 0o077:
        yield fail("key", f"other accounts may read {key}: `chmod 600 {key}`, and replace it if they may have")
    elif is_needed:
        yield ok("key", f"{key.name} is its owner's alone")


def name_of(uid: int) -> str:
    """Return the name of an account, or its number if it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def check_units(patient: Patient) -> Iterator[Finding]:
    """Say whether the module is started when its host boots."""
    unit = f"messiahs-{patient.settings.name}.service"
    systemctl = shutil.which("systemctl")
    if not _SYSTEMD.is_dir() or systemctl is None:
        yield ok("unit", "systemd does not run here: whatever starts this module at boot is not known")
        return
    for scope in ([], ["--user"]):
        found = subprocess.run([systemctl, *scope, "is-enabled", unit], capture_output=True, text=True, check=False)
        if found.stdout.strip() == "enabled":
            yield ok("unit", f"{unit} is enabled")
            return
    text = f"{unit} is not enabled: the module does not start when the host boots"
    yield warn("unit", f"{text}; `messiahs topology bundle` makes it, and `systemctl enable --now {unit}` starts it")
