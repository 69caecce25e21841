"""Paths that stay inside a folder: of symbolic links that are kept as links, and of folders (MESSIAHS 5.3.3)."""

UP = ".."


def stays_inside(name: str, target: str) -> bool:
    """Return whether a link at `name`, a path relative to a folder, leads to a place inside that folder.

    It does so whatever other accepted links are in the folder: `..` is accepted only at the beginning of a target, so
    that none is applied to the target of another link. Nothing needs to exist there.
    """
    parts = [part for part in target.split("/") if part not in {"", "."}]
    ups = next((place for place, part in enumerate(parts) if part != UP), len(parts))
    is_relative = bool(target) and not target.startswith("/") and "\0" not in target
    return is_relative and ups <= name.count("/") and UP not in parts[ups:]


def leads_above(path: str) -> bool:
    """Return whether a relative path leads, by its `..`, above the folder in which it begins."""
    depth = 0
    for part in () if path.startswith("/") else path.split("/"):
        depth += 0 if part in {"", "."} else -1 if part == UP else 1
        if depth < 0:
            return True
    return False
