"""The endpoint of metrics of real daemons: what Prometheus reads of them, and who may read it over TLS."""

import http.client
import json
import os
import re
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from messiahs.config.settings import MetricsSettings, ModuleSettings, load_settings, save_settings
from tests.live.conftest import ROOT, Federation, brought_up, fixed_machine
from tests.ports import free_port
from tests.waiting import eventually

pytestmark = pytest.mark.live
_TOPOLOGY = """
version: 1
federation: watched
defaults: {{update_period: 200ms}}
systems:
  top:
    machine: {machine}
    metrics: {{listen: "localhost:{plain}"}}
  low:
    parent: top
    policy: small.policy
    machine: {larger}
    metrics: {{listen: "127.0.0.1:{secured}", client_roots: monitoring.pem}}
"""
_SMALL = 'policy "small"; accept from any { require $mem default 0 < 1GiB; } accept from users { }'
_LABELS = {
    *("release", "federation", "module", "le", "role", "status", "machine", "reason", "state", "neighbor", "outcome"),
    *("direction", "code"),
}
_MISSING = "raise ModuleNotFoundError('No module named prometheus_client', name='prometheus_client')"
_NAME = re.compile(r"\b(?:messiahs|process)_[a-z_]+\b")
_GROUPED, _SELECTED = re.compile(r"\bby \(([^)]*)\)"), re.compile(r"\{([^}]*)\}")
_MATCHED, _SHOWN = re.compile(r"(\w+)[=!]"), re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Two modules: `top` serves metrics in plain text, `low` over mutual TLS to holders of one certificate."""

    federation: Federation
    plain: int
    secured: int
    folder: Path

    def read(self) -> dict[str, Metric]:
        """Read the metrics of `top` as they are now, by the names of their families."""
        return fresh(self.text)

    def text(self) -> bytes:
        """Return what `top` answers."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.plain}/metrics") as answer:
            return bytes(answer.read())

    def read_securely(self, holder: str = "") -> dict[str, Metric]:
        """Read those of `low` as they are now with a certificate, or without."""
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=self.context(holder)))

        def text() -> bytes:
            with opener.open(f"https://127.0.0.1:{self.secured}/metrics") as answer:
                return bytes(answer.read())

        return fresh(text)

    def context(self, holder: str) -> ssl.SSLContext:
        """Return the TLS of who asks `low`, with a certificate, or without."""
        context = ssl.create_default_context(cafile=str(tls(self.federation) / "root.pem"))
        if holder:
            context.load_cert_chain(self.folder / f"{holder}.pem", self.folder / f"{holder}.key")
        # The module's certificate has its name, which Prometheus is told as `server_name`.
        context.check_hostname = False
        return context


def fresh(read: Callable[[], bytes]) -> dict[str, Metric]:
    """Read metrics as they are now: a module keeps a text for a second."""
    kept = read()
    eventually(lambda: read() != kept)
    return families(read())


def families(text: bytes) -> dict[str, Metric]:
    return {family.name: family for family in text_string_to_metric_families(text.decode())}


def tls(made: Federation) -> Path:
    return made.state / made.name / "tls"


def value(found: dict[str, Metric], name: str, **labels: str) -> float:
    """Return the sum of the samples with a name and these labels."""
    samples = [each for family in found.values() for each in family.samples if each.name == name]
    return sum(each.value for each in samples if labels.items() <= each.labels.items())


def self_signed(folder: Path, name: str) -> None:
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")]
    subprocess.run([*command, *files, "-subj", f"/CN={name}"], check=True, capture_output=True)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    plain, secured = free_port(), free_port()
    topology = folder / "watched.yaml"
    machine, larger = fixed_machine(slots=1), fixed_machine(slots=2)
    topology.write_text(_TOPOLOGY.format(machine=machine, larger=larger, plain=plain, secured=secured))
    (folder / "small.policy").write_text(_SMALL)
    for name in ("monitoring", "stranger"):
        self_signed(folder, name)
    made = Federation(topology=topology, name="watched", state=folder / "state", module="top")
    with brought_up(made):
        yield Watched(federation=made, plain=plain, secured=secured, folder=folder)


def test_tasks_are_counted_from_their_submit_to_their_end(watched: Watched) -> None:
    before = watched.read()
    made = watched.federation
    array = made.submit("--array", "1-6", "true")
    assert made.run("wait", array).returncode == 0
    waiting = made.submit("--require", "$slots > 100", "true")
    made.submit("--after-ok", waiting, "true")
    found = watched.read()

    def grown(name: str, **labels: str) -> float:
        return value(found, name, **labels) - value(before, name, **labels)

    assert grown("messiahs_submitted_tasks_total") == 8
    assert grown("messiahs_placed_tasks_total") == 6
    assert grown("messiahs_ended_tasks_total", state="finished") == 6
    assert grown("messiahs_placement_wait_time_seconds_count") == 6
    assert grown("messiahs_placement_wait_time_seconds_sum") > 0
    assert grown("messiahs_commit_duration_seconds_count") > 0
    assert grown("messiahs_committed_rows_total") >= 14
    assert grown("messiahs_pending_tasks", status="waiting") == 1
    assert grown("messiahs_pending_tasks", status="dependent") == 1
    assert value(found, "messiahs_build_info", module="top", federation="watched") == 1
    assert made.run("cancel", waiting).returncode == 0
    eventually(lambda: value(watched.read(), "messiahs_ended_tasks_total", state="killed") == 1)


def test_both_ends_of_a_search_count_it_and_the_bytes_of_its_task(watched: Watched) -> None:
    large = watched.folder / "large"
    large.write_bytes(bytes(100_000))
    before, before_there = watched.read(), watched.read_securely("monitoring")
    task = watched.federation.submit("--require", "$slots = 2", "--input", str(large), "true")
    assert watched.federation.run("wait", task).returncode == 0
    refused = watched.federation.submit("--no-wait", "--require", "$slots = 2", "--mem", "2GiB", "true")
    assert watched.federation.run("wait", refused).returncode != 0
    found, there = watched.read(), watched.read_securely("monitoring")

    def grown(name: str, **labels: str) -> float:
        return value(found, name, **labels) - value(before, name, **labels)

    def grown_there(name: str, **labels: str) -> float:
        return value(there, name, **labels) - value(before_there, name, **labels)

    assert grown("messiahs_placed_tasks_total", machine="other") == 1
    assert grown("messiahs_searches_total", neighbor="low", outcome="granted") == 1
    assert grown("messiahs_searches_total", neighbor="low", outcome="denied") == 1
    assert grown_there("messiahs_search_answers_total", neighbor="top", outcome="granted") == 1
    assert grown_there("messiahs_search_answers_total", neighbor="top", outcome="denied") == 1
    for denied, direction in ((grown, "received"), (grown_there, "sent")):
        assert denied("messiahs_denials_total", direction=direction) == 1
        assert denied("messiahs_denials_total", direction=direction, code="refused_by_policy") == 1
    assert grown_there("messiahs_ended_attempts_total", state="finished", reason="exited") == 1
    assert grown_there("messiahs_file_bytes_total", neighbor="top", direction="received") >= 100_000
    for neighbor, grow in (("low", grown), ("top", grown_there)):
        for direction in ("sent", "received"):
            assert grow("messiahs_message_bytes_total", neighbor=neighbor, direction=direction) > 0
        assert value(found if neighbor == "low" else there, "messiahs_neighbor_linked", neighbor=neighbor) == 1
    assert value(found, "messiahs_view_age_seconds", neighbor="low") > 0


def test_what_an_owner_revokes_is_counted_at_both_ends(watched: Watched) -> None:
    made = watched.federation
    task = made.submit("--require", "$slots = 2", "sleep", "1000")
    eventually(lambda: made.status(task)["substate"] == "running")
    assert made.run("module", "revoke", task, "--module", "low").returncode == 0
    # The machine gave it time to end.
    eventually(lambda: value(watched.read(), "messiahs_evicted_tasks_total", reason="vacated") == 1)
    there = watched.read_securely("monitoring")
    assert value(there, "messiahs_ended_attempts_total", reason="vacated") == 1
    assert made.run("cancel", task).returncode == 0


def test_localhost_is_every_address_of_loopback(watched: Watched) -> None:
    kept = watched.text()
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this host has no ::1")
    with urllib.request.urlopen(f"http://[::1]:{watched.plain}/metrics") as answer:
        assert families(answer.read()).keys() == families(kept).keys()


def test_a_stranger_reads_nothing(watched: Watched) -> None:
    for holder in ("", "stranger"):
        with pytest.raises((ssl.SSLError, urllib.error.URLError, ConnectionError)):
            watched.read_securely(holder)
    assert value(watched.read_securely("monitoring"), "messiahs_build_info", module="low") == 1


def test_silent_strangers_keep_nobody_out_and_close_no_connection(watched: Watched) -> None:
    kept = http.client.HTTPSConnection("127.0.0.1", watched.secured, context=watched.context("monitoring"))
    with ExitStack() as stack:
        stack.callback(kept.close)
        kept.request("GET", "/metrics")
        assert kept.getresponse().read()
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", watched.secured))) for _ in range(40)]
        assert value(watched.read_securely("monitoring"), "messiahs_build_info", module="low") == 1
        # The oldest one has made room.
        with suppress(ConnectionResetError):
            assert not silent[0].recv(1)
        # A connection that was closed would be opened anew.
        kept.auto_open = 0
        kept.request("GET", "/metrics")
        assert kept.getresponse().read()


def test_the_dashboard_shows_what_the_endpoint_has_and_all_of_it(watched: Watched) -> None:
    dashboard = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
    targets = [target for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for target in targets for name in _NAME.findall(target["expr"])}
    found = watched.read()
    known = {name for family in found.values() for name in names_of(family)}
    assert named <= known
    own = {family.name for family in found.values() if family.name.startswith("messiahs_")}
    shown = {own_name for own_name in own for name in named if name.startswith(own_name)}
    assert own - shown == {"messiahs_build_info"}


def test_the_dashboard_groups_selects_and_names_by_labels_that_its_metrics_have(watched: Watched) -> None:
    assert watched.federation.run("run", "true").returncode == 0
    has = {**labels_of(watched.read()), "messiahs_dropped_control_messages_total": {"code"}}
    dashboard = json.loads((ROOT / "docs" / "grafana-dashboard.json").read_text())
    for target in (target for panel in dashboard["panels"] for target in panel["targets"]):
        query = target["expr"]
        # Prometheus adds the instance.
        known = {"instance"}.union(set.intersection(*(has[name] for name in _NAME.findall(query))))
        grouped = {label for group in _GROUPED.findall(query) for label in group.split(", ")}
        selected = {label for selector in _SELECTED.findall(query) for label in _MATCHED.findall(selector)}
        assert grouped | selected <= known, query
        assert set(_SHOWN.findall(target["legendFormat"])) <= (grouped or known), target


def test_labels_name_neither_tasks_nor_users_nor_addresses(watched: Watched) -> None:
    labels = {
        (key, each) for family in watched.read().values() for one in family.samples for key, each in one.labels.items()
    }
    assert {each for key, each in labels if key == "neighbor"} == {"low", "other"}
    assert {key for key, _ in labels} <= _LABELS
    others = {each for key, each in labels if key not in ("le", "release")}
    assert all(re.fullmatch("[a-z_]+", each) for each in others), others


def test_an_endpoint_that_cannot_work_is_an_error_at_the_start(watched: Watched, tmp_path: Path) -> None:
    settings = load_settings(watched.federation.folder("top") / "settings.json")
    assert "Address already in use; change `listen` of `metrics`" in refused(settings, tmp_path)
    roots = tmp_path / "none.pem"
    other = MetricsSettings(host="127.0.0.1", port=free_port(), client_roots=roots)
    assert "none.pem, cannot be read: No such file" in refused(replace(settings, metrics=other), tmp_path)
    roots.write_text("no roots")
    assert "cannot be served over TLS with the roots in" in refused(replace(settings, metrics=other), tmp_path)
    (tmp_path / "prometheus_client.py").write_text(_MISSING)
    assert "pip install 'messiahs[metrics]'" in refused(settings, tmp_path)


def refused(settings: ModuleSettings, folder: Path) -> str:
    """Return why a daemon with these settings and a new state does not start."""
    save_settings(replace(settings, state_directory=folder), folder / "settings.json")
    command = [sys.executable, "-m", "messiahs.daemon", str(folder / "settings.json")]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr


def names_of(family: Metric) -> set[str]:
    """Return the names of the samples that a family has, or would have."""
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}.get(family.type, ("",))
    return {f"{family.name}{ending}" for ending in endings}


def labels_of(found: dict[str, Metric]) -> dict[str, set[str]]:
    """Return the labels of the samples with each name; nothing of a family that has none so far."""
    labels: dict[str, set[str]] = {}
    for sample in (sample for family in found.values() for sample in family.samples):
        labels.setdefault(sample.name, set()).update(sample.labels)
    return labels
