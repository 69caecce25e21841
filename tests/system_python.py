"""The Python of the system under which the functions of a test run: tasks do not see the folder of this one."""

import shutil
import sys
from typing import Final

NAME: Final = "python{}.{}".format(*sys.version_info)
FOLDERS: Final = "/usr/local/bin:/usr/bin:/bin"
IS_THERE: Final = shutil.which(NAME, path=FOLDERS) is not None
WHY_NOT: Final = f"functions run under {NAME}, which is not in {FOLDERS}"
