"""`python -m messiahs.executor.starter`: how a daemon starts the starter; not meant for people."""

import sys

from messiahs.executor.starter.watchdog import be_watched


def main() -> int:
    """Become the starter of a module, below a watchdog, unless it has one (exit code 3)."""
    watch = be_watched(in_namespace="--namespace" in sys.argv)
    from messiahs.executor.starter.process import serve  # noqa: PLC0415 - or it stays in the watchdog's memory

    return serve(watch)


if __name__ == "__main__":
    sys.exit(main())
