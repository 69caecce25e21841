"""`messiahs join …`: tokens with which systems join a running module, and decisions about those that ask."""

from pathlib import Path
from typing import TypedDict, Unpack

import click

from messiahs.cli.options import DURATION, JSON, MODULE, STATE
from messiahs.cli.output import print_document, print_table, print_text
from messiahs.client.connection import Document
from messiahs.client.locating import locate_module
from messiahs.client.module import ModuleClient
from messiahs.config.regular_files import read_regular
from messiahs.core.model.texts import printable
from messiahs.errors import ClientError, explained

_NAME = click.argument("name")


class _TokenOptions(TypedDict):
    role: str
    expires: int
    pattern: str
    address: str


@click.group()
def join() -> None:
    """Let systems join a running module: make tokens, list requests, approve or deny them.

    With a token, the newcomer's administrator runs `messiahs module run NAME --join ADDRESS --token FILE`. The block
    `join` of the module's policy decides who may join; without that block, an administrator does, with these commands.
    Only root and the user of the module may use them.
    """


@join.command("token")
@click.option(
    "--role",
    type=click.Choice(("child", "sibling")),
    default="child",
    show_default=True,
    help="What the newcomer becomes.",
)
@click.option("--expires", type=DURATION, default="1h", show_default=True, help="How long it can be used, at most 30d.")
@click.option("--name", "pattern", default="*", metavar="PATTERN", help="Names that may join; * stands for any text.")
@click.option("--address", default="", metavar="HOST:PORT", help="Where the newcomer dials; default: where it listens.")
@MODULE
@STATE
@JSON
def make_token(*, module: str | None, state: Path | None, as_json: bool, **asked: Unpack[_TokenOptions]) -> None:
    """Print a token, one line of text, with which one system may join.

    It is a secret until it is used: bring it to the newcomer over a channel that you trust. It is used once, by one
    key, and expires by the clock of this module alone. It contains the fingerprint of this module, so that nobody can
    pass for it. A sibling has no parent, and is counted by itself: both see the machines of the other and below it.
    """
    with ModuleClient(locate_module(module, state=state).socket) as client:
        made = client.make_join_token(
            role=asked["role"], pattern=asked["pattern"], expires_s=asked["expires"], address=asked["address"]
        )
    if as_json:
        print_document(made)
    else:
        print_text(made["token"])


@join.command("list")
@click.option("--request", "wanted", metavar="NAME", help="Print the certificate request of NAME (PEM), to be signed.")
@MODULE
@STATE
@JSON
def list_requests(*, wanted: str | None, module: str | None, state: Path | None, as_json: bool) -> None:
    """List the systems that ask to join and wait for a decision, and the tokens."""
    with ModuleClient(locate_module(module, state=state).socket) as client:
        found = client.joining()
    if wanted is not None:
        print_text(_request_of(found["requests"], wanted), nl=False)
    elif as_json:
        print_document(found)
    else:
        header = ("NAME", "ROLE", "ADDRESS", "MACHINE", "KEY", "ASKED AT", "STATE")
        print_table(header, [_request_row(each) for each in found["requests"]])
        print_text("")
        of_tokens = ("TOKEN", "ROLE", "NAMES", "EXPIRES", "STATE", "USED BY")
        print_table(of_tokens, [_token_row(each) for each in found["tokens"]])


@join.command()
@_NAME
@click.option(
    "--certificate",
    "file",
    type=click.Path(path_type=Path),
    help="Its certificate (PEM), which was signed where the key of the root lies.",
)
@MODULE
@STATE
@JSON
def approve(name: str, *, file: Path | None, module: str | None, state: Path | None, as_json: bool) -> None:
    """Let NAME join, which has asked. It learns that within seconds.

    If the key of the site's root is elsewhere, print the request (`join list --request NAME`), have it signed there
    (`messiahs certificate sign`), and name the certificate.
    """
    try:
        certificate = "" if file is None else read_regular(file, limit_bytes=64 << 10).decode("ascii")
    except OSError as error:
        raise ClientError(f"the certificate cannot be read: {explained(error)}") from error
    except UnicodeDecodeError as error:
        raise ClientError(f"{file} is no certificate (PEM)") from error
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        decided = client.decide_join(name, approve=True, certificate=certificate)
    _show_decision(decided, f"{name} may join {place.module}", as_json=as_json)


@join.command()
@_NAME
@click.option("--text", default="", metavar="TEXT", help="The reason, which the newcomer is told.")
@MODULE
@STATE
@JSON
def deny(name: str, *, text: str, module: str | None, state: Path | None, as_json: bool) -> None:
    """Refuse NAME, which has asked to join. Its token cannot be used any more."""
    place = locate_module(module, state=state)
    with ModuleClient(place.socket) as client:
        decided = client.decide_join(name, approve=False, text=text)
    _show_decision(decided, f"{name} may not join {place.module}", as_json=as_json)


@join.command("revoke")
@click.argument("token")
@MODULE
@STATE
@JSON
def revoke_token(token: str, *, module: str | None, state: Path | None, as_json: bool) -> None:
    """Let nobody use TOKEN any more: its id in `join list`, or the beginning of it. Who has joined with it stays."""
    with ModuleClient(locate_module(module, state=state).socket) as client:
        left = client.revoke_join_token(token)
    _show_decision(left, f"nobody can use the token {token} any more", as_json=as_json)


def _show_decision(decided: Document, text: str, *, as_json: bool) -> None:
    if as_json:
        print_document(decided)
    else:
        print_text(text)


def _request_of(requests: list[Document], name: str) -> str:
    found = next((each for each in requests if each["name"] == name), None)
    if found is None:
        raise ClientError(f"no system asks to join as {name}")
    return str(found["certificate_request"])


def _request_row(found: Document) -> tuple[str, ...]:
    machine = " ".join(f"{name}={value}" for name, value in found["machine"].items())
    state = f"{found['state']}, needs a certificate" if found["needs_certificate"] else found["state"]
    address, asked_at = found["address"] or "-", found["asked_at"]
    return found["name"], found["role"], address, printable(machine) or "-", found["key"], asked_at, state


def _token_row(found: Document) -> tuple[str, ...]:
    used_by = found["used_by"] or "-"
    return found["id"][:8], found["role"], found["pattern"], found["expires_at"], found["state"], used_by
