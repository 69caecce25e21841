"""Folders that tasks of several accounts share: the tasks of each module of root have an account of their own."""

import os
import struct
from pathlib import Path

_VERSION = 2
_OWNER, _GROUP, _OTHERS = 0x01, 0x04, 0x20
_ALL = 7
_NOBODY_IN_PARTICULAR = 0xFFFFFFFF


def open_to_all(folder: Path) -> None:
    """Let every account write to a folder, and to the files and folders that others make there, whatever their umask.

    The default access control list takes the place of the umask (acl(5)).
    """
    folder.chmod(0o777)
    entries = (struct.pack("<HHI", tag, _ALL, _NOBODY_IN_PARTICULAR) for tag in (_OWNER, _GROUP, _OTHERS))
    os.setxattr(folder, "system.posix_acl_default", struct.pack("<I", _VERSION) + b"".join(entries))
