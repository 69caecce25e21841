"""Fuzzing, guided by coverage: `python -m tests.fuzz --seconds 600` runs all targets one after the other.

Inputs that fail, or take very long, are written to the folder of --findings, and the command exits with 1.
`python -m tests.fuzz TARGET --try FILE` reproduces a finding.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import click

from tests.fuzz.targets import TARGETS

SEEDS = Path(__file__).with_name("seeds")
_WORDS = Path(__file__).with_name("words.dict")
_LENGTHS: Final = {"predicate": 4200, "policy": 600, "policytest": 600, "wire": 2000}
"""Longer inputs rarely find more, and a policy of 2 KB takes a tenth of a second under the fuzzer."""
_HANGS_SECONDS = 20
_ONE = "tests.fuzz.fuzzing"


@click.command()
@click.argument("names", metavar="[TARGET]...", nargs=-1, type=click.Choice(list(TARGETS)))
@click.option("--seconds", type=click.IntRange(min=1), default=60, show_default=True, help="For each target.")
@click.option("--findings", type=click.Path(path_type=Path), default=Path(), help="Where failing inputs go.")
@click.option("--try", "tried", type=click.Path(exists=True, path_type=Path), help="Only this input, without a fuzzer.")
def main(names: tuple[str, ...], *, seconds: int, findings: Path, tried: Path | None) -> None:
    """Search for inputs that break a guarantee of a parser of untrusted input."""
    if tried is not None:
        for name in names:
            TARGETS[name](tried.read_bytes())
        return
    failed = [name for name in names or tuple(TARGETS) if not fuzz(name, seconds=seconds, findings=findings)]
    sys.exit(bool(failed))


def fuzz(name: str, *, seconds: int, findings: Path) -> bool:
    """Fuzz one target in a separate process; return whether it kept its guarantees."""
    findings.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as new:
        command = [sys.executable, "-m", _ONE, name, new, str(SEEDS / name), f"-dict={_WORDS}"]
        command += [
            f"-max_total_time={seconds}",
            f"-artifact_prefix={findings}/",
            f"-max_len={_LENGTHS[name]}",
            "-timeout=20",
        ]
        return subprocess.run(command, check=False).returncode == 0


if __name__ == "__main__":
    main()
