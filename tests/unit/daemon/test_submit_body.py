"""What a submit may not say."""

import pytest

from messiahs.daemon.submit_body import SubmitBody, problem_of
from messiahs.wire.limits import FILE_LIMIT


@pytest.mark.parametrize(("count", "problem"), [(FILE_LIMIT, ""), (18_000, "18000 outputs, at most 1024 are allowed")])
def test_as_many_outputs_are_declared_as_can_travel(count: int, problem: str) -> None:
    body = SubmitBody(key="k", argv=("true",), outputs=tuple(f"{number:x}" for number in range(count)))
    assert problem_of(body) == problem
