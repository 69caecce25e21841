"""The example topologies and policies: next to the package in a checkout, inside it when installed."""

from pathlib import Path

import messiahs
from messiahs.errors import ClientError


def example(folder: str, name: str) -> Path:
    """Return the path of an example, such as `topologies`, `campus.yaml`; raises ClientError if it is not installed."""
    package = Path(messiahs.__file__).resolve().parent
    places = (package.parent / folder / name, package / "examples" / folder / name)
    for place in places:
        if place.is_file():
            return place
    raise ClientError(f"example {folder}/{name} is not installed (expected at {places[1]})")
