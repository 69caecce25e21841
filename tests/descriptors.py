"""Running out of file descriptors."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_free_descriptor() -> Iterator[None]:
    """Let this process open no file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The standard input is open, and a socket with a time limit polls one file. With a higher limit, the number of a
    # file that another thread closes could be used again.
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
