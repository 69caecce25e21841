"""How a task names its image."""

from messiahs.core.model.images import IMAGE, image_in


def test_only_a_hash_names_an_image() -> None:
    digest = "0123456789abcdef" * 4
    assert image_in(((IMAGE, digest),)) == digest
    for other in ("", "debian", digest.upper(), digest[1:], 5):
        assert image_in(((IMAGE, other),)) == ""
