"""Draws the lives of claims and shapes from the tables of the core."""

import ast
import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any

from messiahs.core.state.lives import (
    GRANTED_LIFE,
    HELD_LIFE,
    SHAPE_LIFE,
    GrantedPhase,
    HeldPhase,
    ShapePhase,
    Step,
)

_ABOUT = """
A claim is a number of places for tasks of one shape at one executor. The executor grants it and the origin holds it;
each end counts a phase of its own. A shape is all tasks of an origin with equal TDV and requirement, which are placed
together. The core refuses every step that is not drawn here.
"""


def lives_page(made: str) -> str:
    """Return the page: a diagram and a table of the phases of each life."""
    sections = (
        ("A claim at its executor", GrantedPhase, GRANTED_LIFE),
        ("A claim at its origin", HeldPhase, HELD_LIFE),
        ("A shape at its origin", ShapePhase, SHAPE_LIFE),
    )
    lines = ["# Lives of claims and shapes", "", made, _ABOUT.strip()]
    for heading, phases, steps in sections:
        lines += ["", f"## {heading}", "", *_diagram(phases, steps), "", *_table(phases)]
    return "\n".join(lines) + "\n"


def _diagram(phases: type[Enum], steps: tuple[Step[Any], ...]) -> Iterator[str]:
    first = next(iter(phases))
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {first.value}"
    yield from (f"    {step.phase.value} --> {step.following.value}: {step.when}" for step in steps)
    yield "```"


def _table(phases: type[Enum]) -> Iterator[str]:
    yield "| phase | meaning |"
    yield "|---|---|"
    yield from (f"| `{phase}` | {meaning} |" for phase, meaning in _meanings(phases))


def _meanings(phases: type[Enum]) -> Iterator[tuple[str, str]]:
    """Read the docstring below each member, which is not kept at run time."""
    (definition,) = ast.parse(inspect.getsource(phases)).body
    assert isinstance(definition, ast.ClassDef), "an enum is a class"
    for member, below in zip(definition.body, definition.body[1:], strict=False):
        match member, below:
            case ast.Assign(value=ast.Constant(value=str(name))), ast.Expr(value=ast.Constant(value=str(meaning))):
                yield name, " ".join(meaning.split())
