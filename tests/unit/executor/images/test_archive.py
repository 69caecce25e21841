"""Reading the archive of an image: what is used has the digest by which it is named."""

import io
import json
from collections.abc import Callable

import pytest

from messiahs.executor.images.archive import BLOBS, DOCUMENT_BYTES, LAYERS, Image, ImageError, check_layout, read_image
from tests.oci_images import Archive, Entry, image_of, layer_of

LAYER = layer_of(Entry(name="a"))
MACHINE = "x86_64"


def read(content: bytes) -> Image:
    return read_image(io.BytesIO(content), MACHINE)


def archive(*, env: tuple[str, ...] = (), architecture: str = "amd64") -> Archive:
    return Archive(layers=[LAYER], env=list(env), architecture=architecture)


def test_an_image_has_its_layers_in_order_and_its_variables() -> None:
    other = layer_of(Entry(name="b"))
    content = Archive(layers=[LAYER, other], env=["PATH=/bin", "A=b=c", "EMPTY="], architecture="amd64").content()
    image = read(content)
    found = [content[blob.offset : blob.offset + blob.size_bytes] for blob in image.layers]
    assert found == [LAYER, other]
    assert image.variables == (("PATH", "/bin"), ("A", "b=c"), ("EMPTY", ""))


def test_the_image_for_the_machine_is_chosen_also_below_another_index() -> None:
    made = archive()
    own = {**made.manifest(), "platform": {"architecture": "amd64", "os": "linux"}}
    foreign = {**made.document({"no": "manifest"}), "platform": {"architecture": "arm64", "os": "linux"}}
    inner = made.document({"manifests": [foreign, own]})
    kind = "application/vnd.oci.image.index.v1+json"
    made.blobs["index.json"] = json.dumps({"manifests": [{**inner, "mediaType": kind}]}).encode()
    assert len(read(made.content()).layers) == 1


def _several(made: Archive) -> None:
    made.blobs["index.json"] = json.dumps({"manifests": [made.manifest(), made.manifest()]}).encode()


def _foreign(made: Archive) -> None:
    foreign = {**made.manifest(), "platform": {"architecture": "s390x", "os": "linux"}}
    made.blobs["index.json"] = json.dumps({"manifests": [foreign]}).encode()


def _circular(made: Archive) -> None:
    kind = "application/vnd.oci.image.index.v1+json"
    inner = made.document({"manifests": []})
    for _ in range(4):
        inner = made.document({"manifests": [{**inner, "mediaType": kind}]})
    made.blobs["index.json"] = json.dumps({"manifests": [{**inner, "mediaType": kind}]}).encode()


def _damaged(made: Archive) -> None:
    made.content()
    name = next(name for name, content in made.blobs.items() if content == LAYER)
    made.blobs[name] = LAYER[:-1] + b"!"


def _falsified(made: Archive) -> None:
    made.content()
    name = next(name for name, content in made.blobs.items() if b"Env" in content)
    made.blobs[name] = made.blobs[name].replace(b"amd64", b"amd65")


def _incomplete(made: Archive) -> None:
    made.content()
    del made.blobs[next(name for name, content in made.blobs.items() if content == LAYER)]


def _with_path_for_digest(made: Archive) -> None:
    digest = {"digest": "sha256:../../../../etc/passwd"}
    made.blobs["index.json"] = json.dumps({"manifests": [digest]}).encode()


def _without_layers(made: Archive) -> None:
    made.layers.clear()


def _with_too_many_layers(made: Archive) -> None:
    made.layers *= LAYERS + 1


def _with_large_documents(made: Archive) -> None:
    made.blobs["index.json"] = json.dumps({"manifests": [], "more": "x" * DOCUMENT_BYTES}).encode()


def _with_strange_variables(made: Archive) -> None:
    made.env.append("NO_VALUE")


def _with_many_variables(made: Archive) -> None:
    made.env.append("A=" + "x" * (1 << 17))


def _without_json(made: Archive) -> None:
    made.blobs["index.json"] = b"[" * 5000


@pytest.mark.parametrize(
    ("falsify", "said"),
    [
        (_several, "several images"),
        (_foreign, "no image for this machine, which is x86_64"),
        (_circular, "no manifest"),
        (_damaged, "damaged"),
        (_falsified, "damaged"),
        (_incomplete, "not in the archive"),
        (_with_path_for_digest, "not one of SHA-256"),
        (_without_layers, "0 layers"),
        (_with_too_many_layers, f"{LAYERS + 1} layers"),
        (_with_large_documents, "more than"),
        (_with_strange_variables, "NAME=VALUE"),
        (_with_many_variables, "letters"),
        (_without_json, "cannot be read"),
    ],
)
def test_what_is_wrong_with_an_image_is_said(falsify: Callable[[Archive], None], said: str) -> None:
    made = archive()
    falsify(made)
    with pytest.raises(ImageError, match=said):
        read(made.content())


def test_an_image_for_another_machine_is_refused_by_its_configuration() -> None:
    with pytest.raises(ImageError, match="for linux on arm64, and this machine is x86_64"):
        read(archive(architecture="arm64").content())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a tar file"),
        (b"x" * 2000, "not a tar file"),
        (layer_of(Entry(name="manifest.json", content=b"[]")), "oci-archive"),
        (layer_of(Entry(name="other")), "no index.json"),
        (layer_of(*(Entry(name=f"{number}") for number in range(BLOBS + 1))), f"more than {BLOBS} files"),
    ],
)
def test_a_file_that_is_no_archive_of_an_image_is_refused_before_it_is_sent(content: bytes, said: str) -> None:
    with pytest.raises(ImageError, match=said):
        check_layout(io.BytesIO(content))
    check_layout(io.BytesIO(image_of(LAYER)))
