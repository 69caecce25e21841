from typing import Final

from messiahs.client.asynchronous import AsyncClient as AsyncClient
from messiahs.client.futures.executor import Executor as Executor
from messiahs.client.plans import TaskPlan as TaskPlan
from messiahs.client.status import TaskStatus as TaskStatus
from messiahs.client.tasks import Client as Client
from messiahs.client.tasks import connect as connect
from messiahs.errors import ClientError as ClientError
from messiahs.errors import MessiahsError as MessiahsError
from messiahs.errors import ModuleUnreachableError as ModuleUnreachableError
from messiahs.errors import PythonMismatchError as PythonMismatchError
from messiahs.errors import TaskFailedError as TaskFailedError
from messiahs.errors import UnknownTaskError as UnknownTaskError
from messiahs.errors import WorkflowError as WorkflowError

__version__: Final[str]
