"""A suite that acts as a neighbor of a module and checks the four autonomies of that module (MESSIAHS 4.2).

Without options it starts a federation of its own. With `--subject`, `--seat` and `--friend` it is pointed at a module
that runs: `docs/administrators.md` says how.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from messiahs.daemon.policies.kept import KEPT
from tests.autonomy.scene import FRIEND, SEAT, SUBJECT, Scene, own_lab, scene_of

_OPTIONS = {
    "--subject": "folder of the running module that is tested",
    "--seat": "folder of a neighbor of it, whose daemon does not run: the suite uses its keys",
    "--friend": "folder of another neighbor of it, whose daemon runs here: the suite submits tasks there",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let an administrator name a running module."""
    group = parser.getgroup("autonomy", "a module whose autonomy is tested (tests/autonomy)")
    for option, text in _OPTIONS.items():
        group.addoption(option, type=Path, metavar="FOLDER", help=text)


@pytest.fixture(scope="session")
def _shared_scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folders = [request.config.getoption(option, None) for option in _OPTIONS]
    if not any(folders):
        with own_lab(tmp_path_factory.mktemp("autonomy")) as made:
            yield scene_of(*(made.federation.folder(each) for each in (SUBJECT, SEAT, FRIEND)))
        return
    if not all(folders):
        raise pytest.UsageError(f"{', '.join(_OPTIONS)} are used together")
    subject = folders[0]
    if (subject / KEPT).exists():
        text = "its policy was put in place by `messiahs policy load FILE`, and the suite would return to its own file"
        raise pytest.UsageError(f"{subject}: {text}")
    yield scene_of(*folders)


@pytest.fixture
def scene(_shared_scene: Scene) -> Iterator[Scene]:
    """Return the module under test and its neighbors, with the policy of the suite; afterwards with its own one."""
    with _shared_scene.prepared():
        yield _shared_scene
