"""The measured predicates, in our language and in HTCondor's, and a machine for which they are true."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from messiahs.core.model.attributes import Value
from tests.benchmarks.measuring import Skipped

CLASSADS: Final = "ClassAds"
EXAMPLE, TEN_TERMS = "the paper's example (2 terms)", "ten terms"
GIB: Final = 1 << 30
MACHINE: Mapping[str, Value] = {
    "speed": 1000, "nproc": 8, "slots": 8, "free_slots": 5, "total_mem": 32 * GIB, "avail_mem": 16 * GIB,
    "total_disk": 500 * GIB, "avail_disk": 250 * GIB, "load": 1200, "arch": "x86_64", "os": "Linux", "cpu": "sparc",
}  # fmt: skip


def ten_terms(speed: int) -> str:
    """Return a predicate of ten comparisons, one of them with a speed."""
    return (
        f'$arch eq "x86_64" and $os eq "Linux" and $speed >= {speed} and $nproc >= 4 and $free_slots >= 1 and '
        '$avail_mem >= 4000000 and $avail_disk >= 4000000 and $load < 9000 and $slots <= 64 and $cpu eq "sparc"'
    )


PREDICATES: Mapping[str, str] = {
    EXAMPLE: '($avail_mem >= 4000000) and ($cpu eq "sparc")',
    TEN_TERMS: ten_terms(400),
}


def classads() -> Any | Skipped:  # noqa: ANN401 - the binding has no types
    """Return HTCondor's binding, or the reason why it is missing."""
    if find_spec("classad2") is None:
        return Skipped(name=CLASSADS, reason="not installed: pip install '.[benchmarks]'")
    return import_module("classad2")


def translated(text: str) -> str:
    """Write one of the predicates in HTCondor's language."""
    return text.replace("$", "").replace(" and ", " && ").replace(" eq ", " == ")
