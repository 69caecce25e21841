"""What people ask of a module, as text (not in the papers)."""

from messiahs.core.interface.events import (
    DrainRequested,
    HandRequested,
    LeaveRequested,
    LendRequested,
    MemberAdded,
    MemberRemoved,
    PrimaryParentChanged,
    RevokeRequested,
    RootsChanged,
    SettingsApplied,
    ShutOffRequested,
)
from messiahs.core.model.instants import instant_text

_Order = (
    HandRequested
    | RevokeRequested
    | ShutOffRequested
    | MemberAdded
    | MemberRemoved
    | LeaveRequested
    | DrainRequested
    | LendRequested
    | SettingsApplied
    | PrimaryParentChanged
    | RootsChanged
)


def order_text(event: _Order) -> str:
    """Return what an administrator, or the owner of the machine, orders."""
    match event:
        case HandRequested() | RevokeRequested():
            return _by_hand_text(event)
        case ShutOffRequested():
            how = "shuts off" if event.is_off else "readmits"
            return f"the administrator {how} {event.neighbor}: {event.text or 'no reason'}"
        case MemberAdded():
            return f"{event.neighbor.system} is added as a {event.neighbor.relation}: {event.text or 'no reason'}"
        case MemberRemoved():
            how = "is removed at once" if event.is_forced else "is removed"
            return f"{event.system} {how}: {event.text or 'no reason'}"
        case LeaveRequested():
            return f"leaves {event.parent}: {event.text or 'no reason'}"
        case DrainRequested():
            how = "drains" if event.is_on else "undrains"
            begins = "" if event.begins is None else f" from {instant_text(event.begins)}"
            return f"the administrator {how} it{begins}: {event.text or 'no reason'}"
        case LendRequested():
            until = "" if event.until is None else f" until {instant_text(event.until)}"
            return f"its owner turns the dial to {event.lent}{until}"
        case PrimaryParentChanged():
            return f"is to be counted by {event.parent}: {event.text or 'no reason'}"
        case SettingsApplied():
            return f"applies settings with {len(event.neighbors)} neighbors"
        case RootsChanged():
            vouching = ", ".join(root.hex()[:8] for root in event.trust.vouchers)
            return f"has another certificate or other roots; {vouching or 'no known root'} vouches for it"


def _by_hand_text(event: HandRequested | RevokeRequested) -> str:
    if isinstance(event, HandRequested):
        return f"somebody asks to {event.act} {event.task}: {event.text or 'no reason'}"
    how = "kills" if event.kills else "vacates"
    return f"the administrator {how} {', '.join(map(str, event.attempts))}: {event.text or 'no reason'}"
