"""Counting the machines of a federation again, by the equations alone (MESSIAHS 7.2, 7.3).

The facts of several modules (`facts.py`) are compared with the equations: who counts whom (`relations.py`), what each
sum must hold, and what arrived of it (`sums.py`). Nothing here calls the code that computes sums (`core.vectors`,
`core.update`): it would repeat its mistakes. `rounds.py` repeats the comparison while updates are in flight.
"""
