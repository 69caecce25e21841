"""How users name inputs: `SRC`, or `SRC:DST` with the name in the working directory of the task."""

from pathlib import Path


def split_source(text: str) -> tuple[str, str]:
    """Return path and name (empty: its own); an existing path that contains a colon is taken as a path."""
    path, colon, name = text.rpartition(":")
    if not colon or not path or not name or (Path(text).exists() and not Path(path).exists()):
        return text, ""
    return path, name
