"""The Python interface for users: tasks of scheduling modules on this machine, without protobuf and gRPC.

`tasks` has the client that `messiahs.connect` returns. It stands on `module`, one method for each request of the local
API, and on what prepares, uploads and fetches files. `futures` runs Python functions as tasks.
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
