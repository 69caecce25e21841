"""The standard library's own tests of executors, over `messiahs.Executor`: a program for Debian's Python.

`libpython3.11-testsuite` has those tests. What they say about processes and threads of a pool does not apply.
"""

import os
import sys
import unittest

from test import test_concurrent_futures as standard  # type: ignore[import-not-found, unused-ignore]

from messiahs import Executor


class Mixin(standard.ExecutorMixin):  # type: ignore[misc, name-defined, unused-ignore]
    """Gives the tests an executor."""

    @staticmethod
    def executor_type(max_workers: int) -> Executor:
        """Return an executor whose tasks run under this Python."""
        return Executor(max_workers, python=sys.executable, module=os.environ["MESSIAHS_MODULE"])


class Waits(Mixin, standard.WaitTests, unittest.TestCase):  # type: ignore[misc, name-defined, unused-ignore]
    """`futures.wait`."""


class Completes(Mixin, standard.AsCompletedTests, unittest.TestCase):  # type: ignore[misc, name-defined, unused-ignore]
    """`futures.as_completed`."""


class Calls(Mixin, standard.ExecutorTest, unittest.TestCase):  # type: ignore[misc, name-defined, unused-ignore]
    """`submit` and `map`."""


class Chunks(Mixin, unittest.TestCase):
    """`map` with chunks, as of a pool of processes."""

    test_map_chunksize = standard.ProcessPoolExecutorTest.test_map_chunksize


class Shutdowns(Mixin, unittest.TestCase):
    """`shutdown`, as far as no program of its own uses an executor by name."""

    test_run_after_shutdown = standard.ExecutorShutdownTest.test_run_after_shutdown
    test_hang_issue12364 = standard.ExecutorShutdownTest.test_hang_issue12364


if __name__ == "__main__":
    standard.setUpModule()
    unittest.main(verbosity=2)
