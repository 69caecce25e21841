"""Environment modules of a site (Lmod, Tcl modules): a task names them in a variable, and begins with them loaded.

A machine that has them says so by an attribute in its topology file, and a task requires that.
"""

import re
from typing import Final

ENV_MODULES: Final = "MESSIAHS_ENV_MODULES"
"""The variable with the names, separated by spaces."""
ENV_MODULES_REQUIREMENT: Final = "$env_modules = 1"
_NAME: Final = re.compile(r"[A-Za-z0-9._+@:=/-]{1,128}", re.ASCII)
_SCRIPT: Final = """\
for _init in "${MODULESHOME-}" /usr/share/modules /usr/share/lmod/lmod
do command -v module >/dev/null || [ ! -r "$_init/init/sh" ] || . "$_init/init/sh"; done
for _init in modules lmod
do command -v module >/dev/null || [ ! -r "/etc/profile.d/$_init.sh" ] || . "/etc/profile.d/$_init.sh"; done
command -v module >/dev/null || { echo "this machine has no environment modules" >&2; exit 127; }
module load $MESSIAHS_ENV_MODULES || { echo "not loaded: environment modules $MESSIAHS_ENV_MODULES" >&2; exit 127; }
exec "$@"
"""


def is_module_name(name: str) -> bool:
    """Return whether a text can be the name of an environment module."""
    return _NAME.fullmatch(name) is not None and not name.startswith("-")


def with_modules(argv: tuple[str, ...], env: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the command that loads the environment modules of a task and then becomes its command."""
    return ("sh", "-c", _SCRIPT, "sh", *argv) if dict(env).get(ENV_MODULES) else argv
