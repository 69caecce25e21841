"""The origin of tasks: submission, placement, results and the end of each task (MESSIAHS 6.2)."""
