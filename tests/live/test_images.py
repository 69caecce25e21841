"""Tasks in images of containers, submitted at one module and run by another."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.conftest import Federation, brought_up
from tests.oci_images import Entry, image_of, layer_of, programs

pytestmark = pytest.mark.live

_TOPOLOGY = """
version: 1
federation: shipped
defaults: {update_period: 500ms}
systems:
  home: {}
  cage: {parent: home, machine: {slots: 2, isolation: sandbox}}
  open: {parent: home, machine: {slots: 8, isolation: process}}
"""
_RECIPE = """
FROM scratch
COPY busybox /bin/busybox
COPY busybox /bin/sh
ENV PATH=/bin COLOR=blue
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federation]:
    if os.geteuid() != 0:
        pytest.skip("needs root, who alone can set up sandboxes with accounts of their own")
    folder = tmp_path_factory.mktemp("shipped")
    topology = folder / "shipped.yaml"
    topology.write_text(_TOPOLOGY)
    made = Federation(topology=topology, name="shipped", state=folder / "state", module="home")
    with brought_up(made):
        yield made


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("images") / "image.tar"
    path.write_bytes(
        image_of(layer_of(*programs("sh", "cat", "ls"), Entry(name="etc/issue", content=b"of the image\n")))
    )
    return path


def test_a_task_runs_in_its_image_at_another_module_and_its_files_come_back(
    shipped: Federation, archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "given").write_text("brought along\n")
    files = ("--input", str(tmp_path / "given"), "--output", "result")
    script = "cat /etc/issue given >result; cat result; ls -A"
    task = shipped.submit("--image", str(archive), *files, "--", "sh", "-c", script)
    assert shipped.run("wait", task).returncode == 0, shipped.status(task)
    assert shipped.run("logs", task).stdout == "of the image\nbrought along\ngiven\nresult\n"
    fetched = shipped.run("fetch", task, "--into", str(tmp_path / "out"))
    assert (fetched.returncode, (tmp_path / "out" / "result").read_text()) == (0, "of the image\nbrought along\n")


def test_a_folder_with_a_layout_is_an_image_too_and_all_members_of_an_array_run_in_it(
    shipped: Federation, archive: Path, tmp_path: Path
) -> None:
    layout = tmp_path / "layout"
    layout.mkdir()
    subprocess.run(["tar", "-xf", archive, "-C", layout], check=True)
    task = shipped.submit("--array", "1-3", "--image", str(layout), "--", "sh", "-c", "cat /etc/issue; echo {}")
    assert shipped.run("wait", task).returncode == 0
    assert [shipped.run("logs", f"{task}.{member}").stdout for member in (1, 2, 3)] == [
        f"of the image\n{member}\n" for member in (1, 2, 3)
    ]


def test_machines_without_sandboxes_are_not_asked_and_the_task_says_why_it_waits(
    shipped: Federation, archive: Path
) -> None:
    image = ("--image", str(archive))
    denied = shipped.submit(
        "--no-wait", *image, "--require", '$isolation eq "process"', "--", "sh", "-c", "cat /etc/issue"
    )
    assert shipped.run("wait", denied).returncode != 0
    found = shipped.status(denied)
    assert found["state"] == "denied"
    assert found["requirement"] == '($isolation eq "process") and $isolation eq "sandbox"'


def test_a_task_whose_image_is_damaged_is_aborted_and_never_tried_again(shipped: Federation, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(image_of(b"no layer at all"))
    task = shipped.submit("--image", str(damaged), "--", "true")
    assert shipped.run("wait", task).returncode == 125
    status = shipped.status(task)
    assert (status["state"], status["cause"], status["attempt"]) == ("aborted", "image_unusable", 1)
    assert "a layer cannot be read" in status["text"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"nothing", "is not a tar file"), (layer_of(Entry(name="manifest.json")), "--format oci-archive")],
)
def test_what_is_no_image_is_refused_before_anything_is_submitted(
    shipped: Federation, tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(content)
    refused = shipped.run("submit", "--image", str(path), "--", "true")
    assert refused.returncode != 0
    assert said in refused.stderr
    missing = shipped.run("submit", "--image", str(tmp_path / "absent"), "--", "true")
    assert "cannot be read: No such file" in missing.stderr


def test_an_image_that_podman_built_of_a_package_of_debian_runs(shipped: Federation, tmp_path: Path) -> None:
    busybox = Path("/usr/bin/busybox")
    if shutil.which("podman") is None or not busybox.exists():
        pytest.skip("needs the packages podman and busybox-static")
    (tmp_path / "Containerfile").write_text(_RECIPE)
    shutil.copy(busybox, tmp_path)
    saved = tmp_path / "saved.tar"
    commands = (("build", "-t", "smoke", "."), ("save", "--format", "oci-archive", "-o", str(saved), "smoke"))
    # Podman takes short paths only.
    with tempfile.TemporaryDirectory(prefix="podman-") as store:
        places = ("--root", f"{store}/root", "--runroot", f"{store}/run", "--storage-driver", "vfs")
        for command in commands:
            done = subprocess.run(
                ["podman", *places, *command], cwd=tmp_path, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
    ran = shipped.run(
        "run", "--image", str(saved), "--", "busybox", "sh", "-c", "busybox ls /; echo $COLOR; busybox id -un"
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    *root, color, user = ran.stdout.split()
    assert {"bin", "task", "tmp"} <= set(root)
    assert not {"usr", "home"} & set(root)
    assert (color, user) == ("blue", "task")
