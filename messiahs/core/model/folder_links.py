"""Symbolic links that are kept as links: relative ones that stay inside their folder (MESSIAHS 5.3.3)."""

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
