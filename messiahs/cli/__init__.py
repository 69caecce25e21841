"""The command line: one file per noun. Nothing is imported before the command that needs it runs."""
