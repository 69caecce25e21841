"""The stored formats: rows, and the records and segment files of a trace."""
