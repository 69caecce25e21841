"""The part of docs/policy-parts.md, installed as a distribution in a folder of its own."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "policy-parts.md"
_FILE = re.compile(r"^```\w+ (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def files_of_page() -> dict[str, str]:
    """Return every file that the page shows, by name."""
    return dict(_FILE.findall(PAGE.read_text(encoding="utf-8")))


def install(folder: Path, *, version: str = "1.0", **changed: str) -> None:
    """Install the example into a folder as `pip install --target` would; `changed` are additional entry points."""
    files = files_of_page()
    project = files["pyproject.toml"]
    (name,) = re.findall(r'^name = "(.+)"$', project, re.MULTILINE)
    points = re.findall(r'^(\w+) = "(\w+:\w+)"$', project, re.MULTILINE)
    (folder / "messiahs_resting.py").write_text(files["messiahs_resting.py"], encoding="utf-8")
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")
    written = "".join(f"{point} = {value}\n" for point, value in (*points, *changed.items()))
    (about / "entry_points.txt").write_text(f"[messiahs.policies]\n{written}", encoding="utf-8")
