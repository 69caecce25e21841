"""Neighbors that come and go at run time, and the drain of this module. Not in the papers (MESSIAHS 5: fixed systems).

The topology file seeds the neighbors, and rows win over it. relations.py adds neighbors and applies a changed file;
leaving.py ends a link when its claims have ended, on both sides; draining.py stops the module's own work; handover.py
changes the primary parent; siblings.py assigns links among the children of this module, and assigned.py takes those
that the primary parent assigns; cycles.py finds cycles of parents. dispatch.py names the
function for each message and timeout.
"""
