"""The audit log: what crossed the link with a neighbor under another administration (MESSIAHS 2: autonomy).

Such a neighbor is outside of this border, or has roots of its own. Every message to it and from it is looked at where
it passes (`module.py`), in the ids of this module, whatever the module's part is: origin, executor or hop. Its rows are
stored in the transaction of the message, before it is passed on or acted upon, so that a crash loses and repeats none.

There is one row for each submission, neighbor and direction, and not for each task. tasks.py counts attempts, folds.py
what was denied and dropped, and rows.py numbers rows and bounds them.
"""
