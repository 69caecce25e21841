"""Policies as parts, one file for each kind: pure functions of a query and a state (MESSIAHS 2: policy is separate)."""
