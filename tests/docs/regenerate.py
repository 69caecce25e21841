"""Writes the pages of docs/ that are made from the code: `python tests/docs/regenerate.py`."""

import sys
from pathlib import Path

from messiahs.core.model.attributes import (
    CATALOGUE,
    MACHINE_ATTRIBUTES,
    SCOPES,
    SEEN_BY_THE_OWNER,
    WELL_KNOWN,
    Attribute,
    Scope,
)
from messiahs.core.model.series import HISTORY_LIMIT, attributes_in_history
from messiahs.language.compiler.schema import range_shown
from tests.docs.lives_page import lives_page
from tests.docs.message_page import message_page
from tests.docs.textmate import textmate_grammar

DOCS = Path(__file__).parents[2] / "docs"
_MADE = "This page is made from the code (`python tests/docs/regenerate.py`).\n"
_ABOUT_ATTRIBUTES = """
In predicates and policies, names of attributes begin with `$`. Sizes are bytes, durations seconds, loads and shares
hundredths of a percent. A federation may use other attributes, integers and strings (`attributes` of a machine in the
topology, `--set` for a task). An attribute that may be unset makes every predicate with it false where it is unset,
also under `not`, unless the policy gives it a `default` or tests it with `has`. `messiahs policy schema` prints this
page.

Sources under "comes from": the *probe* measures the machine (values in the topology override it), the *starter*
contains and measures running tasks, the *module* counts, a *policy* sets the attribute with `advertise`, a *user*
states it with an option or `--set`; an attribute from *nobody yet* is always unset today.
"""
_LOAD = MACHINE_ATTRIBUTES["load"]
_ABOUT_HISTORIES = f"""
## Histories

`history {{ keep $load over 1h; }}` in a policy adds the attributes below, and likewise for every number of machines, at
most {HISTORY_LIMIT} of them. They are written `$here.name` for the own machine, `$cand.name` for a candidate and
`$peer.name` for the asker, as this module has seen them; without a scope, where the block is about machines, they are
what the machines themselves send (`advertise every 30s {{ send $load_mean; }}`). They are unset while nothing is known.
The administrators' page says how they are computed.

| attribute | unit | meaning |
|---|---|---|
"""
_SCOPES = {
    Scope.MACHINE: (
        "Machines",
        "Attributes of a machine's description.",
        ", or without a scope where the block is about machines, and in `--require`",
    ),
    Scope.HERE: ("The own system", "Attributes that only the own policy sees.", ""),
    Scope.TASK: (
        "Tasks",
        "Attributes of a task's description.",
        ", or without a scope where the block is about tasks",
    ),
    Scope.PRESENT_TASK: (
        "Tasks that are here",
        "Attributes of a task that only the policy of the module with the task sees.",
        ", or without a scope where the block is about tasks",
    ),
    Scope.CANDIDATE: ("Candidates", "Attributes of the link to a system that could be asked.", ""),
    Scope.PEER: ("The asker", "Attributes of the neighbor that sent a request.", ""),
    Scope.NOW: ("The time", "Local time where the module runs.", ""),
}


def pages() -> dict[str, str]:
    """Return every generated page, by its file name."""
    return {
        "attributes.md": attribute_page(),
        "lives.md": lives_page(_MADE),
        "messages.md": message_page(_MADE),
        "messiahs-policy.tmLanguage.json": textmate_grammar(),
    }


def attribute_page() -> str:
    """Return the reference of attributes, generated from the catalogue."""
    lines = ["# Attributes", "", _MADE]
    lines += [_ABOUT_ATTRIBUTES.strip()]
    for scope, about in _SCOPES.items():
        rows = [attribute for attribute in (*CATALOGUE, *WELL_KNOWN, *SEEN_BY_THE_OWNER) if attribute.scope is scope]
        written = ", ".join(f"`${each}.name`" for each in SCOPES[scope])
        lines += ["", f"## {about[0]}", "", f"{about[1]} Written {written}{about[2]}.", ""]
        lines += [
            "| attribute | type | unit | range | comes from | may be unset | meaning |",
            "|---|---|---|---|---|---|---|",
        ]
        lines += map(_row, rows)
    lines += ["", _ABOUT_HISTORIES.strip()]
    lines += [f"| `${each.name}` | {each.unit} | {each.meaning} |" for each in attributes_in_history(_LOAD)]
    return "\n".join(lines) + "\n"


def _row(row: Attribute) -> str:
    unset = "yes" if row.is_optional else ""
    cells = (f"`${row.name}`", row.kind, row.unit, range_shown(row), row.supplier, unset, row.meaning)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    for name, text in pages().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        sys.stdout.write(f"wrote docs/{name}\n")
