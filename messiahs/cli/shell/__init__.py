"""Completion in shells, and man pages."""

from typing import Final

COMPLETE_VARIABLE: Final = "_MESSIAHS_COMPLETE"
"""What the scripts of shells set when they ask for completions: the name of the shell and `complete`."""
