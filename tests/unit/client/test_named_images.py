"""Finding the image that a user names, before anything is uploaded."""

import io
import tarfile
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from messiahs.client.images import image_source
from messiahs.client.inputs import prepare_inputs
from messiahs.core.model.images import IMAGE_INPUT
from messiahs.errors import ClientError
from messiahs.executor.images.archive import read_image
from tests.live.disks import mounted
from tests.oci_images import Archive, Entry, image_of, layer_of


def layout(folder: Path) -> Path:
    """Write a folder with an OCI layout."""
    made = Archive(layers=[layer_of(Entry(name="a"))], architecture="amd64")
    made.content()
    for name, content in made.blobs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "notes").write_text("not of the layout")
    return folder


def test_an_archive_is_the_input_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(image_of(layer_of(Entry(name="a"))))
    with image_source(str(path)) as source:
        assert (source.path, source.name) == (str(path), IMAGE_INPUT)


def test_a_folder_becomes_the_same_archive_each_time_and_nothing_else_of_it_is_sent(tmp_path: Path) -> None:
    hashes = []
    for name in ("one", "two"):
        with image_source(str(layout(tmp_path / name))) as source:
            content = Path(source.path).read_bytes()
            hashes.append(prepare_inputs([source]).inputs[0].sha256)
        assert not Path(source.path).exists()
    assert len(set(hashes)) == 1
    assert len(read_image(io.BytesIO(content), "x86_64").layers) == 1
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert "notes" not in archive.getnames()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("image.tar", b"nothing", "is not a tar file"),
        ("image.tar", layer_of(Entry(name="manifest.json")), "podman save --format oci-archive"),
        ("image{}.tar", image_of(layer_of(Entry(name="a"))), "stands for a member's number"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ClientError, match=said), image_source(str(tmp_path / name)):
        pass
    with pytest.raises(ClientError, match="cannot be read"), image_source(str(tmp_path / "absent")):
        pass
    (tmp_path / "empty").mkdir()
    with pytest.raises(ClientError, match=r"no index\.json"), image_source(str(tmp_path / "empty")):
        pass


@pytest.mark.processes
def test_a_full_temporary_disk_is_named_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image, small = layout(tmp_path / "image"), tmp_path / "small"
    (image / "blobs" / "sha256" / ("0" * 64)).write_bytes(bytes(3 << 20))
    small.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(small))
    with (
        mounted(small, "-t", "tmpfs", "-o", "size=1m", "tmpfs"),
        pytest.raises(ClientError) as refused,
        ExitStack() as it,
    ):
        it.enter_context(image_source(str(image)))
    full = f"the disk of {small} is full, where the archive of an image (3 MiB of files) is kept"
    remedy = "free space there, or set TMPDIR to another folder"
    assert str(refused.value) == f"the image `{image}` cannot be packed: {full}: {remedy}"
