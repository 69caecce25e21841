"""Mistakes in a policy file: tables of (text, line and column, code, fragments of message and hint)."""

import pytest

from messiahs.core.interface.limits import LONGEST_LEASE_NS, LONGEST_PERIOD_NS, LONGEST_SEARCH_NS
from messiahs.core.interface.policies import Accepted
from messiahs.errors import PolicyError, Problem
from messiahs.language.compiler.files import parse_policy
from messiahs.language.syntax.problems import Code
from tests.unit.language.policy_rig import policy, request


def _problems(text: str) -> tuple[Problem, ...]:
    with pytest.raises(PolicyError) as raised:
        parse_policy(text, file="test.policy")
    return raised.value.problems


def _accepting(rule: str) -> str:
    return f"accept from any {{\n{rule}\nlimit 9 tasks; }}"


WORDS = [
    ("$a = 1;", "1:1", Code.SYNTAX, "`$a` does not begin a block", "a policy is made of"),
    ("acept from any { }", "1:1", Code.SYNTAX, "`acept` does not begin a block", "`accept`"),
    ("{ }", "1:1", Code.SYNTAX, "this block has no name", ""),
    ("; ", "1:1", Code.SYNTAX, "`;` has nothing to end", "remove it"),
    ("combine { } }", "1:13", Code.SYNTAX, "`}` has nothing to end", "remove it"),
    ("combine { ", "1:10", Code.SYNTAX, "a `}` is missing before the end", ""),
    ("combine { default: drop; rank candidates by random;", "1:26", Code.SYNTAX, "`}` is missing before `rank`", ""),
    ("combine { default: drop }", "1:25", Code.SYNTAX, "a `;` is missing before `}`", ""),
    ("rank candidates by random", "1:26", Code.SYNTAX, "a `;` is missing before the end", ""),
    ("combine;", "1:8", Code.SYNTAX, "`combine` needs a block", "{ ... }"),
    ("rank candidates by random { }", "1:27", Code.SYNTAX, "`rank` takes no block", "`;`"),
    ("combine { ; }", "1:11", Code.SYNTAX, "`;` has nothing to end", ""),
    ("Accept from any { }", "1:1", Code.WORD, "`Accept` is not a word", "write accept"),
    ("rank candidates by random; # a \N{RIGHT-TO-LEFT OVERRIDE}", "1:32", Code.FORBIDDEN, "U+202E", "remove it"),
    ('policy "a\0b";', "1:10", Code.FORBIDDEN, "U+0000", ""),
    ("rank candidates by most -²;", "1:26", Code.WORD, "`²` is not a word", ""),
    ("rank candidates by most -٣;", "1:26", Code.WORD, "`٣` is not a word", ""),
    ("rank candidates by most -3٣;", "1:25", Code.NUMBER, "`-3٣` is not a number", ""),
    (r'policy "\q";', "1:8", Code.STRING, r"`\q` is not an escape", ""),
    ('policy "x;', "1:8", Code.STRING, "the string is not closed", ""),
]

BLOCKS = [
    ('policy "a" version 2;', "1:20", Code.MEANING, "version 2", "reads version 1"),
    ('combine { }\npolicy "a";', "2:1", Code.MEANING, "at the top", ""),
    ("attribute $mem size;", "1:11", Code.TWICE, "$mem is already known", ""),
    ("attribute $tasks int;", "1:11", Code.TWICE, "$tasks is already known", ""),
    ("attribute $a int; attribute $a size;", "1:29", Code.TWICE, "already declared", ""),
    ("attribute $here.a int;", "1:11", Code.SCOPE, "without a scope", ""),
    ("attribute $a int 4..2;", "1:14", Code.RANGE, "nothing is between 4 and 2", ""),
    ("attribute $a int 1B..2;", "1:18", Code.DIMENSION, "plain numbers", ""),
    ("attribute $a bool;", "1:14", Code.SYNTAX, "`duration`, `int`, `percent`, `size` or `string` is missing", ""),
    ("let a = 1 = 1; let a = 2 = 2;", "1:20", Code.TWICE, "`let a` occurs twice", ""),
    ("let a = b;\nlet b = 1 = 1;", "1:9", Code.LET, "`b` is defined below", "before its use"),
    ("let a = not a;", "1:13", Code.LET, "`a` is defined below or by itself", ""),
    ("let abc = 1 = 1;\nlet b = abd;", "2:9", Code.LET, "unknown `let abd`", "`abc`"),
    ("let a = $nothing = 1;", "1:9", Code.UNKNOWN_ATTRIBUTE, "$nothing", ""),
    ("advertise every 500ms { }", "1:17", Code.RANGE, "whole seconds", ""),
    ("advertise every 20% { }", "1:17", Code.DIMENSION, "`20%` is not a duration", ""),
    ("advertise every 2s or after change of 5 { }", "1:39", Code.DIMENSION, "`5` is not a share", "0% to 100%"),
    ("advertise every 2s { }\nadvertise every 3s { }", "2:1", Code.TWICE, "`advertise` occurs twice", ""),
    ("advertise every 2s { send $cpu; }", "1:27", Code.UNKNOWN_ATTRIBUTE, "$cpu", "attribute $cpu int;"),
    ("advertise every 2s { send $keyboard_idle; }", "1:27", Code.MEANING, "never sent to others", ""),
    ("advertise every 2s { set $load = 3; }", "1:26", Code.MEANING, "cannot be set by a policy", "$willingness"),
    ("advertise every 2s { set $willingness = 101; }", "1:41", Code.RANGE, "cannot be 101", "0 to 100"),
    ("advertise every 2s { set $comm_cost = 1; set $comm_cost = 2; }", "1:46", Code.TWICE, "set twice", ""),
    ("advertise every 2s { set $willingness = 50%; }", "1:41", Code.DIMENSION, "number set to a percentage", "unit"),
    ("attribute $t duration; advertise every 2s { set $t = 4GiB; }", "1:54", Code.DIMENSION, "set to a size", "90s"),
    ("advertise every 2s { set $comm_cost = 5min + 1; }", "1:39", Code.DIMENSION, "number set to a duration", ""),
    (
        "advertise every 2s { set $willingness = 9 when $load < 5% else 1min; }",
        "1:64",
        Code.DIMENSION,
        "plain number set to a duration",
        "without a unit",
    ),
    ("rank candidates by most $avail_mem + 5min;", "1:38", Code.DIMENSION, "duration added to a size", "multiply"),
    ("rank candidates by most 1 + $load - ($avail_mem - 5);", "1:37", Code.DIMENSION, "size taken from a perc", ""),
    ("rank candidates by most $free_slots - $load;", "1:39", Code.DIMENSION, "percentage taken from a plain", ""),
    ("attribute $x int 5..9223372036854775807; let a = $x = 3;", "1:55", Code.RANGE, "`3` is out of", "never below 5"),
    ("attribute $x int -9223372036854775808..5; let a = $x = 7;", "1:56", Code.RANGE, "`7` is out of", "never above 5"),
    ("advertise every 2s { set $comm_cost = $arch; }", "1:39", Code.TYPE, "$arch is a string", ""),
    ("advertise every 2s { set $comm_cost = 1 / 0; }", "1:43", Code.MEANING, "division by 0", ""),
    ("advertise every 2s { set $comm_cost = $task.mem; }", "1:39", Code.SCOPE, "does not know $task.", "$here."),
    ("combine { $mem: drop; }", "1:11", Code.UNKNOWN_ATTRIBUTE, "$mem", "tells of tasks"),
    ("combine { $arch: drop; }", "1:18", Code.MEANING, "$arch is always a key", ""),
    ("combine { default: key; }", "1:20", Code.MEANING, "cannot be a key", "carry or drop"),
    ("combine { $load: drop; $load: key; }", "1:24", Code.TWICE, "$load occurs twice", ""),
    ("reveal to users nothing;", "1:11", Code.UNKNOWN_NAME, "not neighbors", ""),
    ("reveal to sibling nothing;", "1:11", Code.UNKNOWN_NAME, "`sibling` is not a peer", "`siblings`"),
    ("reveal to any { }", "1:15", Code.MEANING, "does not state what", "{ all; }"),
    ("reveal to any { only $arhc; }", "1:22", Code.UNKNOWN_ATTRIBUTE, "$arhc is not known", "$arch"),
    ("reveal to any { all except $mem; }", "1:28", Code.UNKNOWN_ATTRIBUTE, "$mem is not known", "it tells of tasks"),
    ("reveal to any { all except $here.load; }", "1:28", Code.SCOPE, "does not know $here.", ""),
    ("reveal to any { all; only $arch; }", "1:22", Code.TWICE, "which attributes are revealed twice", ""),
    ('reveal to any { as "x"; as "y"; }', "1:25", Code.TWICE, "under which name twice", ""),
    ('reveal to any { as "No Name"; }', "1:20", Code.MEANING, "not the name of a system", "small letters"),
    ("reveal to any { hide counts below 0; }", "1:35", Code.RANGE, "at least one machine", ""),
    ("reveal to any { hide counts below 5 }", "1:37", Code.SYNTAX, "", ""),
    ("reveal to any;", "1:14", Code.MEANING, "does not state what", "nothing;"),
    ("reveal to any nothing { all; }", "1:23", Code.MEANING, "`nothing` takes no block", ""),
    ("reveal to any nothing;\nreveal to any nothing;", "2:11", Code.TWICE, "any already has a block", "join"),
    ("accept from child { limit 1 tasks; }", "1:13", Code.UNKNOWN_NAME, "`child` is not a peer", "`children`"),
    ("accept from users { limit 8 cpus; }", "1:29", Code.SYNTAX, "`slots` or `tasks` is expected", "8 slots per $user"),
    ("accept from users { limit 8 taks; }", "1:29", Code.SYNTAX, "`taks` stands where", "did you mean `tasks`?"),
    ("accept from users { limit 8 slot; }", "1:29", Code.SYNTAX, "`slot` stands where", "did you mean `slots`?"),
    ("accept from users { limit 8h cpu per week; }", "1:38", Code.SYNTAX, "`week` stands where `day` is", "cpu per"),
    ("accept from users { limit 8B cpu per day; }", "1:27", Code.DIMENSION, "`8B` is not a duration", "limit 24h cpu"),
    ("accept from users { limit 8h cpu per $mem per day; }", "1:38", Code.MEANING, "counted per $mem", "$account"),
    ('accept from users { as user "ann"; }', "1:24", Code.SYNTAX, "`user` stands where `account` is", "as account"),
    ('accept from users { as account "root"; }', "1:32", Code.MEANING, "tasks never run as root", "few rights"),
    ('accept from users { as account ""; }', "1:32", Code.MEANING, "`` cannot be an account", "of this host"),
    ('accept from users { as account "0"; }', "1:32", Code.MEANING, "`0` cannot be an account", "of this host"),
    ('accept from users { as account "-x"; }', "1:32", Code.MEANING, "`-x` cannot be an account", "of this host"),
    ('accept from users { as account "a"; as account "b"; }', "1:40", Code.TWICE, "have an account already", "remove"),
    ("accept from x { limit 1 tasks; }", "1:13", Code.UNKNOWN_NAME, "`x` is not a peer", 'written "x"'),
    ('accept from "x", "x" { limit 1 tasks; }', "1:18", Code.TWICE, '"x" already has a block', ""),
    ("rank candidate by random;", "1:6", Code.UNKNOWN_NAME, "`candidate` cannot be ranked", "`candidates`"),
    ("rank candidates by random; rank candidates by random;", "1:28", Code.TWICE, "`rank candidates` occurs twice", ""),
    ("rank candidates by most $mem;", "1:25", Code.UNKNOWN_ATTRIBUTE, "$mem", "write $task.mem"),
    ("rank candidates by most $peer.balance;", "1:25", Code.SCOPE, "does not know $peer.", "$cand."),
    (
        "rank candidates by most $task.ran;",
        "1:25",
        Code.UNKNOWN_ATTRIBUTE,
        "$task.ran is not known",
        "tasks on this machine only",
    ),
    (
        'rank candidates by first where $task.from eq "a";',
        "1:32",
        Code.UNKNOWN_ATTRIBUTE,
        "$task.from",
        "tasks on this machine only",
    ),
    ("running { vacate unless $best.load >= 90%; }", "1:25", Code.SCOPE, "unknown scope `best`", ""),
    ("rank candidates by most $cand.name;", "1:25", Code.TYPE, "$cand.name is a string", ""),
    ("timeouts { inputs 3min; }", "1:12", Code.UNKNOWN_NAME, "`inputs` is not a timeout", "`input`"),
    ("timeouts { input 3; }", "1:18", Code.DIMENSION, "`3` is not a duration", "5min"),
    ("timeouts { lease 0s; }", "1:18", Code.RANGE, "greater than 0", ""),
    ("timeouts { poll 99ms; }", "1:17", Code.RANGE, "poll is at least 100ms", ""),
    ("timeouts { poll 2h; }", "1:17", Code.RANGE, "`2h` is too long", "at most 1h"),
    ("timeouts { bar -1s; }", "1:16", Code.RANGE, "greater than 0", ""),
    ("timeouts { input 3s then dwn; }", "1:26", Code.UNKNOWN_NAME, "`dwn` cannot follow `input`", "`down`"),
    ("timeouts { lease then down; }", "1:23", Code.MEANING, "nothing follows `lease`", "`input` only"),
    ("timeouts { lease forever; }", "1:18", Code.MEANING, "`lease` cannot be forever", "`retention` only"),
    ("timeouts { retention 0s; }", "1:22", Code.RANGE, "greater than 0", ""),
    ("timeouts { input 3s; input then down; }", "1:22", Code.TWICE, "`input` occurs twice", ""),
    ("limits { hop 3; }", "1:10", Code.UNKNOWN_NAME, "`hop` is not a limit", "`hops`"),
    ("limits { hops 0; }", "1:15", Code.RANGE, "`hops` is from 1 to 255", ""),
    ("limits { asks 4097; }", "1:15", Code.RANGE, "`asks` is from 1 to 4096", ""),
    ("limits { moves -1; }", "1:16", Code.RANGE, "`moves` is from 0 to 1000", ""),
    ("limits { hops 3; hops 3; }", "1:18", Code.TWICE, "`hops` occurs twice", ""),
    ("limits { hops 3s; }", "1:15", Code.SYNTAX, "", ""),
    ("timeouts { kill_grace -1s; }", "1:23", Code.RANGE, "greater than 0", ""),
    ("timeouts { lease 8d; }", "1:18", Code.RANGE, "`8d` is too long", "at most 1w"),
    ("timeouts { lease 9000000000000000s; }", "1:18", Code.RANGE, "`9000000000000000s` is too long", "at most 1w"),
    ("timeouts { request 601s; }", "1:20", Code.RANGE, "`601s` is too long", "at most 10min"),
    ("timeouts { input 367d; }", "1:18", Code.RANGE, "`367d` is too long", "at most 366d"),
    ("advertise every 61min { }", "1:17", Code.RANGE, "`61min` is too long", "at most 1h"),
    ("advertise every 1.5s { }", "1:17", Code.RANGE, "whole seconds", ""),
    ("running { kill when $ran > 1h for 367d; }", "1:35", Code.RANGE, "`367d` is too long", "at most 366d"),
    ("running { kill when $ran > 1h grace 367d; }", "1:37", Code.RANGE, "`367d` is too long", "at most 366d"),
    (
        "migrate { ask every 367d when $load < 5% wanting { }; }",
        "1:21",
        Code.RANGE,
        "`367d` is too long",
        "at most 366d",
    ),
    ("migrate { ask every 1s when $load < 5% wanting { $cpus > 3 and $cpus < 2 }; }", "1:50", Code.NEVER_TRUE, "", ""),
    ("timeouts { input 3s; input 4s; }", "1:22", Code.TWICE, "`input` occurs twice", ""),
]

RULES = [
    ("require $memm <= 4GiB;", "2:9", Code.UNKNOWN_ATTRIBUTE, "$memm is not known", "$mem"),
    ("require $load <= 30%;", "2:9", Code.UNKNOWN_ATTRIBUTE, "$load is not known", "write $here.load"),
    ("require $best.load <= 30%;", "2:9", Code.SCOPE, "unknown scope `best`", "task here cand peer now"),
    ("require $cand.load <= 30%;", "2:9", Code.SCOPE, "`accept` does not know $cand.", "$task."),
    (
        "require $task.attempt < 3;",
        "2:9",
        Code.UNKNOWN_ATTRIBUTE,
        "$task.attempt is not known here",
        "tasks on this machine only",
    ),
    ("when $ran < 5min;", "2:6", Code.UNKNOWN_ATTRIBUTE, "$ran is not known here", "tasks on this machine only"),
    ("require $foo.x = 1;", "2:9", Code.SCOPE, "unknown scope `foo`", "here"),
    ("require $mem <= 8min;", "2:17", Code.DIMENSION, "size compared with a duration", "8MiB"),
    ("require 8min >= $mem;", "2:9", Code.DIMENSION, "size compared with a duration", ""),
    ("require $cpus <= 4GiB;", "2:18", Code.DIMENSION, "plain number compared with a size", "without a unit"),
    ("require $mem <= $est_time;", "2:17", Code.DIMENSION, "size compared with a duration", ""),
    ("require $mem default 1h <= 4GiB;", "2:22", Code.DIMENSION, "size compared with a duration", ""),
    ("require $mem in (1h, 2GiB);", "2:18", Code.DIMENSION, "size compared with a duration", ""),
    ("require $mem eq $user;", "2:9", Code.TYPE, "`eq` compares strings, and $mem is an integer", "write ="),
    ("require $user = 4GiB;", "2:9", Code.TYPE, "`=` compares integers, and $user is a string", "write eq"),
    ('require $user default 4GiB eq "x";', "2:23", Code.TYPE, "this is an integer", ""),
    ("require $mem eq 4;", "2:14", Code.TYPE, "`eq` compares strings, and these are integers", "write ="),
    ('require $mem <= "x";', "2:17", Code.TYPE, "`<=` compares integers, and this is a string", "write le"),
    ('require $user default 3 eq "x";', "2:23", Code.TYPE, "this is an integer", ""),
    ('require $user in ("x", 3);', "2:24", Code.TYPE, "strings are expected here", ""),
    ('require $mem like "x*";', "2:9", Code.TYPE, "strings are expected here", ""),
    ('require $user eq "x" and $user < 3;', "2:26", Code.TWO_TYPES, "both as a string and as an integer", ""),
    ("require $mem <= 4G;", "2:17", Code.NUMBER, "`4G` has no known unit", "4GiB (powers of 1024) or 4GB"),
    ("require $est_time <= 15m;", "2:22", Code.NUMBER, "`15m` has no known unit", "write 15min"),
    ("require $est_time <= 500ms;", "2:22", Code.NUMBER, "not a whole number of seconds", "`timeouts`"),
    ("require $cpus <= 1.5;", "2:18", Code.NUMBER, "`1.5` is not a number", ""),
    ("require $cpus <= 9223372036854775808;", "2:18", Code.NUMBER, "does not fit into 64 bits", ""),
    ("require $now.clock < 25:00;", "2:22", Code.NUMBER, "not a time of day", "24:00"),
    ("require $here.load > 110%;", "2:22", Code.RANGE, "`110%` is out of range", "0% to 100%"),
    ("require $now.weekday = 8;", "2:24", Code.RANGE, "`8` is out of range", "1 to 7"),
    ("require $now.month = 13;", "2:22", Code.RANGE, "`13` is out of range", "1 to 12"),
    ("require $now.date >= 2026-7-1;", "2:22", Code.NUMBER, "`2026-7-1` is not a date", "dates are written"),
    ("require $now.date >= 12:00;", "2:22", Code.DIMENSION, "date compared with a time of day", "2026-12-24"),
    ("require $cpus <= 2026-07-15;", "2:18", Code.DIMENSION, "plain number compared with a date", "without a unit"),
    ("require $mem >= -5B;", "2:17", Code.RANGE, "out of range", "never below 0"),
    ("require $mem;", "2:13", Code.SYNTAX, "a comparator is missing before `;`", "$mem <= 4GiB"),
    ("require 1 < $cpus < 3;", "2:19", Code.SYNTAX, "comparisons do not chain", "1 < $x and $x < 3"),
    ("require $cpus = ;", "2:17", Code.SYNTAX, "the second operand is missing before `;`", ""),
    ("require $user eq ann;", "2:18", Code.SYNTAX, "the second operand is missing", 'or "ann" for the string'),
    ("require $user eq parent;", "2:18", Code.SYNTAX, "the second operand is missing", 'or "parent" for the string'),
    ("require $user eq and $cpus = 1;", "2:18", Code.SYNTAX, "before `and`", "compare with a variable"),
    ("require ($cpus = 1;", "2:19", Code.SYNTAX, "a `)` is missing before `;`", ""),
    ("require $cpus = 1);", "2:18", Code.SYNTAX, "a `(` is missing before `)`", ""),
    ("require $cpus in ();", "2:19", Code.SYNTAX, 'a number or a string ("...") is missing before `)`', ""),
    ("require $cpus == 1;", "2:15", Code.WORD, "`==` has no meaning", "write = for integers"),
    ("require $user lt 1;", "2:15", Code.WORD, "`lt` is not a comparator", "write ls"),
    ("require nightly;", "2:9", Code.LET, "unknown `let nightly`", "write $nightly"),
    ("require $cpus = 1 else 5;", "2:24", Code.SYNTAX, 'a string ("...") is missing before `5`', ""),
    ("forbid $cpus = 1;", "2:1", Code.SYNTAX, "`limit`, `require` or `when` is missing", ""),
    ("limit -1 tasks;", "2:7", Code.RANGE, "0 or more", ""),
    ("limit 4GiB tasks;", "2:12", Code.SYNTAX, "a name is missing before `tasks`", ""),
    ("limit 4 tasks per $from;", "2:19", Code.MEANING, "per $from", "$origin"),
    ("limit 4 tasks per $here.os;", "2:19", Code.MEANING, "per $here.os", ""),
    (f"require {'(' * 65}$cpus = 1{')' * 65};", "2:73", Code.LIMIT, "deeper than 64", ""),
    (f"require {'not ' * 65} $cpus = 1;", "2:265", Code.LIMIT, "deeper than 64", ""),
    (f"require {' or '.join(['1=1'] * 257)};", "2:1802", Code.LIMIT, "more than 256 comparisons", ""),
    (f"require $user eq {' ' * 4096}1;", "2:1", Code.LIMIT, "longer than 4096 bytes", ""),
]


@pytest.mark.parametrize(
    ("text", "place", "code", "message", "hint"),
    WORDS + BLOCKS + [(_accepting(rule), *expected) for rule, *expected in RULES],
)
def test_a_mistake_has_its_place_its_cause_and_its_remedy(
    text: str, place: str, code: Code, message: str, hint: str
) -> None:
    (problem,) = (each for each in _problems(text) if not each.is_warning)
    assert (f"{problem.line}:{problem.column}", problem.code) == (place, code.value)
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("rule", "place", "code", "message"),
    [
        ("require $mem <= 4000000;", "2:17", Code.BARE_NUMBER, "4000000 means 4MB"),
        ("require $mem <= 8388608;", "2:17", Code.BARE_NUMBER, "8388608 means 8MiB"),
        ("require $est_time <= 600;", "2:22", Code.BARE_NUMBER, "600 means 10min"),
        ("require $here.load <= 3050;", "2:23", Code.BARE_NUMBER, "3050 means 30.5%"),
        ("require $now.clock < 1200;", "2:22", Code.BARE_NUMBER, "1200 means 20:00"),
        ("when $cpus = 1 xor $cpus = 2 or $cpus = 3;", "2:16", Code.XOR, "`xor` beside `or`"),
        ("when $cpus = 1 xor $cpus <= 2 and $mem >= 1B;", "2:31", Code.XOR, "`and` beside `xor`"),
    ],
)
def test_a_probable_mistake_is_a_warning(rule: str, place: str, code: Code, message: str) -> None:
    (warning,) = policy(_accepting(rule)).warnings
    assert (f"{warning.line}:{warning.column}", warning.code, warning.is_warning) == (place, code.value, True)
    assert message in warning.message


@pytest.mark.parametrize(
    "rule",
    [
        "when ($cpus = 1 xor $cpus = 2) or $cpus = 3;",
        "when $cpus = 1 xor ($cpus <= 2 and $cpus >= 1);",
        "require $mem > 0 and $here.load > 0;",
    ],
)
def test_a_plausible_rule_has_no_warning(rule: str) -> None:
    assert policy(_accepting(rule)).warnings == ()


def test_a_bare_number_that_is_set_is_a_warning_where_its_attribute_has_a_unit() -> None:
    text = "attribute $t duration; advertise every 2s { set $t = 90 when $load < 5% else 2min; set $comm_cost = 90; }"
    (warning,) = policy(text).warnings
    assert (warning.column, warning.code, warning.hint) == (54, Code.BARE_NUMBER.value, "write 90s")


@pytest.mark.parametrize(
    "amount",
    ["$load + 5%", "$load / 100 + $free_slots", "$avail_mem - 1GiB + $cand.count * 8", "($wait_time + 5min) * $load"],
)
def test_terms_with_one_unit_or_none_may_be_added(amount: str) -> None:
    assert policy(f"rank candidates by most {amount};").warnings == ()


def test_neighbors_without_a_limit_are_a_warning_and_users_are_not() -> None:
    (warning,) = policy("accept from users { }\naccept from any { }").warnings
    assert (warning.line, warning.column, warning.code) == (2, 1, Code.NO_LIMIT.value)


def test_an_invalid_limit_is_not_reported_as_missing_too() -> None:
    assert [problem.code for problem in _problems("accept from any { limit many tasks; }")] == [Code.SYNTAX.value]


def test_all_mistakes_of_a_file_are_reported_at_once_in_its_order() -> None:
    text = """policy "five" version 3;
accept from any {
    require $mem <= 8min;
    require $memm <= 8MB
    limit 3 tasks;
}
rank candidates by most;
reveal to any { only $arhc; }
"""
    found = [(problem.line, problem.code) for problem in _problems(text)]
    expected = [(1, Code.MEANING), (3, Code.DIMENSION), (5, Code.SYNTAX), (7, Code.SYNTAX), (8, Code.UNKNOWN_ATTRIBUTE)]
    assert found == [(line, code.value) for line, code in expected]


def test_an_invalid_declaration_is_not_reported_as_unknown_too() -> None:
    text = (
        "attribute $gpus integer;\nlet few = $gpus <;\naccept from any { require few and $gpus <= 4; limit 1 tasks; }"
    )
    assert [problem.line for problem in _problems(text)] == [1, 2]


def test_a_mistake_in_a_let_is_reported_once_at_its_definition() -> None:
    text = "let a = $mem <= 8min;\naccept from any { require a; when a and a; limit 1 tasks; }"
    assert [(problem.line, problem.column) for problem in _problems(text)] == [(1, 17)]


def test_a_let_is_evaluated_in_the_block_that_uses_it() -> None:
    text = 'let near = $cand.relation eq "child";\naccept from any { require near; limit 1 tasks; }'
    (problem,) = _problems(text)
    assert (problem.line, problem.column, problem.code) == (1, 12, Code.SCOPE.value)
    assert "`accept` does not know $cand." in problem.message


def test_lets_that_multiply_are_refused_before_their_expansion() -> None:
    lines = ["let a0 = $cpus = 1;"] + [f"let a{n + 1} = a{n} and a{n};" for n in range(60)]
    problems = _problems("\n".join(lines))
    assert [(problem.line, problem.code) for problem in problems] == [(10, Code.LIMIT.value)]


def test_a_problem_shows_its_line_with_carets_and_the_remedy() -> None:
    (problem,) = _problems("accept from any {\n\trequire $mem <= 8min; limit 1 tasks; }")
    assert str(problem).splitlines() == [
        "test.policy:2:18: error[P204]: size compared with a duration",
        "    2 |  require $mem <= 8min; limit 1 tasks; }",
        "      |                  ^^^^ duration; $mem is a size in bytes",
        "      = help: sizes are written 8MB or 8MiB",
    ]


def test_an_error_shows_every_problem() -> None:
    with pytest.raises(PolicyError) as raised:
        parse_policy("foo;\nbar;", file="test.policy")
    assert str(raised.value).count("error[P106]") == 2


def test_a_file_that_is_too_long_is_refused_unread() -> None:
    (problem,) = _problems("# " + "x" * (256 << 10))
    assert problem.code == Code.LIMIT.value


def test_only_the_first_mistakes_of_a_file_are_reported() -> None:
    assert len(_problems("foo;\n" * 1000)) == 100


def test_a_let_is_as_deep_as_the_lets_that_it_names() -> None:
    lines = ["let a0 = $cpus = 1;"] + [f"let a{n + 1} = a{n};" for n in range(5000)]
    (problem,) = _problems("\n".join(lines))
    assert (problem.line, problem.code) == (66, Code.LIMIT)
    assert "with every `let` expanded, this is deeper than 64" in problem.message
    deepest = "\n".join([*lines[:64], "accept from any { require a63; limit 1 tasks; }"])
    assert policy(deepest).acceptance.judge(request()) == Accepted()


def test_the_longest_durations_are_those_that_others_accept() -> None:
    text = "timeouts { lease 7d; request 10min; input 366d; kill_grace 0s; } advertise every 1h { send all; }"
    timeouts = policy(text).timeouts
    assert (timeouts.lease_ns, timeouts.request_ns) == (LONGEST_LEASE_NS, LONGEST_SEARCH_NS)
    assert (timeouts.update_period_ns, timeouts.kill_grace_ns) == (LONGEST_PERIOD_NS, 0)


def test_a_let_may_name_attributes_of_tasks_on_this_machine_and_is_checked_where_it_is_used() -> None:
    assert policy("let old = $task.ran > 1h; running { kill when old; }").running
    (problem,) = _problems("let old = $task.ran > 1h;\naccept from any { require old; limit 1 tasks; }")
    assert (problem.line, problem.column, problem.code) == (1, 11, Code.UNKNOWN_ATTRIBUTE)
