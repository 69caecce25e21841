"""What policies decide by: conditions, amounts and rules over facts, and why they decide as they do."""
