"""The example topologies and policies: beside the package in a checkout, inside it where it is installed."""

from pathlib import Path

import messiahs
from messiahs.errors import ClientError


def example(folder: str, name: str) -> Path:
    """Give an example such as `topologies`, `campus.yaml`; a `ClientError` if this installation has none."""
    package = Path(messiahs.__file__).resolve().parent
    places = (package.parent / folder / name, package / "examples" / folder / name)
    for place in places:
        if place.is_file():
            return place
    raise ClientError(f"there is no example {folder}/{name} in this installation (looked for {places[1]})")
