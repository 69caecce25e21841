"""The message that opens every connection (MESSIAHS 5.3.2)."""

from dataclasses import dataclass

from messiahs.core.model.ids import NONE_GIVEN, Epoch, IdsGiven, SystemId


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Opens every connection: the wire versions of the sender, and the epoch in which it issues ids.

    It has issued `given` ids, and remembers that the receiver had issued `heard` in `heard_epoch`. Repeated, at most
    every 10 s, when more ids have been issued. `former` are its latest earlier epochs.
    """

    system: SystemId
    epoch: Epoch
    wire_versions: tuple[int, ...]
    release: str
    given: IdsGiven = NONE_GIVEN
    heard_epoch: Epoch | None = None
    heard: IdsGiven = NONE_GIVEN
    former: tuple[Epoch, ...] = ()
