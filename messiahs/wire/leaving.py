"""Messages about links themselves: the control channel between neighbors that come and go."""

from messiahs.core.interface.membership_messages import Leave
from messiahs.wire.limits import TEXT_LIMIT_BYTES, line, shortened
from messiahs.wire.v1 import control_pb2


def write_leave(wire: control_pb2.Leave, leave: Leave) -> None:
    """Fill in the end of a link; the text is shortened to its limit."""
    wire.text, wire.is_done = shortened(leave.text, TEXT_LIMIT_BYTES), leave.is_done
    wire.is_sibling = leave.is_sibling


def read_leave(wire: control_pb2.Leave) -> Leave:
    """Check the end of a link."""
    return Leave(text=line(wire.text, TEXT_LIMIT_BYTES), is_done=wire.is_done, is_sibling=wire.is_sibling)
