"""A neighbor of the module under test sends all it can, and changes nothing for others (MESSIAHS 4.2)."""

import pytest

from tests.autonomy.scene import Scene
from tests.hostile.flooder import KINDS
from tests.hostile.flooding_process import flooding
from tests.waiting import eventually

pytestmark = pytest.mark.live


@pytest.mark.parametrize("kind", KINDS)
def test_a_neighbor_that_floods_changes_nothing_for_others(scene: Scene, kind: str) -> None:
    with scene.users.working(), flooding(scene.seat / "settings.json", kind):
        eventually(lambda: scene.neighbor()["throttled"], f"{kind}: it is throttled")
        scene.users.serve()
    eventually(lambda: not scene.neighbor()["throttled"], f"{kind}: it is forgiven")
