"""Build a submission from command-line options and upload its files."""

from contextlib import AbstractContextManager, nullcontext

from messiahs.cli.array_size import Members
from messiahs.cli.options import SubmitOptions
from messiahs.cli.progress import shown_progress
from messiahs.client.inputs import PLACEHOLDER, PreparedInputs, Source, prepare_inputs
from messiahs.client.module import ModuleClient
from messiahs.client.names import checked_name
from messiahs.client.submission import Submission, new_key
from messiahs.client.uploading import upload
from messiahs.core.model.counted import GPUS, requirement_for
from messiahs.core.model.images import IMAGE, IMAGE_INPUT, IMAGE_REQUIREMENT

_SINGLE = Members()


def prepared_submission(
    module: ModuleClient, command: tuple[str, ...], *, options: SubmitOptions, members: Members = _SINGLE
) -> Submission:
    """Hash and upload the inputs and return the submission, which is not yet submitted.

    Safe to repeat after an interruption: uploaded contents are kept and not uploaded again.
    """
    for output in options["outputs"]:
        if PLACEHOLDER in output:
            for text in members.texts():
                checked_name(output.replace(PLACEHOLDER, text))
    with shown_progress() as on_progress, _source_of(options["image"]) as source:
        items = members.texts() if options["inputs"] else ()
        sources = options["inputs"] if source is None else (*options["inputs"], source)
        prepared = prepare_inputs(sources, items=items, on_progress=on_progress)
        if prepared.contents:
            upload(module, prepared.contents, on_progress=on_progress)
    return _submission_of(command, options, members, prepared)


def _source_of(image: str | None) -> AbstractContextManager[Source | None]:
    if image is None:
        return nullcontext()
    from messiahs.client.images import image_source

    return image_source(image)


def _submission_of(
    command: tuple[str, ...], options: SubmitOptions, members: Members, prepared: PreparedInputs
) -> Submission:
    """Build the submission; options that were not given are not in the TDV.

    The requirement demands machines that assign what a task uses and unpack its image. A module adds the latter, too,
    but one of an earlier release does not.
    """
    from messiahs.language.predicate.joining import joined

    wanted = {
        "mem": options["mem"],
        "disk": options["disk"],
        "cpus": options["cpus"],
        "est_time": options["time"],
        "priority": options["priority"],
    }
    uses = {**dict(options["uses"]), **({} if options["gpus"] is None else {GPUS: options["gpus"]})}
    images = {} if options["image"] is None else {IMAGE: _hash_of_image(prepared)}
    requirement = joined(options["require"], requirement_for(sorted(uses.items())))
    return Submission(
        argv=command,
        env=dict(options["env"]),
        tdv={
            **dict(options["sets"]),
            **uses,
            **images,
            **{name: value for name, value in wanted.items() if value is not None},
        },
        requirement=joined(requirement, IMAGE_REQUIREMENT if images else ""),
        members=members.count,
        name=options["name"],
        retries=options["retries"],
        waits=not options["no_wait"],
        deadline_seconds=options["deadline"],
        inputs=prepared.inputs,
        outputs=options["outputs"],
        items=members.items,
        member_inputs=prepared.member_inputs,
        key=options["key"] or new_key(),
    )


def _hash_of_image(prepared: PreparedInputs) -> str:
    (image,) = (one for one in prepared.inputs if one.name == IMAGE_INPUT)
    return image.sha256
