"""Vectors: multisets of machine classes, their sum, compaction, division and redaction (MESSIAHS 7)."""
