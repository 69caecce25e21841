"""The border of a site: one module that stands for all systems below it (MESSIAHS 4, 5.3.3, 6.2).

Outside are the parents and siblings of a border, inside are its children and itself. A border is a hop like any other:
only what crosses it changes. Names, ids and texts of the inside are never shown outside, and those of the outside are
hidden from a child if the policy names this system in their place (`reveal to children { as … }`).

- The origin of a request becomes this system, its user a pseudonym, and its roots and dialers those of this system.
- A claim whose executor is hidden has another id on the side of its origin, and a place instead of the executor's name.
- A task whose origin is hidden has another id on the side of its executor. Inside the core, claims have the ids of
  the executor's side, and tasks those of the origin's.
- The bytes of a claim pass through this module, which puts its own address and ticket in place of those it got.
- Reasons keep their codes, and the texts that rules provide for others; states of attempts keep their causes.

Shown ids are not counted but derived from the hidden ones with the border's key (pseudonyms.py). A border whose rows
are lost or older shows the same id for the same task again, so that no executor takes one attempt for two. They have an
epoch of their own: a border never speaks as the executor of claims that it does not know.

inward.py translates what arrives, outward.py what leaves; module.py calls both for every message. shown_ids.py keeps
the tables, sides.py says who is hidden from whom.
"""
