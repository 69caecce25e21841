"""The Python interface for users: submit tasks to a scheduling module on this machine, and follow them.

    from messiahs.client import ModuleClient, Submission, locate_module
    with ModuleClient(locate_module().socket) as module:
        task = module.submit(Submission(argv=("hostname",)))
        print(module.wait(task)["exit_code"])

Files travel with tasks: `upload` sends those of `prepare_inputs` to the module; `outputs_of` lists what a task left
behind, and `fetch` writes it:

    prepared = prepare_inputs([Source(path="data.csv")])
    upload(module, prepared.contents)
    task = module.submit(Submission(argv=("gzip", "data.csv"), inputs=prepared.inputs, outputs=("data.csv.gz",)))
    module.wait(task)
    for output in fetch(module, outputs_of(module, task), into=Path("results")): ...

It needs only the standard library, so scripts load neither protobuf nor gRPC.
"""

from messiahs.client.fetching import OutputFile, fetch, outputs_of
from messiahs.client.inputs import PreparedInputs, Source, prepare_inputs
from messiahs.client.locating import ModulePlace, locate_module
from messiahs.client.module import ModuleClient
from messiahs.client.submission import InputFile, Submission
from messiahs.client.uploading import upload

__all__ = [
    "InputFile",
    "ModuleClient",
    "ModulePlace",
    "OutputFile",
    "PreparedInputs",
    "Source",
    "Submission",
    "fetch",
    "locate_module",
    "outputs_of",
    "prepare_inputs",
    "upload",
]
