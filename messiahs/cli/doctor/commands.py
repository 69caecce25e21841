"""`messiahs doctor`."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from messiahs.cli.options import JSON, STATE
from messiahs.cli.output import print_document, print_text
from messiahs.client.locating import (
    ModulePlace,
    check_permission,
    known_modules,
    locate_module,
    searched_directory,
    with_settings,
)
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, ModuleSilentError

if TYPE_CHECKING:
    from messiahs.cli.doctor.findings import Finding, Patient


@click.command()
@click.option(
    "--module",
    "module",
    metavar="NAME",
    help="The module to look at [env: MESSIAHS_MODULE; else all of this state directory].",
)
@STATE
@JSON
def doctor(*, module: str | None, state: Path | None, as_json: bool) -> int:
    """Look for what keeps modules from their work, and say what to do in one line each; exit with 1 if something does.

    It looks at clock, disk, ports, certificates, links, the account of tasks, policy and units, also while a module is
    down. Neighbors with a link are asked to dial the module, and their clocks are compared, which can take 15 s. Run
    it on the host of the module, as the account that runs it.
    """
    from messiahs.cli.doctor.findings import Level

    directory = searched_directory(state)
    is_named = module is not None or bool(os.environ.get("MESSIAHS_MODULE"))
    places = (locate_module(module, state=state),) if is_named else known_modules(directory)
    places = with_settings(places)
    if not places:
        check_permission(directory)
        raise ClientError(f"no module has ever run under {directory}")
    found = [(place, finding) for place in places for finding in findings_of(place)]
    if as_json:
        checks = [
            {"module": place.module, "level": one.level, "what": one.what, "text": one.text} for place, one in found
        ]
        print_document({"checks": checks})
    for place in () if as_json else places:
        print_text(f"{place.module} of {place.federation}")
        for other, finding in found:
            if other == place:
                print_text(printable(f"  {finding}"))
    return 1 if any(finding.level is Level.FAIL for _, finding in found) else 0


def findings_of(place: ModulePlace) -> "list[Finding]":
    """Return everything that is found at a module; a check that cannot be made is a finding, too."""
    from messiahs.cli.doctor import containing, here, network, other_side, policy
    from messiahs.cli.doctor.findings import fail
    from messiahs.errors import MessiahsError, explained

    try:
        patient = _patient(place)
    except MessiahsError as error:
        return [fail("settings", f"{error}: `messiahs module run` writes them again")]
    checks = (
        here.check_clock,
        here.check_disk,
        here.check_folder,
        here.check_users,
        network.check_ports,
        here.check_certificates,
        network.check_links,
        other_side.check_reach,
        other_side.check_clocks,
        containing.check_isolation,
        policy.check_policy,
        here.check_units,
    )
    found = []
    for check in checks:
        try:
            found += list(check(patient))
        except (OSError, MessiahsError) as error:
            text = explained(error) if isinstance(error, OSError) else str(error)
            found.append(fail(check.__name__.removeprefix("check_"), f"it cannot be checked: {text}"))
    return found


def _patient(place: ModulePlace) -> "Patient":
    from messiahs.cli.doctor.findings import Patient
    from messiahs.client.looking import looking_at
    from messiahs.client.module import ModuleClient
    from messiahs.config.settings import load_settings
    from messiahs.daemon.process.pid_files import recorded_process

    settings = load_settings(place.directory / "settings.json")
    process = recorded_process(place.directory / "daemon.pid")
    document, neighbors, removed, reach, unasked, silence = None, [], [], [], "", ""
    if process is not None:
        try:
            with looking_at(place, process.pid) as client:
                document, neighbors, removed = client.module(), client.neighbors(), client.removed()
        except ModuleSilentError as error:
            silence = str(error)
        except ClientError as error:
            silence = f"process {process.pid} does not answer: {error}; see its module.log"
    if document is not None:
        try:
            with ModuleClient(place.socket, patience=0) as client:
                reach = client.reach()
        except ClientError as error:
            unasked = str(error)
    return Patient(
        place=place,
        settings=settings,
        pid=None if process is None else process.pid,
        document=document,
        neighbors=neighbors,
        removed=removed,
        reach=reach,
        unasked=unasked,
        silence=silence,
    )
