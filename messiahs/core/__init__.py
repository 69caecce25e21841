"""The protocol of MESSIAHS: a scheduling module as values and one deterministic state machine (MESSIAHS 4 to 7).

`SchedulingModule` (module.py) takes events and the time, and returns actions. Nothing in this package does I/O, reads a
clock, starts a thread, draws random numbers, logs, or knows protobuf: a host brings events (interface/events.py) and
performs actions (interface/actions.py). Policies and predicates are handed in (interface/policies.py, predicates.py).
The same events, instants and random draws give the same actions on every machine.

Rooms
=====

Imports point from a later line to an earlier one; import-linter checks it. Each room's `__init__.py` says more.

- model: ids, instants, attributes, descriptions, neighbors, trust.
- vectors: multisets of machine classes: their sum, compaction, division, redaction.
- interface: messages, rows, events, actions, timers, causes, limits, and what policies and predicates implement.
- state: the mutable state of a module, by role; lives.py has the phases of claims and shapes.
- task_filter: which machines match a task, and which tasks the policy accepts, in which order.
- border: the names and ids that the border of a site shows for those that it hides.
- audit: what crossed the links with neighbors under another administration.
- relay: conversations that pass through a module: their bounds, the names they disclose, the claims they belong to.
- origin: the tasks of local users, and what they lacked (unmet.py). update: the vectors that neighbors get with their
  annotations, and the views of theirs.
- executor: claims on the own machine, the attempts in them, owner rules, reservations.
- search: `sched_request` and `task_request` as they travel from module to module.
- membership: neighbors that come and go at run time, and the drain of a module.
- Files beside the rooms: epochs.py (ids after a restored backup), new_system.py (a neighbor that is another system),
  shut_off.py (a neighbor that the administrator has shut off), closing.py (what both close),
  claim_messages.py and claim_bytes.py (messages and tasks of a claim, passed on or at the end of its path),
  view_changes.py (new views start searches), link.py (connections), queries.py (what hosts read) with
  vector_queries.py (of it, what is about vectors), invariants.py (what tests check after each step), recovery.py (from
  stored rows to a state), reload.py (another policy), replaced_roots.py (other roots, another certificate), module.py.

Roles
=====

A module takes up to four roles at once, and the state has a part for each (state/).

- Neighbor: it reports the machines behind it in vectors, and keeps a view of each neighbor's. It is a parent, child or
  sibling of each neighbor; one parent counts it at a time, so that sums count each machine once.
- Hop: it passes requests on to one candidate at a time, passes answers back, and remembers the path of each claim. The
  border of a site is a hop that shows the systems below it under its own name.
- Origin: it owns the tasks that its users submitted, until their end. It alone binds attempts.
- Executor: it grants claims on the own machine and runs the attempts that are bound to them.

The life of a task
==================

1. A user submits it; the origin stores it and queues it in its shape (origin/submission.py, shape_queue.py). A workflow
   has several submissions that are stored together (origin/workflows.py).
2. The shape starts a round: a `sched_request` that visits modules until enough places are granted (origin/placement.py,
   search/sched_request.py, routing.py). Without a place it waits for the next round.
3. An executor grants a claim: places, a lease, a ticket, a window (executor/claims.py). The `sched_accept` returns on
   the path of the request, and each hop stores that path.
4. The origin binds the task to the claim as an attempt, and sends it to the executor: straight, or from hop to hop on
   the path of the claim (origin/placement.py, relay/byte_route.py, claim_bytes.py).
5. The executor stores the attempt, starts it, and reports it (executor/attempts.py). Owner rules may suspend it, move
   it, vacate it or kill it meanwhile (executor/owner_rules.py).
6. It ends; the executor reports the end until the origin acknowledges it. The origin first fetches the outputs
   (origin/task_status.py, output_fetch.py).
7. The task has ended, or the next attempt begins at 2 (origin/settlement.py). Attempts of a task never overlap: the
   next one is bound after the end of the last one was reported, or after its lease has expired for both ends.

`docs/lives.md` draws the phases of claims and shapes.

Messages
========

`docs/messages.md` has every field. Scheduling messages go from neighbor to neighbor; the messages of a claim follow its
path, and hops forward them (relay/claim_relay.py); `task_transfer` and files take one leg after the other, straight to
the server of the claim or along its path (relay/byte_route.py).

==================== ======================== ========== ===============================================================
message              from                     to         effect, and the file that handles it
==================== ======================== ========== ===============================================================
hello                either end of a link     neighbor   opens the link; what is not acknowledged is repeated (link.py)
status_vector        any module               neighbor   replaces the view of the sender (update/status_vector.py)
system_status_query  any module               neighbor   asks for its vectors now (update/advertising.py)
sched_request        origin, hop              neighbor   asks for places (search/sched_request.py)
sched_accept         executor, hop            asker      grants a claim (search/sched_request.py)
sched_deny           executor, hop            asker      closes the request, with reasons (search/routing.py)
task_request         module with free slots   neighbor   asks for tasks (search/task_request.py)
task_accept          module with tasks, hop   asker      promises tasks, for which a sched_request follows
                                                         (search/task_request.py)
task_deny            any module asked         asker      closes the request, with reasons (search/routing.py)
task_transfer        origin, hop              executor   brings bound tasks (claim_bytes.py, executor/attempts.py)
task_status          executor                 origin     reports attempts, renews the lease (origin/task_status.py)
task_status_ack      origin                   executor   acknowledges results and the renewal (executor/attempts.py)
task_status_query    origin, hop              executor   asks for the status of attempts (executor/attempts.py)
task_kill            origin                   executor   ends attempts (executor/attempts.py)
task_revoke          executor                 origin     asks to relocate attempts (origin/task_revoke.py)
claim_end            executor or origin       other end  no further task; from the origin, the last message of the claim
                                                         (origin/task_status.py, executor/claims.py)
leave                either end of a link     neighbor   ends the link for good, when its claims have ended
                                                         (membership/leaving.py)
==================== ======================== ========== ===============================================================

Glossary
========

Words that are not the papers':

- announced drain: one that begins later, for maintenance; until then a machine takes tasks that end before.
- attempt: one try to run a task; a task's attempts follow each other and never overlap.
- avoided executor: one whose task stream failed lately; its places are not taken for a while.
- bar: why the own machine takes no task of a request that the policy accepts; its kind is a gate.
- border: a system that stands for all systems below it; the others know these under its name alone.
- boundary: a link between two sites, each with roots of its own; a hop there takes the place of the server.
- claim: places for tasks of one shape at one executor, from one accepted request.
- counted things: what a machine has a number of, such as GPUs; each is assigned to one attempt at a time.
- counted: in the sums of a parent: the primary one of the topology, or another one while that is silent.
- demand: places that a neighbor requested lately and did not get; it counts as waiting tasks for `rank tasks`.
- dialer: a system that may use a ticket by its key, beside the neighbor toward the origin.
- disclosure: which names a neighbor sees in requests and reasons; a proxy stands for what is behind it.
- division: a sum of vectors in the classes of its compaction, from which those of some children can be left out.
- dial: what the owner of a machine says about it, `on` or `off`; without it the policy decides. A machine that is off
  is withheld from neighbors: their tasks are refused, and those that run there suspended (core/executor/lending.py).
- drained: of a module that takes no new work; what runs there continues, until a deadline if one is set.
- epoch: a period in which a module's numbers are unique; a state restored from an older copy begins a new one.
- gate: what refused a request on the own machine, as its owner reads it; only the first one in its way counts.
- history: what is known of the past values of an attribute, of the own machine or a neighbor (update/histories.py).
- host: whatever feeds events to the core and performs its actions: the daemon, the simulator, a test.
- leg: the next system for the bytes of a claim; straight to its server, or the neighbor on its path.
- leaving: of a neighbor whose link is being ended: it is in no sum and no search, and its claims go on.
- lease: how long a claim lives without an acknowledged renewal.
- offer: running attempts that may move to the sender of a `task_request`, if their origin finds a place for them there.
- origin, executor: the module whose user submitted a task, and the one on whose machine it runs.
- page: the results that one report has, of those that have ended and are not acknowledged.
- pane: an hour of the request tally, which has the present one and the one before.
- place: tells the machines behind a border apart, in the claims of those who do not see their names.
- quantum: how long a claim may keep its machine full before its places go to others.
- redaction: taking out of a vector what a neighbor may not know.
- requirement: a predicate over machines that a user adds to a task.
- request tally: how many requests for places on the own machine came from whom, and what refused them; not stored.
- reservation: slots kept free for one task of a shape that needs several of the slots in use.
- rest: the time during which sums are not computed again, so that they stay a small share of all time.
- round: one search for places for a shape.
- search record: whom a search for local tasks has asked, why in this order, and the answers; kept with its tasks.
- server: the system that accepts the bytes of a claim straight: its executor, or a hop at a boundary.
- shown id: what a border gives to one side in place of the id of a claim or submission that it hides.
- shape: all tasks of an origin with equal TDV and requirement; they are placed together.
- snapshot: what was known at one instant, for a sum that takes several turns of the event loop.
- soft: not stored, and rebuilt after a restart.
- splice: a connection between two sites that a module of a third one passes on, and can neither read nor alter.
- starved: a shape whose requests were denied for lack of free slots since some instant.
- ticket: a secret that a module makes for a claim; who shows it may send the claim's tasks to that module, and fetch
  their outputs there, if it is the neighbor toward the origin or a dialer.
- turn: one pass of the event loop; long sums take several, and other messages are handled in between.
- unmet demand: which capacity the tasks of local users lacked, in classes that are summed as machines are; not stored.
- window: how many attempts may be bound to a claim at once.
"""
