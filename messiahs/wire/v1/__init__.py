"""Generated from proto/messiahs/wire/v1 by `python tests/unit/wire/regenerate.py`."""
