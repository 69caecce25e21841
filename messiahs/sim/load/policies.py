"""The policies of a swarm run: texts composed of families of blocks, drawn from the seed."""

from dataclasses import dataclass
from random import Random
from typing import Final

from messiahs.core.interface.parts import Policy
from messiahs.core.interface.policies import Timeouts
from messiahs.language.compiler.files import parse_policy
from messiahs.sim.checks.settled import NAME

_OPEN: Final = "accept from any { limit 10000 tasks; }"
_ACCEPTING: Final = (
    _OPEN,
    "accept from any { limit 6 tasks; } accept from users { limit 10000 tasks; }",
    "accept from any { when $now.clock >= 00:03; }",
)
_PICKY: Final = 'accept from any { require $mem default 0 <= 1GiB else "too large"; }'
_SHARING: Final = (
    "",
    "migrate { ask every 3s when 1 = 1 wanting { }; }",
    "migrate { ask every 5s when $here.waiting = 0 wanting { $cpus <= 1 }; keep at least 2 tasks; }",
    "migrate { offer when $task.waited > 2s; } rank tasks by least $task.mem default 0;",
    "rank tasks by most $task.cpus, random;",
)
_GIVING: Final = "migrate { ask every 3s when $here.free_slots >= 1 wanting { }; offer when $task.ran >= 1s; }"
"""A system with free slots takes running tasks from others."""
_RANKING: Final = (
    "",
    "",
    "rank candidates by most $free_slots, random;",
    "rank candidates by least $avail_mem, round robin;",
    'rank candidates by first where $cand.relation in ("self", "child"), least $load;',
)
_REVEALING: Final = (
    "",
    "",
    "reveal to any { all except $load, $queue_length; }",
    f'reveal to any {{ only ${NAME}, $arch, $free_slots; as "site-7"; }}',
    f"reveal to parent {{ only ${NAME}; }} reveal to siblings {{ all; }}",
)
"""Every machine still reports its name: the views of neighbors are compared with theorems 1 and 2."""
_AT_DESK: Final = "$here.keyboard_idle < 5s"
_PAUSING: Final = f"suspend when {_AT_DESK}; resume unless {_AT_DESK} for 2s;"
_RUNNING: Final = (
    f"running {{ {_PAUSING} }}",
    f"running {{ {_PAUSING} vacate when $task.suspended >= 8s grace 3s; }}",
    f"running {{ {_PAUSING} move when $task.suspended >= 4s grace 20s then vacate; }}",
    f"running {{ {_PAUSING} move when {_AT_DESK} grace 10s then suspend; }}",
    f"running {{ move when {_AT_DESK}; kill when {_AT_DESK} for 30s grace 2s; }}",
    f"running {{ kill when {_AT_DESK} for 3s; }}",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFamily:
    """The common parameters of the policies of one system, including those that replace the first one."""

    is_picky: bool
    """Whether some systems refuse large tasks."""
    is_giving: bool
    """Whether every system takes running tasks from others."""
    has_owners: bool
    """Whether owners use the consoles, and policies have rules for that."""
    timeouts: Timeouts

    def draw(self, random: Random) -> Policy:
        """Draw one policy of the family."""
        accepting = (*_ACCEPTING, _PICKY) if self.is_picky else _ACCEPTING
        blocks = [
            f'policy "swarm" version 1; attribute ${NAME} string; advertise every 2s {{ send all; }}',
            f"combine {{ ${NAME}: key; default: carry; }}",
            random.choice((_OPEN, random.choice(accepting))),
            _GIVING if self.is_giving else random.choice(_SHARING),
            random.choice(_RUNNING) if self.has_owners else "",
            random.choice(_RANKING),
            random.choice(_REVEALING),
        ]
        return parse_policy(" ".join(blocks), file="swarm", timeouts=self.timeouts)
