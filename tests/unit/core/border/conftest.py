"""Borders with one claim that passes them."""

import pytest

from tests.unit.core.border.gate import gate, granted_inside, granted_outside, toward
from tests.unit.core.rig import CHILD, PARENT, Rig


@pytest.fixture
def out() -> Rig:
    """Make a border with a claim that was granted outside to an origin inside."""
    rig = gate(toward(PARENT))
    granted_outside(rig)
    return rig


@pytest.fixture
def into() -> Rig:
    """Make a border with a claim that was granted inside to an origin outside."""
    rig = gate(toward(CHILD))
    granted_inside(rig)
    return rig
