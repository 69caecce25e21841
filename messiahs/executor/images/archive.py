"""The archive of an image: a tar file with an OCI image layout, as podman, buildah and skopeo write it.

Nothing in it is trusted: sizes are limited, and what is used is compared with its digest.
"""

import hashlib
import re
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, NamedTuple, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

LAYERS: Final = 128
"""Maximum number of layers of an image."""
DOCUMENT_BYTES: Final = 1 << 20
"""Maximum size of an index, a manifest or a configuration."""
VARIABLES: Final = 1 << 16
"""Maximum number of letters of an image's variables."""
BLOBS: Final = 4096
"""Maximum number of files in an archive."""
_INDEXES: Final = 3
"""Maximum number of indexes that lead to a manifest."""
_INDEX: Final = "index.json"
_OF_DOCKER: Final = "manifest.json"
_INDEX_TYPES: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_PIECE_BYTES: Final = 1 << 20
_ARCHITECTURES: Final = {
    "aarch64": "arm64",
    "i686": "386",
    "riscv64": "riscv64",
    "x86_64": "amd64",
}
"""Names of architectures in images, by those that `uname` has."""


NEGATIVE_SIZE: Final = "a file in it has a negative size"


class ImageError(Exception):
    """An image cannot be used; the text says why."""


class NotHereError(ImageError):
    """This machine cannot use an image now, for want of room or because of a failure; another one may."""


class Blob(NamedTuple):
    """The place of a file within its archive."""

    offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What an image consists of: its layers, the lowest first, and the variables that its configuration sets."""

    layers: tuple[Blob, ...]
    variables: tuple[tuple[str, str], ...]


class _Platform(msgspec.Struct, frozen=True):
    architecture: str = ""
    os: str = ""


class _Descriptor(msgspec.Struct, frozen=True, rename="camel"):
    digest: str
    media_type: str = ""
    platform: _Platform | None = None


class _Index(msgspec.Struct, frozen=True):
    manifests: list[_Descriptor] = []


class _Manifest(msgspec.Struct, frozen=True):
    config: _Descriptor
    layers: list[_Descriptor] = []


class _Settings(msgspec.Struct, frozen=True, rename="pascal"):
    env: list[str] | None = None


class _Configuration(msgspec.Struct, frozen=True):
    architecture: str = ""
    os: str = ""
    config: _Settings | None = None


def read_image(file: BinaryIO, machine: str) -> Image:
    """Return the image for a machine, as `uname` names it, after comparing everything with its digest.

    Raises `ImageError`, also for an archive with no image for this machine, or with several.
    """
    blobs = _blobs(file)
    manifest = _manifest(file, blobs, machine)
    if not 0 < len(manifest.layers) <= LAYERS:
        raise ImageError(f"it has {len(manifest.layers)} layers; 1 to {LAYERS} are possible")
    configuration = _decoded(_content(file, blobs, manifest.config.digest), _Configuration)
    if not _suits(_Platform(architecture=configuration.architecture, os=configuration.os), machine):
        raise ImageError(f"it is for {configuration.os} on {configuration.architecture}, and this machine is {machine}")
    settings = configuration.config or _Settings()
    return Image(
        layers=tuple(_verified(file, blobs, layer.digest) for layer in manifest.layers),
        variables=tuple(_variables(settings.env or [])),
    )


def check_layout(file: BinaryIO) -> None:
    """Check that a file is the archive of an image. Raises `ImageError`."""
    _decoded(_piece(file, _index(_blobs(file))), _Index)


def _blobs(file: BinaryIO) -> dict[str, Blob]:
    found: dict[str, Blob] = {}
    try:
        with tarfile.open(fileobj=file, mode="r:") as archive:
            for number, member in enumerate(archive):
                if number >= BLOBS:
                    raise ImageError(f"the archive has more than {BLOBS} files")
                if member.size < 0:
                    raise ImageError(NEGATIVE_SIZE)
                if member.isreg() and not member.issparse():
                    found[member.name.removeprefix("./")] = Blob(member.offset_data, member.size)
    except (tarfile.TarError, OSError, ValueError, OverflowError, RecursionError, MemoryError) as error:
        raise ImageError(f"it is not a tar file: {error}") from error
    return found


def _index(blobs: Mapping[str, Blob]) -> Blob:
    if _INDEX in blobs:
        return blobs[_INDEX]
    if _OF_DOCKER in blobs:
        raise ImageError("it is an archive of Docker: write it with `podman save --format oci-archive`")
    raise ImageError(f"it is not the archive of an OCI image: it has no {_INDEX}")


def _manifest(file: BinaryIO, blobs: Mapping[str, Blob], machine: str) -> _Manifest:
    """Return the manifest of the one image for a machine."""
    index = _decoded(_piece(file, _index(blobs)), _Index)
    for _ in range(_INDEXES):
        suitable = [one for one in index.manifests if one.platform is None or _suits(one.platform, machine)]
        if not suitable:
            raise ImageError(f"it has no image for this machine, which is {machine}")
        if len(suitable) > 1:
            raise ImageError("it has several images: save the one that is to be used")
        content = _content(file, blobs, suitable[0].digest)
        if suitable[0].media_type not in _INDEX_TYPES:
            return _decoded(content, _Manifest)
        index = _decoded(content, _Index)
    raise ImageError("its indexes lead to no manifest")


def _suits(platform: _Platform, machine: str) -> bool:
    """Whether an image is for a machine; one that says nothing is."""
    return platform.os in ("", "linux") and platform.architecture in ("", _ARCHITECTURES.get(machine, machine))


def _content(file: BinaryIO, blobs: Mapping[str, Blob], digest: str) -> bytes:
    return _piece(file, _verified(file, blobs, digest))


def _piece(file: BinaryIO, blob: Blob) -> bytes:
    if blob.size_bytes > DOCUMENT_BYTES:
        raise ImageError(f"a document in it has more than {DOCUMENT_BYTES} bytes")
    file.seek(blob.offset)
    return file.read(blob.size_bytes)


def _verified(file: BinaryIO, blobs: Mapping[str, Blob], digest: str) -> Blob:
    """Return the file with a digest, which its content has. Raises `ImageError`."""
    named = _DIGEST.fullmatch(digest)
    if named is None:
        raise ImageError(f"the digest {digest[:80]!r} is not one of SHA-256")
    blob = blobs.get(f"blobs/sha256/{named[1]}")
    if blob is None:
        raise ImageError(f"{digest} is not in the archive")
    file.seek(blob.offset)
    actual, left = hashlib.sha256(), blob.size_bytes
    while left and (piece := file.read(min(left, _PIECE_BYTES))):
        actual.update(piece)
        left -= len(piece)
    if left or actual.hexdigest() != named[1]:
        raise ImageError(f"the content of {digest} is damaged")
    return blob


def _decoded(content: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ImageError(f"a document in it cannot be read: {error}") from error


def _variables(env: list[str]) -> list[tuple[str, str]]:
    pairs = [one.partition("=") for one in env]
    if any(not name or not equals or "\0" in name + value for name, equals, value in pairs):
        raise ImageError("its variables are not NAME=VALUE")
    if sum(map(len, env)) > VARIABLES:
        raise ImageError(f"its variables have more than {VARIABLES} letters")
    return [(name, value) for name, _, value in pairs]
