"""Files that a user has to upload, of very many."""

from pathlib import Path

import pytest

from messiahs.daemon.api.files import finding_missing, upload_first
from messiahs.daemon.storage.files import FileStore
from tests.unit.daemon.api.steps import counted


def test_files_are_looked_for_in_slices_and_each_missing_one_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path)
    here = store.keep(b"here", of="ann")
    looked: list[int] = []
    missing_at_once = store.missing

    def noting(hashes: tuple[bytes, ...], *, of: str | None = None) -> tuple[bytes, ...]:
        looked.append(len(hashes))
        return missing_at_once(hashes, of=of)

    monkeypatch.setattr(store, "missing", noting)
    others = [number.to_bytes(32) for number in range(1_000)]
    found, costs = counted(finding_missing(store, [*others, here, *others], of="ann"))
    assert found == others
    assert sum(looked) == 2_001
    assert max(looked) <= 128
    assert len(costs) == len(looked)
    assert upload_first(others[:2]) == f"upload first: {others[0].hex()}, {others[1].hex()}"
    assert upload_first(others).endswith(f"{others[63].hex()}, and 936 more")
