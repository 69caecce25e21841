"""The histories that a module keeps of its neighbors and of its own machine (MESSIAHS 5.1). Not stored."""

from dataclasses import dataclass, field

from messiahs.core.model.descriptions import Pairs
from messiahs.core.model.ids import SystemId
from messiahs.core.model.instants import Instant
from messiahs.core.model.series import Series, name_in_history


@dataclass(slots=True)
class Histories:
    """By system, the own one included, and by attribute (mutable). There are none unless the policy keeps some."""

    series: dict[SystemId, dict[str, Series]] = field(default_factory=dict)

    def copied(self) -> "Histories":
        """Return a copy that can change apart from this one."""
        return Histories({system: dict(known) for system, known in self.series.items()})

    def facts_of(self, system: SystemId, now: Instant) -> Pairs:
        """Return what the history of a system tells; nothing of attributes whose values are not known."""
        return tuple(
            (name_in_history(name, statistic), value)
            for name, series in self.series.get(system, {}).items()
            for statistic, value in series.statistics(now).items()
        )
