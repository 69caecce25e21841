"""The blocks `advertise`, `combine` and `timeouts`: what is sent to others, and when."""

import pytest

from messiahs.core.interface.policies import CalendarTime, Limits, Timeouts
from messiahs.core.model.attributes import KEY_ATTRIBUTES, Value
from messiahs.core.model.instants import DAY, MILLISECOND, MINUTE, SECOND
from messiahs.language.compiler.files import parse_policy
from tests.unit.language.policy_rig import MACHINE, NOON, machines, policy, sdv

EXTENDED: dict[str, Value] = {"cpu": "sparc", "gpus": 2}
DECLARED = "attribute $cpu string; attribute $gpus int 0..16;"


def _said(block: str, now: CalendarTime = NOON, **measured: Value) -> dict[str, Value]:
    described = policy(f"{DECLARED}{block}").disclosure.describe_here(sdv(**EXTENDED, **measured), now).description()
    return {name: value for name, value in described.items() if name not in MACHINE}


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("", {}),
        ("advertise every 2s { }", {}),
        ("advertise every 2s { send $cpu; }", {"cpu": "sparc"}),
        ("advertise every 2s { send $gpus, $cpu; send $arch; }", EXTENDED),
        ("advertise every 2s { send all; }", EXTENDED),
        ("advertise every 2s { set $gpus = 7; }", {"gpus": 7}),
        ("advertise every 2s { set $willingness = 90 when $now.clock > 20:00 else 10; }", {"willingness": 10}),
        ("advertise every 2s { set $willingness = 90 when $now.clock = 12:00 else 10; }", {"willingness": 90}),
        (
            "advertise every 2s { set $willingness = 1 when $load = 1% else 2 when $load = 10% else 3; }",
            {"willingness": 2},
        ),
        ("advertise every 2s { set $willingness = 90 when $keyboard_idle > 1min else 5; }", {"willingness": 5}),
        ("advertise every 2s { set $willingness = 100 - $load / 100; }", {"willingness": 90}),
        ("advertise every 2s { set $willingness = 100 - $here.load; }", {}),
        ("advertise every 2s { set $willingness = $keyboard_idle default 7s; }", {"willingness": 7}),
        ("advertise every 2s { set $willingness = $keyboard_idle; }", {}),
        ("advertise every 2s { set $comm_cost = $speed * 9223372036854775807; }", {}),
        ("advertise every 2s { set $comm_cost = 2 - 5 / 2 - $speed -1; }", {"comm_cost": -101}),
        ("advertise every 2s { set $comm_cost = (2 + 3) * -2; }", {"comm_cost": -10}),
        ("advertise every 2s { set $comm_cost = (0 - 5) / 2; }", {"comm_cost": -3}),
    ],
)
def test_the_own_machine_advertises_attributes_that_are_sent_and_set(block: str, said: dict[str, Value]) -> None:
    assert _said(block) == said


def test_fixed_attributes_are_always_advertised() -> None:
    assert policy("").disclosure.describe_here(sdv(**EXTENDED), NOON) == sdv()


def test_an_attribute_set_without_a_value_is_not_advertised_even_if_measured() -> None:
    assert "willingness" not in _said("advertise every 2s { set $willingness = $wait_time; }", willingness=5)


def test_a_period_and_a_change_are_part_of_advertise() -> None:
    rules = policy("advertise every 1min or after change of 12.5% { }")
    assert (rules.timeouts.update_period_ns, rules.update.text) == (MINUTE, "key_changes(share = 12.5%)")
    assert policy("advertise every 3s { }").update.text == "key_changes(share = 0%)"


def test_timeouts_that_a_policy_does_not_set_are_the_defaults() -> None:
    given = Timeouts(update_period_ns=5 * SECOND, request_ns=SECOND)
    text = "timeouts { input 3min; request 500ms; lease 5min; kill_grace 0s; status 1min; retention forever; }"
    assert parse_policy("timeouts { retention 2d; }", file="x").timeouts.retention_ns == 2 * DAY
    assert parse_policy("", file="x", timeouts=given).timeouts == given
    rules = parse_policy(text, file="x", timeouts=given)
    assert rules.timeouts == Timeouts(
        update_period_ns=5 * SECOND,
        request_ns=500 * MILLISECOND,
        lease_ns=5 * MINUTE,
        kill_grace_ns=0,
        input_ns=3 * MINUTE,
        status_ns=MINUTE,
        retention_ns=None,
    )


@pytest.mark.parametrize(
    ("text", "input_ns", "queries"),
    [
        ("", None, True),
        ("input 3min;", 3 * MINUTE, True),
        ("input 3min then query;", 3 * MINUTE, True),
        ("input 3min then down;", 3 * MINUTE, False),
        ("input then down;", None, False),
    ],
)
def test_what_follows_an_input_timeout_is_the_policys(text: str, input_ns: int | None, *, queries: bool) -> None:
    timeouts = policy(f"timeouts {{ {text} }}").timeouts
    assert (timeouts.input_ns, timeouts.queries_silent) == (input_ns, queries)


def test_polls_bars_and_limits_are_the_policys() -> None:
    rules = policy("timeouts { poll 5s; bar 0s; } limits { hops 8; asks 16; moves 0; }")
    assert (rules.timeouts.poll_ns, rules.timeouts.bar_ns) == (5 * SECOND, 0)
    assert rules.limits == Limits(hops=8, asks=16, moves=0)
    assert policy("").limits == policy("limits { }").limits == Limits(hops=32, asks=64, moves=3)
    assert (policy("").timeouts.poll_ns, policy("").timeouts.bar_ns) == (None, MINUTE)


def test_keys_are_added_to_the_built_in_ones() -> None:
    assert policy("").keys == KEY_ATTRIBUTES
    rules = policy(f"{DECLARED} combine {{ $gpus: key; $cpu: carry; $arch: key; default: drop; }}")
    assert rules.keys == tuple(sorted((*KEY_ATTRIBUTES, "gpus")))


@pytest.mark.parametrize(
    ("combine", "kept"),
    [
        ("", ["cpu", "gpus", "load", "slots"]),
        ("combine { $cpu: drop; }", ["gpus", "load", "slots"]),
        ("combine { default: drop; }", []),
        ("combine { default: drop; $cpu: carry; $gpus: key; }", ["cpu", "gpus"]),
        ("combine { default: carry; $load: drop; }", ["cpu", "gpus", "slots"]),
    ],
)
def test_dropped_attributes_are_not_passed_on_and_keys_always_are(combine: str, kept: list[str]) -> None:
    (passed,) = policy(f"{DECLARED}{combine}").disclosure.pass_on(machines(EXTENDED)).classes
    names = [name for name, _ in passed.attributes]
    assert [name for name in names if name in {"cpu", "gpus", "load", "slots"}] == kept
    assert {*KEY_ATTRIBUTES} - {"free_gpus"} <= set(names)


def test_machines_that_differ_only_in_dropped_attributes_become_one_class() -> None:
    vector = machines({"gpus": 1, "cpu": "a"}, {"cpu": "b"}, keys=("cpu",))
    (passed,) = policy(f"{DECLARED} combine {{ $gpus: drop; $cpu: drop; }}").disclosure.pass_on(vector).classes
    assert (passed.count, passed.some_lack) == (2, ())
