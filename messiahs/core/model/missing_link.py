"""A link that is down, as it is reported to other systems."""

from dataclasses import dataclass

from messiahs.core.model.ids import SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLink:
    """A link that `module` does not have with its neighbor; `text` says why, or is empty for readers elsewhere."""

    module: SystemId
    neighbor: SystemId
    text: str = ""
