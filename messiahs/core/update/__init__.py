"""The update protocol: the vectors that a module sends, their receivers, and the times (MESSIAHS 5.3.1, 7)."""
