"""The paper: a scheduling module as values and one state machine (MESSIAHS 4 to 7).

No I/O, clock, threads, randomness, logging or protobuf in here. A host feeds `SchedulingModule` with events
(events.py) and performs the actions (actions.py) that come back; predicates and policies are handed in (ports.py).

Messages, and the file that handles each:

- hello: greeting.py. Opens a connection; what is unanswered is repeated after it.
- status_vector: updating.py takes it in; summing.py computes what leaves (the sums U, D and S are in sums.py and
  vectors.py; dividing.py compacts them) and beside.py what stands beside them, describing.py says it, advertising.py
  and, to children, informing.py send it, as often as pacing.py lets them, also in answer to a system_status_query.
- sched_request, sched_accept, sched_deny: searching.py, with routing.py. A search climbs, crosses once and descends.
- task_request, task_accept, task_deny: sharing.py, with routing.py; what is offered is in offering.py, of
  what waits, and in handing_over.py, of what runs.
- task_transfer: sent by placing.py, taken by executing.py.
- task_revoke: guarding.py and handing_over.py at the executor, with revoking.py; moving.py at the origin, with
  leaving.py.
- task_status, task_status_ack, task_status_query, task_kill, claim_end: results.py at the origin, executing.py and
  granting.py at the executor, passing.py between them.

Words that are not the papers':

- attempt: one try to run a task; a task's attempts follow each other and never overlap.
- claim: places for tasks of one shape at one executor, from one accepted request; it carries a lease and a ticket.
- lease: how long a claim lives without a sign from its origin.
- ticket: what an origin shows to bring a claim's tasks and to fetch what they left behind.
- shape: tasks with equal TDV and requirement, placed together.
- round: one search for places for a shape.
- reservation: slots kept free for one task of a shape that needs several of the places in use (reserving.py).
- offer: attempts that run and may go to whoever made a task_request, if their origin finds a place for them there.
- demand: places that a neighbor asked for lately, and that others had.
- origin, executor: the module whose user submitted a task, and the one on whose machine it runs.
- division: a sum of vectors in the classes of its compaction, from which those of some children can be left out.
- rest: how long sums are not computed again, so that they stay a small part of all time.
- snapshot: what was known at one instant, for a sum and what is sent of it in several turns.
- overview, panel: what neighbors' views say, side by side, so that many of them are judged at once.
- window: how many attempts may be bound to a claim at once.
"""
