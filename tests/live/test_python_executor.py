"""`messiahs.Executor`: Python functions as tasks, alone, in thousands, and under dask, joblib and scikit-learn."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import pytest

import messiahs
from messiahs.client.futures.packing import PYTHON
from messiahs.client.tasks import Client
from tests import system_python
from tests.live.conftest import ROOT, Federation, brought_up
from tests.waiting import PATIENCE_SECONDS, eventually

_PACKAGES = Path(sysconfig.get_path("purelib"))
_DEBIANS = Path("/usr/bin/python3.11")
_STANDARD_TESTS = Path("/usr/lib/python3.11/test/test_concurrent_futures.py")
_JOBS_IMPORT = ("cloudpickle", "dask", "scikit-learn")

pytestmark = pytest.mark.skipif(not system_python.IS_THERE, reason=system_python.WHY_NOT)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    with _started(tmp_path_factory.mktemp("desk"), "slots: 2") as made:
        yield made


@pytest.fixture(scope="module")
def packages() -> Iterator[Path]:
    """Return a folder with what jobs of dask and scikit-learn import, which every account can read.

    It is not one of pytest's, since each run of pytest takes the permission to read those of all runs away.
    """
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        _copy_packages(folder)
        yield folder


def _copy_packages(folder: Path) -> None:
    """Copy distributions with all that they require."""
    missing, seen = list(_JOBS_IMPORT), set()
    while missing:
        name = missing.pop()
        if name in seen or not any(metadata.distributions(name=name)):
            # Others are for other systems, or optional.
            continue
        seen.add(name)
        distribution = metadata.distribution(name)
        required = [text for text in distribution.requires or () if "extra" not in text]
        missing += [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in required]
        for part in {Path(str(file)).parts[0] for file in distribution.files or ()} - {".."}:
            copy = shutil.copytree if (_PACKAGES / part).is_dir() else shutil.copy
            copy(_PACKAGES / part, folder / part)


@pytest.fixture(scope="module")
def open_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    """Start a module whose tasks see the host, and with it the folder of packages."""
    with _started(tmp_path_factory.mktemp("open"), "isolation: process, slots: 2") as made:
        yield made


@contextmanager
def _started(folder: Path, machine: str) -> Iterator[Federation]:
    topology = folder / "desk.yaml"
    topology.write_text(f"version: 1\nfederation: desk\nsystems:\n  desk: {{machine: {{{machine}}}}}\n")
    made = Federation(topology=topology, name="desk", state=folder / "state", module="desk")
    with brought_up(made):
        yield made


@pytest.fixture
def client(desk: Federation) -> Iterator[Client]:
    with messiahs.connect("desk", desk.state, patience=PATIENCE_SECONDS) as made:
        yield made


@pytest.fixture
def executor(desk: Federation) -> Iterator[messiahs.Executor]:
    with messiahs.Executor(module="desk", state=desk.state, patience=PATIENCE_SECONDS) as made:
        yield made


def test_a_call_returns_its_value_or_raises_with_the_traceback_of_the_task(executor: messiahs.Executor) -> None:
    def fail(key: str) -> None:
        raise KeyError(key)

    assert executor.submit(divmod, 17, 5).result() == (3, 2)
    assert executor.submit(lambda text: int(text, 36), "z").result() == 35
    with pytest.raises(KeyError, match="lost") as raised:
        executor.submit(fail, "lost").result()
    assert "in fail" in str(raised.value.__cause__)


def test_a_thousand_short_calls_are_fewer_tasks_and_come_in_order(executor: messiahs.Executor, client: Client) -> None:
    before = len(client.status(*(task["id"] for task in client.status()), members=True))
    assert list(executor.map(pow, range(1_000), [2] * 1_000)) == [number * number for number in range(1_000)]
    after = len(client.status(*(task["id"] for task in client.status()), members=True))
    assert after - before < 250


def test_a_call_that_ends_its_task_fails_alone(executor: messiahs.Executor) -> None:
    def leave(number: int) -> int:
        if number == 3:
            os._exit(9)
        return number

    def die(number: int) -> int:
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert executor.submit(int).result() == 0
    left = [executor.submit(leave, number) for number in range(8)]
    died = [executor.submit(die, number) for number in range(8)]
    wait([*left, *died])
    assert [future.result() for future in left if future is not left[3]] == [0, 1, 2, 4, 5, 6, 7]
    assert [future.result() for future in died if future is not died[5]] == [0, 1, 2, 3, 4, 6, 7]
    with pytest.raises(messiahs.TaskFailedError, match="exited with 9"):
        left[3].result()
    with pytest.raises(messiahs.TaskFailedError, match="signal"):
        died[5].result()


def test_a_call_that_damages_the_results_of_its_task_fails_alone(executor: messiahs.Executor) -> None:
    def write(number: int) -> int:
        if number in {2, 5}:
            Path("results").write_text("mine")
        if number == 7:
            with Path("results").open("r+b") as file:
                file.write(b"mine")
        return number

    assert executor.submit(int).result() == 0
    written = [executor.submit(write, number) for number in range(10)]
    wait(written)
    failed = {number for number, future in enumerate(written) if future.exception()}
    assert failed == {2, 5, 7}
    with pytest.raises(RuntimeError, match="changed the file `results`"):
        written[2].result()
    with pytest.raises(messiahs.TaskFailedError, match="damaged the file `results`: its first line"):
        written[7].result()
    assert sum(future.result() for future in written if not future.exception()) == 45 - 2 - 5 - 7


def test_a_call_that_is_cancelled_ends_its_task(executor: messiahs.Executor, client: Client) -> None:
    future = executor.submit(time.sleep, 600)
    eventually(lambda: any("running" in task["counts"] for task in client.status()))
    (array,) = (task["id"] for task in client.status() if "running" in task["counts"])
    assert future.cancel()
    assert future.cancelled()
    assert client.wait(f"{array}.1", timeout=PATIENCE_SECONDS)[0]["state"] == "killed"


def test_a_shutdown_cancels_the_calls_that_have_not_begun(desk: Federation, client: Client) -> None:
    executor = messiahs.Executor(module="desk", state=desk.state, name="drained")
    futures = [executor.submit(time.sleep, 600) for _ in range(6)]

    def counts() -> Counter[str]:
        return sum((Counter(task["counts"]) for task in client.status() if task["name"] == "drained"), Counter[str]())

    # The other two calls are not submitted before those have begun.
    eventually(lambda: counts() == {"running": 2, "queued": 2})
    executor.shutdown(wait=False, cancel_futures=True)
    eventually(lambda: sum(future.cancelled() for future in futures) == 4)
    eventually(lambda: counts() == {"running": 2, "killed": 2})
    executor.cancel_all()
    executor.shutdown()


@pytest.mark.parametrize(
    ("calls", "waiting"),
    [
        ("executor.map(time.sleep, [600] * 3)", "list(calls)"),
        ("[executor.submit(time.sleep, 600) for _ in range(3)]", "pass"),
    ],
)
def test_an_interrupted_script_leaves_no_tasks(desk: Federation, client: Client, calls: str, waiting: str) -> None:
    script = f"""
import time, messiahs
with messiahs.Executor(module="desk", name="script") as executor:
    calls = {calls}
    print("ready", flush=True)
    {waiting}
"""
    known = {task["id"] for task in client.status()}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, env=desk.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        eventually(lambda: [task for task in client.status() if task["id"] not in known])
        running.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in running.communicate()[1]
    left = [task["id"] for task in client.status() if task["id"] not in known]
    ended = client.wait(*left, timeout=PATIENCE_SECONDS)
    assert not [task for task in ended if set(task["counts"]) - {"killed"}]


def test_calls_have_the_options_of_their_executor(executor: messiahs.Executor, client: Client) -> None:
    wide = executor.with_options(cpus=2, name="wide", env={"PLACE": "here"})
    assert wide.submit(os.getenv, "PLACE").result() == "here"
    assert executor.submit(os.getenv, "PLACE").result() is None
    named = [task for task in client.status() if task["name"] == "wide"]
    assert len(named) == 1


def test_calls_return_once_although_the_daemon_is_killed(executor: messiahs.Executor, desk: Federation) -> None:
    def slowly(number: int) -> int:
        subprocess.run(["sleep", "0.1"], check=True)
        return number

    results = executor.map(slowly, range(20))
    first = next(results)
    desk.kill("desk", "daemon")
    assert [first, *results] == list(range(20))


def test_a_python_that_is_not_there_is_told_before_anything_runs(desk: Federation) -> None:
    with (
        messiahs.Executor(module="desk", state=desk.state, python="python3.1") as other,
        pytest.raises(messiahs.PythonMismatchError, match=r"python3\.1"),
    ):
        other.submit(int).result()


def test_a_call_for_which_no_machine_is_large_enough_says_who_refused_it(executor: messiahs.Executor) -> None:
    with pytest.raises(messiahs.TaskFailedError, match="denied; desk: "):
        executor.with_options(mem="900TiB", waits=False).submit(int).result()


def test_what_cannot_be_pickled_fails_in_its_future_alone(executor: messiahs.Executor) -> None:
    with pytest.raises(TypeError, match="pickle"):
        executor.submit(id, sys._getframe()).result()
    with pytest.raises(TypeError, match="pickle"):
        executor.submit(sys._getframe).result()
    assert executor.submit(int).result() == 0


def test_after_shutdown_nothing_is_taken(desk: Federation) -> None:
    executor = messiahs.Executor(module="desk", state=desk.state)
    future = executor.submit(int)
    executor.shutdown()
    assert future.done()
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(int)


def test_an_executor_that_is_dropped_keeps_no_thread(desk: Federation) -> None:
    before = set(threading.enumerate())
    future = messiahs.Executor(module="desk", state=desk.state).submit(int)
    assert future.result() == 0
    eventually(lambda: not set(threading.enumerate()) - before)


def test_a_script_that_ends_at_once_waits_for_its_calls(desk: Federation) -> None:
    script = """
import messiahs
messiahs.Executor(module="desk").submit(int).add_done_callback(lambda done: print(done.result()))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, env=desk.environment
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


@pytest.mark.skipif(not _STANDARD_TESTS.exists(), reason="needs Debian's package libpython3.11-testsuite")
@pytest.mark.skipif(PYTHON != (3, 11), reason="Debian's Python 3.11 cannot use the packages of this one")
def test_it_passes_the_standard_librarys_own_tests_of_executors(desk: Federation) -> None:
    program = ROOT / "tests" / "live" / "standard_executor_tests.py"
    environment = {**desk.environment, "PYTHONPATH": f"{ROOT}:{_PACKAGES}"}
    done = subprocess.run([_DEBIANS, program], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    ran = re.search(r"^Ran (\d+) tests", done.stderr, re.MULTILINE)
    # An update of Debian may bring others.
    assert ran is not None
    assert int(ran[1]) >= 20


def test_a_graph_of_dask_is_computed_by_it(open_desk: Federation, packages: Path) -> None:
    dask = pytest.importorskip("dask")
    squares = [dask.delayed(pow)(number, 2) for number in range(20)]
    with messiahs.Executor(module="desk", state=open_desk.state, env={"PYTHONPATH": str(packages)}) as executor:
        assert dask.compute(dask.delayed(sum)(squares), scheduler=executor) == (2_470,)


@pytest.mark.parametrize("n_jobs", [-1, 4])
def test_short_jobs_of_joblib_share_tasks(desk: Federation, client: Client, n_jobs: int) -> None:
    joblib = pytest.importorskip("joblib")
    import messiahs.joblib as backend  # noqa: PLC0415 - joblib is there

    backend.register()
    options = {"module": "desk", "state": desk.state, "name": f"jobs{n_jobs}", "inputs": [Path(joblib.__file__).parent]}
    with joblib.parallel_config("messiahs", n_jobs=n_jobs, **options):
        assert joblib.Parallel()(joblib.delayed(pow)(number, 2) for number in range(60)) == [n * n for n in range(60)]
    assert sum(task["members"] for task in client.status() if task["name"] == f"jobs{n_jobs}") < 20


def test_a_grid_search_of_scikit_learn_runs_by_its_backend_of_joblib(open_desk: Federation, packages: Path) -> None:
    joblib = pytest.importorskip("joblib")
    datasets, search, svm = (pytest.importorskip(f"sklearn.{part}") for part in ("datasets", "model_selection", "svm"))
    import messiahs.joblib as backend  # noqa: PLC0415 - joblib is there

    backend.register()
    data, labels = datasets.load_iris(return_X_y=True)
    grid = search.GridSearchCV(svm.SVC(), {"C": [0.1, 1, 10]}, cv=3, n_jobs=-1)
    options = {"module": "desk", "state": open_desk.state, "name": "grid", "env": {"PYTHONPATH": str(packages)}}
    with joblib.parallel_config("messiahs", **options):
        found = grid.fit(data, labels)
    with joblib.parallel_config("threading"):
        expected = grid.fit(data, labels)
    assert found.best_params_ == expected.best_params_
    with messiahs.connect("desk", open_desk.state) as client:
        fits = [task for task in client.status(members=True) if task["name"] == "grid"]
    assert {(task["state"], Path(task["argv"][1]).suffix) for task in fits} == {("finished", ".pyz")}
