"""`messiahs task …` and its aliases: submit, run, status, explain, wait, logs, fetch, cancel, retry."""
