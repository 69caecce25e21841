"""Warnings for machines whose policy depends on use of the console while only terminals are observed."""

from collections.abc import Sequence
from typing import Final

from messiahs.config.policies import read_policy
from messiahs.config.topology.topology import System, Topology
from messiahs.language.runtime.compiled_policy import Source
from messiahs.language.syntax.problems import Code, Notebook
from messiahs.language.syntax.scanning import tokens_in

_IDLE: Final = "keyboard_idle"
_HINT: Final = "with a graphical session, name a file that the session touches: machine: {console: /PATH}"


def warnings_of_consoles(topology: Topology) -> tuple[str, ...]:
    """Warn, where a policy first reads use of the console, if a machine with that policy names no `console`."""
    files = sorted({system.policy_file for system in topology.systems if system.policy_file is not None})
    found: list[str] = []
    for file in files:
        followers = (system for system in topology.systems if system.policy_file == file)
        names = tuple(system.name for system in followers if _has_terminals_only(system))
        source = read_policy(file).source
        assert source is not None, "the policy was read from a file"
        found += _warnings_in(source, names) if names else ()
    return tuple(found)


def _has_terminals_only(system: System) -> bool:
    machine = system.machine
    return machine is not None and machine.console_file is None and _IDLE not in machine.attributes


def _warnings_in(source: Source, names: Sequence[str]) -> list[str]:
    notebook = Notebook(file=source.file, text=source.text)
    asked = next((word for word in tokens_in(notebook) if word == f"$here.{_IDLE}"), None)
    if asked is not None:
        others = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        text = f"{names[0]}{others} names no console: only input at terminals counts there"
        notebook.warning(asked, Code.TERMINALS_ONLY, text, hint=_HINT)
    return [str(problem) for problem in notebook.in_order()]
