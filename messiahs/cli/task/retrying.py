"""`messiahs retry`: failed tasks run again under the same ids."""

from messiahs.cli.options import PlaceOptions
from messiahs.cli.output import print_document, print_text
from messiahs.cli.progress import shown_progress
from messiahs.cli.task.modules import client_of, done_for_each
from messiahs.client.connection import Document
from messiahs.client.locating import member_of
from messiahs.client.module import ModuleClient
from messiahs.client.preparing import retry_at
from messiahs.core.model.texts import printable


def retried(ids: tuple[str, ...], options: PlaceOptions, *, killed: bool, inputs: tuple[str, ...]) -> int:
    """Run tasks again, print what runs, and return the exit code; none runs if one of several is unknown."""
    if len(ids) > 1:
        with client_of(options) as client:
            _, unknown = client.found(*ids)
        for text in unknown.values():
            print_text(f"messiahs: {text}", err=True)
        if unknown:
            return 1
    with shown_progress() as on_progress:

        def act(module: ModuleClient, name: str) -> Document:
            count = retry_at(module, name, killed=killed, inputs=inputs, on_progress=on_progress)
            # Numbers of members are not those of --array, which a user may have meant.
            item = module.tasks(name)["tasks"][0].get("item") if count and member_of(name) else None
            return {"id": name, "retried": count} | ({} if item is None else {"item": item})

        done, code = done_for_each(ids, options, act=act)
    if options["as_json"]:
        print_document({"tasks": done})
    else:
        for document in done:
            print_text(document["id"] if options["quiet"] else _line(document, killed=killed))
    return code


def _line(document: Document, *, killed: bool) -> str:
    name, count = document["id"], document["retried"]
    if not count:
        return f"{name}: nothing to run again, since nothing {'was killed' if killed else 'has failed'}"
    if "item" in document:
        return printable(f"{name}, that for {document['item']}, runs again")
    return f"{name}: {count} {'runs' if count == 1 else 'run'} again"
