"""Images of containers that users name: an archive as it is, or a folder with an OCI layout, of which one is made."""

import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from messiahs.client.full_disks import why_not_written
from messiahs.client.inputs import Source
from messiahs.config.disk import FULL
from messiahs.core.model.array_index import PLACEHOLDER
from messiahs.core.model.images import IMAGE_INPUT
from messiahs.errors import ClientError, OptionValueError
from messiahs.executor.images.archive import ImageError, check_layout

_OF_LAYOUT: Final = ("oci-layout", "index.json")
_BLOBS: Final = "blobs/sha256"


@contextmanager
def image_source(path: str) -> Iterator[Source]:
    """Yield the input that brings an image to its task; an archive that was made of a folder is removed afterwards.

    Raises `ClientError` if there is no image.
    """
    try:
        if Path(path).is_dir():
            with tempfile.TemporaryDirectory(prefix="messiahs-image-") as folder:
                archive = f"{folder}/image.tar"
                _archive(Path(path), archive)
                yield _checked(archive, path)
        else:
            yield _checked(path, path)
    except OSError as error:
        if full := _why_not_written(error, path):
            raise ClientError(f"the image `{path}` cannot be packed: {full}") from error
        raise OptionValueError(f"the image `{path}` cannot be read: {error.strerror or error}") from error


def _why_not_written(error: OSError, path: str) -> str:
    if error.errno not in FULL:
        return ""
    blobs = Path(path, _BLOBS)
    size_bytes = sum(each.stat().st_size for each in blobs.iterdir()) if blobs.is_dir() else 0
    folder, what = tempfile.gettempdir(), "the archive of an image"
    return why_not_written(error, folder, what=what, size_bytes=size_bytes, variable="TMPDIR")


def _checked(archive: str, path: str) -> Source:
    try:
        with Path(archive).open("rb") as file:
            check_layout(file)
    except ImageError as error:
        raise OptionValueError(f"the image `{path}` cannot be used: {error}") from error
    if PLACEHOLDER in archive:
        raise OptionValueError(
            f"the path of the image `{path}` contains {PLACEHOLDER}, which stands for a member's number"
        )
    return Source(path=archive, name=IMAGE_INPUT)


def _archive(layout: Path, target: str) -> None:
    """Write the archive of a layout: the same bytes whenever the layout has the same content."""
    blobs = layout / _BLOBS
    names = [*_OF_LAYOUT, *(f"{_BLOBS}/{name}" for name in (sorted(os.listdir(blobs)) if blobs.is_dir() else ()))]  # noqa: PTH208 - names
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            file = layout / name
            if file.is_file():
                info = tarfile.TarInfo(name)
                info.size = file.stat().st_size
                with file.open("rb") as content:
                    archive.addfile(info, content)
