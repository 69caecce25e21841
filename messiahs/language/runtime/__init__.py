"""Compiled policies: conditions, amounts and rules over facts, and explanations of their decisions."""
