"""The Python interface for users: submit tasks to a scheduling module on this machine, and follow them.

    from messiahs.client import ModuleClient, Submission, locate_module
    with ModuleClient(locate_module().socket) as module:
        task = module.submit(Submission(argv=("hostname",)))
        print(module.wait(task)["exit_code"])

Only the standard library is needed: whoever scripts tasks loads neither the wire nor the channels.
"""

from messiahs.client.locating import ModulePlace, locate_module
from messiahs.client.module import ModuleClient, Submission

__all__ = ["ModuleClient", "ModulePlace", "Submission", "locate_module"]
