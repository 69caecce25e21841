"""Which stream of a running task gives way to which."""

import random
from collections import Counter

import pytest

from messiahs.core.model.ids import SystemId
from messiahs.daemon.transfer.stream_shares import Kind, Share, giving_way

DESK, LAB = SystemId("desk"), SystemId("lab")
_KINDS = {"f": Kind.FOLLOWER, "i": Kind.INPUT, "c": Kind.CONNECTION}


def share(text: str) -> Share:
    """Return a follower (`f`), input (`i`) or connection (`c`) of a user: `f ann`; of another module, `f lab/ann`."""
    kind, _, whose = text.partition(" ")
    module, _, user = whose.rpartition("/")
    return Share(origin=SystemId(module or DESK), user=user, kind=_KINDS[kind])


@pytest.mark.parametrize(
    ("held", "new", "ends"),
    [
        # Who holds most gives way, with the oldest, to who then holds no more.
        ("f ann, f ann, f ann", "f eve", 0),
        ("f eve, f ann, f ann, f ann", "f eve", 1),
        ("f bob, f bob, f ann, f ann, f ann", "f eve", 2),
        ("f eve, f eve, f ann, f ann, f ann", "f eve", None),
        ("f ann, f bob", "f eve", None),
        ("f ann, f ann", "f ann", None),
        # Followers go first, and for standard input already among equals.
        ("i ann, i ann, f ann", "f eve", 2),
        ("i ann, i ann, i ann", "f eve", 0),
        ("f ann, f bob", "i eve", 0),
        ("i eve, i ann, f ann", "i eve", 2),
        ("i eve, i eve, f ann, f ann", "i eve", None),
        ("f bob, i ann, f ann", "i ann", 2),
        ("i ann, i bob", "i eve", None),
        ("i ann, i ann", "i ann", None),
        ("f bob, i ann, i ann, i ann", "i eve", 1),
        # Users of one name at two modules are two; connections are not ended, and come before followers.
        ("f ann, f ann, f lab/ann", "f lab/ann", None),
        ("f ann, f ann, f ann", "f lab/ann", 0),
        ("c ann, c ann, c ann", "i eve", None),
        ("c ann, f ann, c ann", "c eve", 1),
    ],
)
def test_who_holds_most_gives_way(held: str, new: str, ends: int | None) -> None:
    assert giving_way(dict(enumerate(map(share, held.split(", ")))), to=share(new)) == ends


@pytest.mark.parametrize("seed", range(20))
def test_streams_that_try_again_come_to_rest_with_even_shares(seed: int) -> None:
    drawn, streams = random.Random(seed), 16
    wanted = [share(f"{kind} {user}") for user, count in (("ann", 40), ("bob", 10), ("eve", 3)) for kind in "f" * count]
    wanted += [share(f"i {user}") for user in ("ann", "bob", "eve", "joe")]
    waiting, held = list(enumerate(wanted)), dict[int, Share]()
    has_changed = True
    while has_changed:
        has_changed = False
        drawn.shuffle(waiting)
        for _ in range(len(waiting)):
            number, one = waiting.pop(0)
            ended = giving_way(held, to=one) if len(held) == streams else None
            if len(held) < streams or ended is not None:
                has_changed, held[number] = True, one
            else:
                waiting.append((number, one))
            if ended is not None:
                waiting.append((ended, held.pop(ended)))
    counts = Counter(one.user for one in held.values())
    assert sum(one.kind is Kind.INPUT for one in held.values()) == 4
    assert (counts["joe"], counts["eve"]) == (1, 4)
    assert {counts["ann"], counts["bob"]} <= {5, 6}
