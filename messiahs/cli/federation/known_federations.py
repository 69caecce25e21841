"""Find the federation that `down` ends, from its topology file or, if that is invalid, from the state directory."""

import json
import re
from pathlib import Path

from messiahs.client.locating import known_modules
from messiahs.config.regular_files import read_regular
from messiahs.daemon.supervision.supervisor import PLAN_FILE
from messiahs.errors import ClientError, MessiahsError

_FEDERATION = re.compile(r"^federation:[ \t]*[\"']?([a-z0-9-]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)


def federation_of(topology_file: Path, state: Path) -> str:
    """Return the federation that a topology file describes, or that was started from it.

    Raises ClientError with the problems of the file if neither is known.
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
        hints = [
            f"`messiahs down {file}` ends {name}"
            if file is not None
            else f"a file with the line `federation: {name}` names it"
            for name, file in known.items()
        ]
        running = f"known here: {', '.join(known)}" if known else f"none is known under {state}"
        text = "; ".join((f"{error}\nthis file does not identify the federation to end", running, *hints))
        raise ClientError(text) from error


def known_federations(state: Path) -> dict[str, Path | None]:
    """Return all federations of a state directory, with the topology file of their last `up` where one is recorded."""
    plans = {plan.parent.name for plan in state.glob(f"*/{PLAN_FILE}")}
    names = sorted(plans | {place.federation for place in known_modules(state)})
    return {name: _topology_in(state / name / PLAN_FILE) for name in names}


def _topology_in(plan: Path) -> Path | None:
    try:
        recorded = json.loads(read_regular(plan)).get("topology")
    except (OSError, ValueError, AttributeError):
        return None
    return Path(recorded) if isinstance(recorded, str) else None


def _named_in(topology_file: Path) -> str:
    """Return the name in the line `federation: NAME` of a file, even if the rest is invalid; else an empty text."""
    try:
        found = _FEDERATION.search(read_regular(topology_file).decode(errors="replace"))
    except OSError:
        return ""
    return found[1] if found else ""
