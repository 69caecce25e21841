"""The committed code of the wire format matches its proto files."""

from pathlib import Path

from messiahs.wire import v1
from tests.unit.wire.regenerate import regenerate


def test_generated_code_is_up_to_date(tmp_path: Path) -> None:
    regenerate(tmp_path)
    fresh = {path.name: path.read_text() for path in (tmp_path / "messiahs/wire/v1").iterdir()}
    committed = {path.name: path.read_text() for path in Path(v1.__path__[0]).glob("*_pb2*.py*")}
    assert set(fresh) == set(committed)
    assert len(fresh) == 21
    for name, text in fresh.items():
        assert text == committed[name], f"{name}: run `python tests/unit/wire/regenerate.py`"
