"""A law of links: those that `stays_inside` accepts lead to places inside their folder, whatever other links it has."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from messiahs.core.model.folder_links import stays_inside

_PARTS = st.sampled_from(("a", "b", "c"))
_NAMES = st.lists(_PARTS, min_size=1, max_size=3).map("/".join)
_TARGETS = st.lists(st.one_of(_PARTS, st.sampled_from(("..", "."))), min_size=1, max_size=5).map("/".join)


@given(st.dictionaries(_NAMES, _TARGETS, min_size=1, max_size=6))
def test_accepted_links_never_lead_outside(links: dict[str, str]) -> None:
    kept: list[str] = []
    for name, target in links.items():
        if stays_inside(name, target) and not _conflicts(name, kept):
            kept.append(name)
    with tempfile.TemporaryDirectory() as above:
        root = Path(above).resolve() / "root"
        root.mkdir()
        for name in kept:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(links[name])
        for name in kept:
            try:
                found = (root / name).resolve()
            except (OSError, RuntimeError):
                # A loop of links leads nowhere.
                continue
            assert found.is_relative_to(root), links


def _conflicts(name: str, kept: list[str]) -> bool:
    return any(name == other or name.startswith(f"{other}/") or other.startswith(f"{name}/") for other in kept)
