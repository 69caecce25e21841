"""What other systems may read of errors of this host: no addresses and no files."""

import errno

import pytest

from messiahs.errors import (
    BeyondError,
    ChannelError,
    DeclinedError,
    NoRoomError,
    RefusedError,
    StoreError,
    UntrustedError,
    explained,
    public_of,
)


@pytest.mark.parametrize(
    ("error", "public"),
    [
        (ChannelError("10.0.0.1:7101: Connection refused", public="Connection refused"), "Connection refused"),
        (UntrustedError("replace /etc/x.pem", claimed="gate", public="it is not trusted"), "it is not trusted"),
        (RefusedError("gate: its cache is full"), "gate: its cache is full"),
        (BeyondError("gate cannot reach far"), "gate cannot reach far"),
        (DeclinedError("gate: its cache is full"), "gate: its cache is full"),
        (NoRoomError("/home/ann/files/1 cannot be written"), "its disk has no room"),
        (StoreError("/home/ann/module.db cannot be written"), "it can store no files now"),
        (FileNotFoundError("nothing of it is left here"), "nothing of it is left here"),
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "/home/ann"), "No such file or directory"),
    ],
)
def test_an_error_is_shown_without_addresses_and_files(error: Exception, public: str) -> None:
    assert public_of(error) == public


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(errno.ENOSPC, "No space left", "/a/b"), "/a/b: No space left; free space on that disk, and repeat it"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/a/b"),
            "/a/b: Permission denied; it is for the account of its owner: repeat it as that account, or as root",
        ),
        (OSError(errno.EIO, "Input/output error"), "Input/output error"),
        (TimeoutError("timed out"), "timed out"),
    ],
)
def test_an_error_of_the_system_is_shown_with_its_file_and_what_to_do(error: OSError, text: str) -> None:
    assert explained(error) == text
