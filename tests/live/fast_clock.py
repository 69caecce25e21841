"""`python -m tests.live.fast_clock HOURS COMMAND…` signs as `messiahs COMMAND…` on a host whose clock is ahead."""

import sys
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Self

from messiahs.channel.certificates import tls
from messiahs.cli.main import main


def certificates_from(hours: int) -> None:
    """Let certificates that this process makes begin and end so many hours later."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp((datetime.now(UTC) + timedelta(hours=hours)).timestamp(), tz)

    setattr(tls, "datetime", Ahead)  # noqa: B010 - the clock of the process, not a name of the module


if __name__ == "__main__":
    certificates_from(int(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
