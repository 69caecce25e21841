"""Which federation `down` is to end: what is up is known from the state directory, whatever became of the file."""

import json
import re
from pathlib import Path

from messiahs.config.regular_files import read_regular
from messiahs.daemon.supervision.supervisor import PLAN_FILE
from messiahs.errors import ClientError, MessiahsError

_FEDERATION = re.compile(r"^federation:[ \t]*[\"']?([a-z0-9-]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)


def federation_of(topology_file: Path, state: Path) -> str:
    """Give the federation that a topology file describes, or that was brought up from it.

    A ClientError with what is wrong with the file says that neither is known.
    """
    from messiahs.config.topology.reading import load_topology

    try:
        return load_topology(topology_file).federation
    except MessiahsError as error:
        known = known_federations(state)
        found = [name for name, file in known.items() if file == topology_file.absolute()]
        named = _named_in(topology_file)
        if named in known and named not in found:
            found.append(named)
        if len(found) == 1:
            return found[0]
        files = [f"`messiahs down {file}` ends {name}" for name, file in known.items() if file is not None]
        told = f"known here: {', '.join(known)}" if known else f"none is known under {state}"
        told += "".join(f"; {each}" for each in files)
        raise ClientError(f"{error}\nwhich federation is to be ended cannot be told from this file; {told}") from error


def known_federations(state: Path) -> dict[str, Path | None]:
    """Give every federation that `up` has run with a state directory, and its topology file if that was noted."""
    return {plan.parent.name: _topology_in(plan) for plan in sorted(state.glob(f"*/{PLAN_FILE}"))}


def _topology_in(plan: Path) -> Path | None:
    try:
        noted = json.loads(read_regular(plan)).get("topology")
    except (OSError, ValueError, AttributeError):
        return None
    return Path(noted) if isinstance(noted, str) else None


def _named_in(topology_file: Path) -> str:
    """Give the name in the line `federation: NAME` of a file, however broken the rest is."""
    try:
        found = _FEDERATION.search(read_regular(topology_file).decode(errors="replace"))
    except OSError:
        return ""
    return found[1] if found else ""
