"""Images of containers: a task names the one in which it runs, and brings it as an input.

The attribute `image` of a task is the hash of the image's archive. Releases that know no images take it for an
extension attribute, and run the task without the image; their machines do not fulfil the requirement that clients and
modules of this one add to such a task.
"""

import re
from typing import Final

from messiahs.core.model.descriptions import Pairs

IMAGE: Final = "image"
IMAGE_INPUT: Final = ".messiahs-image"
"""Name of the input that is the archive of the image; a task in the image does not see it."""
IMAGE_REQUIREMENT: Final = '$isolation eq "sandbox"'
"""What machines fulfil that run tasks in images; those of release 0.1.0 state no isolation."""
_DIGEST: Final = re.compile("[0-9a-f]{64}")


def image_in(pairs: Pairs) -> str:
    """Return the hash of the image in which a task runs, in hexadecimal; empty if it runs without one."""
    return hash_in(pairs, IMAGE)


def hash_in(pairs: Pairs, name: str) -> str:
    """Return the hash that a task states as the attribute `name`; empty if it states none."""
    stated = dict(pairs).get(name)
    return stated if isinstance(stated, str) and _DIGEST.fullmatch(stated) else ""
