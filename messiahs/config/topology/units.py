"""Units of systemd for a module on its host (MESSIAHS 3.3: an autonomous system is run by its own administrators).

Three kinds: as root, confined to what starting tasks of another account needs; as an account of its own, without any
privilege, on hosts that run no tasks; and a unit of a user, for those without root.

They end the daemon's process alone (`KillMode=process`). At a stop the daemon ends its tasks itself; after a crash or a
freeze, the starter keeps the tasks until the next daemon takes them over, and ends them after a fifth of the lease if
none comes. A task for which the host has too little memory ends alone (`OOMPolicy=continue`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from messiahs.errors import UnusableStateError

ACCOUNT: Final = "messiahs"
STATE_NAME: Final = "messiahs"
SYSTEM_STATE: Final = f"/var/lib/{STATE_NAME}"
SYSTEM_SOCKETS: Final = f"/run/{STATE_NAME}"
SYSTEM_FILES: Final = "/etc/messiahs"
SYSTEM_COMMAND: Final = "/usr/local/bin/messiahs"
USER_STATE: Final = "%h/.local/state/messiahs"
USER_FILES: Final = "%h/.config/messiahs"
USER_COMMAND: Final = "%h/.local/bin/messiahs"
TOPOLOGY_NAME: Final = "topology.yaml"

_SERVICE: Final = (
    "Type=notify",
    "ExecReload=/bin/kill -HUP $MAINPID",
    "Restart=on-failure",
    "RestartSec=2",
    "# Its state is damaged or of a newer release: a person has to act.",
    f"RestartPreventExitStatus={UnusableStateError.EXIT_CODE}",
    "WatchdogSec=60",
    "TimeoutStartSec=180",
    "TimeoutStopSec=60",
    "# Tasks outlive a crash of the daemon, and end with it at a stop.",
    "KillMode=process",
    "OOMPolicy=continue",
    "TasksMax=infinity",
    "LimitNOFILE=65536",
    "# A core would contain the module's key.",
    "LimitCORE=0",
)
_CONFINED: Final = (
    "NoNewPrivileges=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "SystemCallArchitectures=native",
)
_GROUPS: Final = (
    "# Tasks have control groups of their own, with all controllers of this unit.",
    "Delegate=yes",
)
_SYSTEM: Final = (
    *_CONFINED,
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
)
_CAPABILITIES: Final = (
    *("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_NET_ADMIN", "CAP_SETGID", "CAP_SETPCAP"),
    *("CAP_SETUID", "CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_SYS_RESOURCE"),
)
"""What the starter of tasks needs: other accounts, namespaces, limits, and the processes of its tasks.

Without CAP_SYS_TIME nothing can set the clock; `ProtectClock=` would hide the other devices from tasks as well.
"""
_WITH_TASKS: Final = (
    "# Root, so that tasks run as another account, with the capabilities that this needs and no others.",
    f"CapabilityBoundingSet={' '.join(_CAPABILITIES)}",
    *_SYSTEM,
    "# Tasks see the files of the host, and can write only what their account can.",
    "ProtectSystem=full",
    "ProtectHome=read-only",
    "# Neither a module nor a task makes these calls.",
    "SystemCallFilter=~@module @raw-io @reboot @swap",
    "SystemCallErrorNumber=EPERM",
    *_GROUPS,
)
_WITHOUT_TASKS: Final = (
    f"User={ACCOUNT}",
    "CapabilityBoundingSet=",
    *_SYSTEM,
    "LockPersonality=yes",
    "PrivateDevices=yes",
    "PrivateTmp=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHome=yes",
    "ProtectProc=invisible",
    "ProtectSystem=strict",
    "RemoveIPC=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX",
    "RestrictNamespaces=yes",
    "SystemCallFilter=@system-service",
    "UMask=0077",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A module as a service; `runs_tasks` holds if any module of its host has a machine."""

    module: str
    federation: str
    runs_tasks: bool

    @property
    def unit(self) -> str:
        """The name of its unit."""
        return f"messiahs-{self.module}.service"


def system_unit(service: Service, *, command: str) -> str:
    """Return the unit of a module that the host runs; `command` is where `messiahs` is installed."""
    files = f"{SYSTEM_FILES}/{service.federation}/{TOPOLOGY_NAME}"
    places = f"--state {SYSTEM_STATE} --sockets {SYSTEM_SOCKETS}"
    lines = (
        f"ExecStart={command} module run {service.module} --topology {files} {places}",
        f"StateDirectory={STATE_NAME}",
        "StateDirectoryMode=0711",
        "# Its users find it here; other modules of this host may be here, too.",
        f"RuntimeDirectory={STATE_NAME}",
        "RuntimeDirectoryMode=0755",
        "RuntimeDirectoryPreserve=yes",
        *(_WITH_TASKS if service.runs_tasks else _WITHOUT_TASKS),
    )
    return _unit(service, lines, wanted_by="multi-user.target")


def user_unit(service: Service, *, command: str) -> str:
    """Return the unit of a module that a user runs without root; its tasks run as that user."""
    files = f"{USER_FILES}/{service.federation}/{TOPOLOGY_NAME}"
    start = f"ExecStart={command} module run {service.module} --topology {files} --state {USER_STATE}"
    return _unit(service, (start, *_CONFINED, *_GROUPS), wanted_by="default.target")


def _unit(service: Service, lines: Sequence[str], *, wanted_by: str) -> str:
    sections = {
        "Unit": (
            f"Description=MESSIAHS module {service.module} of the federation {service.federation}",
            "Wants=network-online.target",
            "After=network-online.target",
            "# Restarted for as long as it takes, for example until an address of this host is there.",
            "StartLimitIntervalSec=0",
        ),
        "Service": (*_SERVICE, *lines),
        "Install": (f"WantedBy={wanted_by}",),
    }
    return "\n".join("\n".join((f"[{name}]", *content, "")) for name, content in sections.items())
