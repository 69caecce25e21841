"""`messiahs accounting`: processor time given to and taken from neighbors, by neighbor, user or day."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final

import click

from messiahs.cli.options import JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.cli.times import past_time
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient

_HEADERS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "neighbor": ("NEIGHBOR", "SINCE", "GIVEN", "GIVEN USED", "TAKEN", "TAKEN USED", "BALANCE"),
        "user": (
            *("USER", "ORIGIN", "ACCOUNT", "THROUGH"),
            *("HERE", "HERE USED", "ELSEWHERE", "ELSEWHERE USED", "TOTAL", "TOTAL USED"),
        ),
        "day": ("DAY", "OWN", "OWN USED", "GIVEN", "GIVEN USED", "TAKEN", "TAKEN USED"),
    }
)
_SECOND: Final = len("2026-01-31T12:00:00")
_NOTHING: Final[Mapping[str, float]] = MappingProxyType(
    {"given_s": 0.0, "given_used_s": 0.0, "taken_s": 0.0, "taken_used_s": 0.0, "balance_s": 0.0}
)


@click.command()
@click.option(
    "--by",
    type=click.Choice(tuple(_HEADERS)),
    help="What a line is about [neighbor; user, if there are no accounts of neighbors to see].",
)
@click.option("--since", type=past_time, metavar="TIME", help="Only the days (UTC) since 7d ago, or 2026-01-31.")
@MODULE
@STATE
@JSON
def accounting(
    *, by: str | None, since: datetime | None, module: str | None, state: Path | None, as_json: bool
) -> None:
    """Show processor seconds given to and taken from neighbors: slots times the time for which tasks held them.

    After each of these amounts stands how much of it the tasks used (`GIVEN USED` of `GIVEN`): what they held and did
    not use, nobody had. By neighbor these are all since the account began, or those of `--since`. The line of the
    module itself has what its own users got of its own machine. Users other than root and the user of the module see
    their own usage only, which a line on stderr says.
    """
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        ledger = client.accounting()
    by = by or ("neighbor" if ledger["neighbors"] else "user")
    own, usage = str(ledger["system"]), list(ledger["usage"])
    # Modules of earlier releases do not say whose usage they answer with.
    only_user = ledger.get("only_user")
    if since is not None:
        first = since.date().isoformat()
        usage = [row for row in usage if row["day"] >= first]
    if by == "neighbor":
        # Users have no accounts of neighbors, and what they used has neighbors all the same.
        rows = (since is None and ledger["neighbors"]) or _by_neighbor(usage, own)
    elif by == "user":
        rows = _by_user(usage, own)
    else:
        rows = _by_day(usage, own)
    if as_json:
        print_document({"system": own, "by": by, "only_user": only_user, "rows": rows})
        return
    if only_user is not None:
        print_text(f"only what {only_user} used: root and the user of {place.module} see all", err=True)
    print_table(_HEADERS[by], (tuple(_cell(*each) for each in row.items()) for row in rows))


def _by_neighbor(usage: Iterable[Document], own: str) -> list[Document]:
    found: dict[str, Document] = {}
    for row in usage:
        giver, taker = row["given_by"], row["given_to"]
        for system, is_given in ((taker, True), (giver, False)):
            if system == own and not (is_given and giver == own):
                continue
            account = found.setdefault(system, {"neighbor": system, "since": row["day"], **_NOTHING})
            account["since"] = min(account["since"], row["day"])
            way = "given" if is_given else "taken"
            account[f"{way}_s"] += row["processor_s"]
            account[f"{way}_used_s"] += row["used_s"]
    for account in found.values():
        account["balance_s"] = account["given_s"] - account["taken_s"]
    return [found[system] for system in sorted(found)]


def _by_user(usage: Iterable[Document], own: str) -> list[Document]:
    def key_of(row: Document) -> tuple[str, ...]:
        return (row["user"], row["origin"], row["account"], row["given_to"])

    return [
        {
            "user": user,
            "origin": origin,
            "account": account,
            "through": "" if through == own else through,
            **_sums("here", (row for row in rows if row["given_by"] == own)),
            **_sums("elsewhere", (row for row in rows if row["given_by"] != own)),
            **_sums("total", rows),
        }
        for (user, origin, account, through), rows in _grouped(usage, key_of)
    ]


def _by_day(usage: Iterable[Document], own: str) -> list[Document]:
    return [
        {
            "day": day,
            **_sums("own", (row for row in rows if row["given_by"] == row["given_to"] == own)),
            **_sums("given", (row for row in rows if row["given_to"] != own)),
            **_sums("taken", (row for row in rows if row["given_by"] != own)),
        }
        for (day,), rows in _grouped(usage, lambda row: (row["day"],))
    ]


def _sums(name: str, rows: Iterable[Document]) -> Document:
    """Return what was held in some rows, and what was used of it."""
    held_s = used_s = 0.0
    for row in rows:
        held_s, used_s = held_s + row["processor_s"], used_s + row["used_s"]
    return {f"{name}_s": held_s, f"{name}_used_s": used_s}


def _grouped(
    usage: Iterable[Document], key_of: Callable[[Document], tuple[str, ...]]
) -> list[tuple[tuple[str, ...], list[Document]]]:
    groups: defaultdict[tuple[str, ...], list[Document]] = defaultdict(list)
    for row in usage:
        groups[key_of(row)].append(row)
    return sorted(groups.items())


def _cell(name: str, value: object) -> str:
    if isinstance(value, float | int):
        return f"{value:z.1f}"
    return (str(value)[:_SECOND] if name == "since" else str(value)) or "-"
