"""The ledger: processor time given to and taken from each neighbor, by user, account and day.

Not in the papers, which leave prices and debts to administrators (MESSIAHS 2: autonomy). Processor time is slots times
the time for which an attempt held them, without its suspensions: what the owner of the machine could not use otherwise.
Beside it stands how much of it the tasks used, as the executor measured it; what a task used beyond what it held does
not count. Balances, limits and shares go by what was held.

Each module on the path of a claim has a *book* of it (books.py). The executor enters every attempt once, in the
transaction in which its end is stored, by its own clock. Each module then reports the sum of the book to the neighbor
toward the origin: while it grows every few seconds, and once it is final, again after each connect until that neighbor
has acknowledged it (reports.py). Sums only grow, so a repeated or lost report changes nothing, and the two ends of each
link have the same sum in the end: origin, executor and every hop between them. A border is the neighbor of those
outside, who see its pseudonyms.

A module takes a sum only as far as the claim allows by its own clock: slots of all places, from the grant to the end of
the claim, and a tenth for clocks that differ. Books of two ends differ where that bound cuts a sum, which is reported;
where a database was replaced by an older copy or lost; where no final sum came within a day; and where a link ended
without it (membership/leaving.py).

accounts.py sums the books by day, consumer and neighbor, and bounds these rows.
"""
