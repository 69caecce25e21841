"""What `import messiahs` offers."""

import messiahs


def test_every_public_name_is_listed_before_it_is_used_and_nothing_else() -> None:
    listed = [name for name in dir(messiahs) if not name.startswith("__")]
    assert listed == sorted(vars(messiahs)["__all__"])
    assert "__version__" in dir(messiahs)
    assert all(getattr(messiahs, name) for name in listed)
