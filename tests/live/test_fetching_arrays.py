"""What the members of an array left is listed in one request, and fetched as if each had been asked for."""

from pathlib import Path

import pytest

from messiahs.errors import ClientError
from tests.live.conftest import Federation

MEMBERS = 20
SCRIPT = "test {} = 7 || echo {} > out.{}; mkdir -p more; ln -s ../out.{} more/link; test {} != 7"


def test_members_are_listed_together_as_each_alone(pair: Federation, tmp_path: Path) -> None:
    words = ("--output", "out.{}", "--output", "more")
    array = pair.submit("--array", f"1-{MEMBERS}", *words, "--", "sh", "-c", SCRIPT)
    assert pair.run("wait", array).returncode == 1
    single = pair.submit("--", "true")
    assert pair.run("wait", single).returncode == 0
    with pair.client("left") as client:
        listed = {one.pop("id"): one for one in client.output_listing(array, part="member-outputs")["members"]}
        assert listed == {
            name: client.output_listing(name) for name in (f"{array}.{number}" for number in range(1, MEMBERS + 1))
        }
        with pytest.raises(ClientError, match=f"{single} is no array"):
            client.output_listing(single, part="member-outputs")
    done = pair.run("fetch", array, "--into", str(tmp_path / "there"))
    assert done.returncode == 0, done.stderr
    read = {path.parent.name: path.read_text() for path in (tmp_path / "there").glob("*/out.*")}
    assert read == {str(number): f"{number}\n" for number in range(1, MEMBERS + 1) if number != 7}
    assert (tmp_path / "there" / "3" / "more" / "link").readlink() == Path("../out.3")
