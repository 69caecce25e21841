"""Whether `man` finds the pages that `messiahs man` writes."""

from pathlib import Path

import pytest

from messiahs.cli.shell.commands import how_man_finds


@pytest.mark.parametrize(
    ("folder", "variables", "said"),
    [
        ("share/man/man1", {"MANPATH": ""}, '; `man` finds them after `export MANPATH="$MANPATH:{here}/share/man"`'),
        ("share/man/man1", {"MANPATH": "", "PATH": "{here}/bin"}, ""),
        ("share/man/man1", {"MANPATH": ":{here}/share/man"}, ""),
        ("share/man/man1", {"MANPATH": "/m", "PATH": "{here}/bin"}, "; `man` finds them after `export MANPATH"),
        ("pages", {"MANPATH": ""}, "; `man {here}/pages/messiahs.1` shows one"),
    ],
)
def test_it_says_how_man_finds_the_pages_where_it_would_not(
    folder: str,
    variables: dict[str, str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(here=tmp_path))
    text = how_man_finds(tmp_path / folder)
    assert text.startswith(said.format(here=tmp_path))
    assert bool(text) == bool(said)
