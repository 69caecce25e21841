"""`python -m messiahs.executor.starter`: the command by which a daemon starts the starter."""

import sys

from messiahs.executor.starter.watchdog import be_watched


def main() -> int:
    """Run as the starter of a module, below a watchdog; exit code 3 if the module already has one."""
    watch = be_watched(in_namespace="--namespace" in sys.argv)
    from messiahs.executor.starter.process import serve  # noqa: PLC0415 - otherwise the watchdog keeps it in memory

    return serve(watch)


if __name__ == "__main__":
    sys.exit(main())
