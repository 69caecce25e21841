"""A backend of joblib whose jobs run as tasks of a federation; scikit-learn's `n_jobs` use it.

    messiahs.joblib.register()
    with joblib.parallel_config("messiahs", module="laptop", n_jobs=-1):
        GridSearchCV(model, grid).fit(data, labels)

joblib, and what the jobs import, must be installed for the Python at the machines (`python=`), or come as `inputs`.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from joblib.parallel import ParallelBackendBase, register_parallel_backend

from messiahs.client.futures.executor import Executor

NAME: Final = "messiahs"
_OPEN_JOBS: Final = 64
"""Jobs that joblib gives at a time, at least: it has twice as many of its batches under way (`pre_dispatch`)."""


def register() -> None:
    """Let `joblib.parallel_config("messiahs", …)` use a federation; the options are those of `messiahs.Executor`."""
    register_parallel_backend(NAME, Backend)


class Backend(ParallelBackendBase):  # type: ignore[misc] # joblib has no types
    """Runs each batch of joblib as a call of an executor, which lives as long as a call of `Parallel`.

    Batches of joblib are of one job. The executor, which learns how long jobs take without the way to their machine,
    lets short ones share tasks.
    """

    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, nesting_level: int | None = None, **options: Any) -> None:  # noqa: ANN401 - joblib's interface
        super().__init__(nesting_level=nesting_level)
        self._options = options
        self._executor: Executor | None = None

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Return how many jobs may run at a time: as many as tasks may, where `n_jobs` is negative."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        tasks = self._options.get("max_workers") or Executor.default_max_workers
        return tasks if n_jobs is None or n_jobs < 0 else min(tasks, n_jobs)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:  # noqa: ANN401 - as above
        """Begin a call of `Parallel` with at most `n_jobs` tasks at a time, for more jobs that can share them."""
        self.parallel = parallel
        tasks = self.effective_n_jobs(n_jobs)
        self._executor = Executor(**{**self._options, "max_workers": tasks})
        # joblib runs what has only one job in this process.
        return tasks if tasks == 1 else max(_OPEN_JOBS, tasks)

    def terminate(self) -> None:
        """End a call of `Parallel`."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: FBT001, FBT002 - as above
        """Cancel what was submitted; with `ensure_ready` more may follow."""
        if self._executor is not None:
            self._executor.cancel_all()
        self.terminate()
        if ensure_ready:
            self.configure(n_jobs=self.parallel.n_jobs, parallel=self.parallel)

    def submit(self, func: Callable[[], Any], callback: Callable[[Future[Any]], None] | None = None) -> Future[Any]:
        """Submit a batch of jobs."""
        assert self._executor is not None, "joblib configures a backend first"
        future = self._executor.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:  # noqa: ANN401 - as above
        """Return the result of a batch, or raise its exception."""
        return out.result()
