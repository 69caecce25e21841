"""Causes, in the record of a task, that concern its outputs."""

from typing import Final

OUTPUT_MISSING: Final = "output_missing"
"""A declared output was not there at the end."""
TOO_MANY_OUTPUTS: Final = "too_many_outputs"
"""There were more files in declared folders than can be brought home."""
TOO_MUCH_OUTPUT: Final = "too_much_output"
"""All outputs together exceed their limit."""
OUTPUT_CAUSES: Final = (OUTPUT_MISSING, TOO_MANY_OUTPUTS, TOO_MUCH_OUTPUT)
"""The task exited by itself, but its outputs did not come home as declared."""
