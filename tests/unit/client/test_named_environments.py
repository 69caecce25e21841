"""Environments that users name: what is packed, once, and what is refused before anything is submitted."""

import io
import json
import os
import tarfile
import time
from pathlib import Path

import msgspec
import pytest

from messiahs.client import environments
from messiahs.client.environments import PackedEnvironment, packed_conda, packed_venv
from messiahs.client.progress import silent
from messiahs.errors import ClientError
from messiahs.executor.images.environments import Environment, why_not_there
from tests.live.disks import mounted


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "messiahs" / "environments"


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Return a folder that looks like a virtual environment."""
    made = tmp_path / "venv"
    (made / "bin").mkdir(parents=True)
    (made / "lib").mkdir()
    (made / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    (made / "bin" / "python").symlink_to("/usr/bin/python3")
    (made / "bin" / "python3").symlink_to("python")
    (made / "bin" / "tool").write_text("#!/bin/sh\n")
    (made / "bin" / "tool").chmod(0o700)
    (made / "lib" / "module.py").write_text("x = 1\n")
    os.mkfifo(made / "pipe")
    return made


def packed(folder: Path) -> PackedEnvironment:
    return packed_venv(str(folder), silent)


def content_of(environment: PackedEnvironment) -> tarfile.TarFile:
    return tarfile.open(fileobj=io.BytesIO(Path(environment.content.path).read_bytes()))


def test_its_files_are_packed_after_what_it_says_of_itself(venv: Path) -> None:
    made = packed(venv)
    assert made.interpreter == "/usr/bin/python3.11"
    with content_of(made) as archive:
        names = archive.getnames()
        about = archive.extractfile(names[0])
        assert about is not None
        said = msgspec.json.decode(about.read(), type=Environment)
        assert archive.getmember("tree/bin/python").linkname == "/usr/bin/python3"
        modes = {name: archive.getmember(name).mode for name in ("tree/bin/tool", "tree/lib/module.py")}
        times = archive.getmember("tree/lib/module.py").mtime
    assert said == Environment(
        path=str(venv), variable="VIRTUAL_ENV", interpreter="/usr/bin/python3.11", links=("/usr/bin/python3",)
    )
    below = ("bin", "bin/python", "bin/python3", "bin/tool", "lib", "lib/module.py", "pyvenv.cfg")
    assert names == ["environment.json", "tree", *(f"tree/{name}" for name in below)]
    assert modes == {"tree/bin/tool": 0o755, "tree/lib/module.py": 0o644}
    # Compiled modules are used only with sources of the recorded time.
    assert times == int((venv / "lib" / "module.py").stat().st_mtime)


def test_it_is_packed_once_until_a_file_changes(venv: Path, cache: Path) -> None:
    first = packed(venv)
    Path(first.content.path).write_bytes(b"not packed again")
    assert packed(venv).content.sha256 == first.content.sha256
    assert [path.name for path in cache.iterdir()] == [Path(first.content.path).name]
    (venv / "lib" / "module.py").write_text("x = 2\n")
    second = packed(venv)
    assert second.content.sha256 != first.content.sha256
    with content_of(second) as archive:
        module = archive.extractfile("tree/lib/module.py")
        assert module is not None
        assert module.read() == b"x = 2\n"


@pytest.mark.processes
@pytest.mark.parametrize(
    ("options", "content"), [("size=1m", os.urandom(3 << 20)), ("size=8m,nr_inodes=2", b"")], ids=["bytes", "inodes"]
)
def test_a_full_disk_of_the_cache_is_named_with_what_to_do(
    venv: Path, cache: Path, options: str, content: bytes
) -> None:
    (venv / "large").write_bytes(content)
    home = cache.parents[1]
    home.mkdir()
    with mounted(home, "-t", "tmpfs", "-o", options, "tmpfs"), pytest.raises(ClientError) as refused:
        packed(venv)
    full = f"the disk of {cache} is full, where the packed environment ({len(content) >> 20} MiB of files) is kept"
    remedy = "free space there, or set XDG_CACHE_HOME to another folder"
    assert str(refused.value) == f"the environment `{venv}` cannot be packed: {full}: {remedy}"


def test_the_same_files_give_the_same_bytes_whoever_owns_them(venv: Path, cache: Path) -> None:
    first = packed(venv)
    for path in cache.iterdir():
        path.unlink()
    if os.geteuid() == 0:
        os.chown(venv / "lib" / "module.py", 1234, 1234)
    assert packed(venv).content.sha256 == first.content.sha256


def test_the_least_recently_used_one_goes_when_all_are_too_large(
    venv: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = packed(venv)
    os.utime(first.content.path, (1, 1))
    monkeypatch.setattr(environments, "CACHE_BYTES", 1)
    (venv / "lib" / "other.py").write_text("")
    # As one that another command removes or renames while this one looks at all.
    (cache / "gone").symlink_to("nowhere")
    second = packed(venv)
    assert {path.name for path in cache.iterdir()} == {Path(second.content.path).name, "gone"}
    assert Path(second.content.path).stat().st_mtime > time.time() - 3600


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("version = 3.11.2\n", "has no `home` or `version`"),
        ("home = /usr/bin\n", "has no `home` or `version`"),
        ("home = bin\nversion = 3.11\n", "has no `home` or `version`"),
    ],
)
def test_what_is_no_environment_is_refused(venv: Path, text: str | None, said: str) -> None:
    (venv / "pyvenv.cfg").unlink()
    if text is not None:
        (venv / "pyvenv.cfg").write_text(text)
    with pytest.raises(ClientError, match="is no virtual environment: ") as refused:
        packed(venv)
    assert said in str(refused.value)


@pytest.mark.parametrize("place", ["/usr/lib/x", "/etc/x", "/var/lib", "/home", "/proc/x", "/a:b"])
def test_a_place_that_would_hide_the_system_is_refused(place: str) -> None:
    assert why_not_there(place)
    assert not why_not_there("/home/somebody/.venv")
    assert not why_not_there("/venv")


def test_an_environment_below_a_folder_of_the_system_is_refused_before_it_is_packed(
    venv: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "messiahs.executor.images.environments.why_not_there", lambda _: "there it would hide what the system has"
    )
    with pytest.raises(ClientError, match=r"cannot be shown to a task at .*: there it would hide what the system has"):
        packed(venv)
    assert not cache.exists()


@pytest.fixture
def conda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that looks like an environment of conda, which no conda knows."""
    made = tmp_path / "envs" / "science"
    (made / "conda-meta").mkdir(parents=True)
    (made / "bin").mkdir()
    (made / "bin" / "python").write_text("")
    for name in ("CONDA_PREFIX", "CONDA_EXE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    return made


def says(environment: PackedEnvironment) -> Environment:
    with content_of(environment) as archive:
        about = archive.extractfile("environment.json")
        assert about is not None
        return msgspec.json.decode(about.read(), type=Environment)


def test_a_conda_environment_has_its_own_interpreter(conda: Path) -> None:
    made = packed_conda(str(conda), silent)
    assert made.interpreter == ""
    assert says(made) == Environment(path=str(conda), variable="CONDA_PREFIX")


@pytest.mark.processes
def test_the_active_one_and_those_that_conda_lists_have_names(conda: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClientError, match="no conda is here that knows the environment `science`: name its folder"):
        packed_conda("science", silent)
    monkeypatch.setenv("CONDA_PREFIX", str(conda))
    assert says(packed_conda("science", silent)).path == str(conda)
    program = conda.parent / "conda"
    listed = {"envs": [str(conda), str(conda.parent / "other")], "root_prefix": str(conda.parent)}
    program.write_text(f"#!/bin/sh\n[ \"$*\" = 'info --json' ] && echo '{json.dumps(listed)}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("CONDA_PREFIX", "/elsewhere")
    monkeypatch.setenv("CONDA_EXE", str(program))
    assert says(packed_conda("science", silent)).path == str(conda)
    with pytest.raises(ClientError, match="conda knows no environment `sciences`, but base, other, science"):
        packed_conda("sciences", silent)
    with pytest.raises(ClientError, match=r"`base` is no environment of conda: .* has no conda-meta"):
        packed_conda("base", silent)
    program.write_text("#!/bin/sh\necho nothing\n")
    with pytest.raises(ClientError, match="does not tell which environments there are"):
        packed_conda("science", silent)


def test_a_folder_that_is_no_virtual_environment_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(
        ClientError, match=r"is no virtual environment: pyvenv\.cfg cannot be read: No such file or dir"
    ):
        packed(tmp_path / "nothing")
    (tmp_path / "pyvenv.cfg").write_bytes(b"\xff")
    with pytest.raises(ClientError, match=r"is no virtual environment: pyvenv\.cfg cannot be read: it is not UTF-8"):
        packed(tmp_path)
