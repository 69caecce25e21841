"""The page in a host's bundle: five steps for the administrator of that host."""

from collections.abc import Iterable, Sequence
from typing import Final

from messiahs.config.topology.units import ACCOUNT, SYSTEM_FILES, SYSTEM_STATE, TOPOLOGY_NAME, Service

_STEPS: Final = (
    (
        "Install `messiahs` ({account}), then the files: `mkdir -p {files} && cp -r *.yaml {folders}{files}/` and "
        "`cp system/*.service /etc/systemd/system/`"
    ),
    "Make a key and a request for its certificate, here: {requests}",
    (
        "Send {requested} to where the root's key is. Its administrator types {signs} and sends back {signed} and "
        "`{tls}/root.pem`"
    ),
    (
        "Put these into their places: `install -D -m 644 root.pem {tls}/root.pem`{placed}, then {owned}"
        "`systemctl daemon-reload && systemctl enable --now {units}`"
    ),
    (
        "Check all of it: {checks}. After a change, copy the new bundle as in step 1, and type "
        "`messiahs topology apply {files}/{topology} --state {state}`"
    ),
)
_END: Final = """
On the first host of a site, leave out steps 2 to 4 but the last command: its first start makes the root's key there.
All commands are for root, in the folder of this page. Without root: use `~/.config/messiahs` for `/etc/messiahs`,
`~/.local/state/messiahs` for `/var/lib/messiahs`, `user/*.service` in `~/.config/systemd/user`, `systemctl --user`, and
once `loginctl enable-linger`.
"""


def host_page(host: str, services: Sequence[Service], *, folders: Sequence[str]) -> str:
    """Return the page of a host on which these modules run; `folders` are those of its bundle, beside the units."""
    federation, names = services[0].federation, [service.module for service in services]
    is_root = any(service.runs_tasks for service in services)
    directory = f"{SYSTEM_STATE}/{federation}"
    make = f"`useradd --system {ACCOUNT}`"
    head = f"# Host {host}: {_listed(names)} of the federation {federation}\n"
    steps = "".join(f"{number}. {step}\n" for number, step in enumerate(_STEPS, 1)).format(
        account="tasks have other accounts" if is_root else f"its account: {make}",
        files=f"{SYSTEM_FILES}/{federation}",
        folders="".join(f"{folder} " for folder in folders),
        requests=_listed(
            f"`messiahs certificate request {name} --federation {federation} --state {SYSTEM_STATE}`" for name in names
        ),
        requested=_listed(f"`{name}.csr`" for name in names),
        signs=_listed(f"`messiahs certificate sign {name}.csr --state {SYSTEM_STATE}`" for name in names),
        signed=_listed(f"`{name}.pem`" for name in names),
        placed="".join(f", `install -m 644 {name}.pem {directory}/{name}/certificate.pem`" for name in names),
        owned="" if is_root else f"`chown -R {ACCOUNT}: {SYSTEM_STATE}` and ",
        tls=f"{directory}/tls",
        units=" ".join(service.unit.removesuffix(".service") for service in services),
        checks=_listed(f"`messiahs doctor --module {name} --state {SYSTEM_STATE}`" for name in names),
        topology=TOPOLOGY_NAME,
        state=SYSTEM_STATE,
    )
    return f"{head}\n{steps}{_END}"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
