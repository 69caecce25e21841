"""Earlier releases, which the tests run beside this tree: `tests/releases/VERSION` keeps what each of them leaves.

A folder has the wheel of the release, compressed; `module.db`, a database with rows of all kinds as that release wrote
it, and `rows.json`, what is in them; and `wire.json`, messages as that release sent them. `python -m
tests.releases.keep` makes such a folder.
"""

import lzma
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

VERSIONS: Final = ("0.1.0",)
_START = """#!{python}
import sys
from messiahs.cli.main import main
sys.exit(main())
"""


def folder_of(version: str) -> Path:
    """Return the folder with the remains of a release."""
    return Path(__file__).parent / version


def wheel_of(version: str, *, into: Path) -> Path:
    """Write the wheel of a release into a folder, and return it: `pip install` takes it."""
    name = f"messiahs-{version}-py3-none-any.whl"
    wheel = into / name
    wheel.write_bytes(lzma.decompress((folder_of(version) / f"{name}.xz").read_bytes()))
    return wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A virtual environment with a release, which shares the dependencies of this tree."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def command(self) -> Path:
        """Its `messiahs`."""
        return self.folder / "bin" / "messiahs"


def installed(version: str, folder: Path) -> Installed:
    """Install a release into a new virtual environment, without a download."""
    made = Installed(folder=folder)
    venv.EnvBuilder(symlinks=True).create(folder)
    scheme = {"base": str(folder), "platbase": str(folder), "installed_base": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=scheme))
    with zipfile.ZipFile(wheel_of(version, into=folder)) as wheel:
        wheel.extractall(site)
    # Folders that a .pth file names are searched last, and their own .pth files, such as this tree's, are ignored.
    shared = dict.fromkeys(sysconfig.get_path(each) for each in ("purelib", "platlib"))
    (site / "shared.pth").write_text("".join(f"{each}\n" for each in shared))
    made.command.write_text(_START.format(python=made.python))
    made.command.chmod(0o755)
    return made
