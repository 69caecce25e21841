"""Control groups of Linux: processes born into a group share its limits, are counted together, and end together."""
