"""A scheduling module as its local users see it: the local API, one method per request."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import quote, urlencode

from messiahs.client.connection import (
    ANSWER_SECONDS,
    PATIENCE_SECONDS,
    Connection,
    Document,
    OnConnection,
    untold,
)
from messiahs.client.decisions import decisions
from messiahs.client.reading import read_on
from messiahs.client.status import Among, asked_states, is_final
from messiahs.client.submission import Submission

_POLL_SECONDS = 10
_REACH_SECONDS = 15
_LENGTH_BYTES = 8


@dataclass(slots=True)
class ModuleClient:
    """A client of one module, for one thread. Answers are documents of the local API.

    Every method waits through a restart of the daemon for `patience` seconds (None: without limit), then raises
    `ModuleUnreachableError`; a refusal by the module is a `ClientError`. `answer_seconds` is as in `Connection`.
    """

    socket_path: Path
    patience: float | None = PATIENCE_SECONDS
    answer_seconds: float = ANSWER_SECONDS
    _connection: Connection = field(init=False)
    _reader: Connection = field(init=False)

    def __post_init__(self) -> None:
        self._connection = Connection(self.socket_path, answer_seconds=self.answer_seconds)
        self._reader = Connection(self.socket_path, answer_seconds=self.answer_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
        self._reader.close()

    def module(self) -> Document:
        """Return the module's identity, its neighbors, and which of them it hears."""
        return self._connection.ask("GET", "/v1/module", patience=self.patience)

    def explanation(self) -> Document:
        """Return why the machine gets no work: what others know of it, their requests, and what refused them.

        Only root and the module's own user may do this.
        """
        return self._connection.ask("GET", "/v1/module/explanation", patience=self.patience)

    def vectors(self) -> Document:
        """Return the module's sums and views (MESSIAHS 7.2)."""
        return self._connection.ask("GET", "/v1/vectors", patience=self.patience)

    def exchanged_vectors(self) -> Document:
        """Return all vectors that were received and sent, and from which each sum was computed, at one instant.

        Only root and the module's own user may do this.
        """
        return self._connection.ask("GET", "/v1/vectors/exchanged", patience=self.patience)

    def record(self, size_bytes: int | None) -> Document:
        """Record every event and action of the module in at most `size_bytes` on disk; None stops the recording.

        Returns `{"recording", "folder"}`. Only root and the module's own user may do this.
        """
        return self._connection.ask("POST", "/v1/trace", body={"size_bytes": size_bytes}, patience=self.patience)

    def policy(self) -> Document:
        """Return the policy in force: its name, file and hash, and since when."""
        return self._connection.ask("GET", "/v1/policy", patience=self.patience)

    def load_policy(self, text: str | None, *, file: str = "") -> Document:
        """Replace the policy in force; None restores the module's own file.

        Returns the policy in force afterwards, and `problems`; with problems nothing has changed. Only root and the
        module's own user may do this.
        """
        return self._connection.ask("POST", "/v1/policy", body={"text": text, "file": file}, patience=self.patience)

    def preview(self, neighbor: str, *, text: str | None = None, file: str = "") -> Document:
        """Return the vector that a neighbor gets `now`, and `under` a policy, for root and the module's own user."""
        body = {"neighbor": neighbor, "text": text, "file": file}
        return self._connection.ask("POST", "/v1/preview", body=body, patience=self.patience)

    def apply_settings(self) -> Document:
        """Let the module take over its changed settings file, as far as it can while it runs; repeat it as you like.

        Returns `{"name", "applied", "waiting", "kept"}`, lists of lines: what changed now, what waits for a restart,
        and what differs from the file by changes at run time. Only root and the module's own user may do this.
        """
        return self._connection.ask("POST", "/v1/settings", body={}, patience=self.patience)

    def attempts(self) -> list[Document]:
        """List attempts that run or wait on the module's machine, of all users; only root and the module's user may."""
        return list(self._connection.ask("GET", "/v1/attempts", patience=self.patience)["attempts"])

    def revoke(self, name: str, *, kill: bool = False, reason: str = "") -> list[str]:
        """Revoke an attempt, a task or an array that runs on the module's machine, and return the attempts' names.

        Its origin receives the reason and runs it elsewhere. Only root and the module's own user may do this.
        """
        body = {"id": name, "kill": kill, "reason": reason}
        return list(self._connection.ask("POST", "/v1/attempts/revoke", body=body, patience=self.patience)["revoked"])

    def parents(self) -> Document:
        """Return the parents: `parents`, `primary`, `counted_at` and the last change (`handover`)."""
        return self._connection.ask("GET", "/v1/parents", patience=self.patience)

    def change_primary_parent(self, parent: str, *, reason: str = "") -> Document:
        """Begin to let another parent count the module, and return `parents()`.

        Only root and the module's own user may do this.
        """
        body = {"parent": parent, "reason": reason}
        return self._connection.ask("POST", "/v1/parents/primary", body=body, patience=self.patience)

    def audit(self) -> Iterator[Document]:
        """Yield the rows of the audit log, oldest first; only root and the module's own user may."""
        after = 0
        while rows := self._connection.ask("GET", f"/v1/audit?after={after}", patience=self.patience)["rows"]:
            yield from rows
            after = rows[-1]["number"]

    def decisions(self, *, follow: bool = False, **wanted: str) -> Iterator[Document]:
        """Yield the decisions of the audit log (`client/decisions.py`); who follows waits for as long as it takes."""
        return decisions(self.socket_path, follow=follow, patience=None if follow else self.patience, wanted=wanted)

    def demand(self) -> Document:
        """Return which capacity was missing for tasks here and below; for root and the module's own user only."""
        return self._connection.ask("GET", "/v1/demand", patience=self.patience)

    def accounting(self) -> Document:
        """Return processor seconds by day (`usage`), of all users or the own ones, and by neighbor (`neighbors`)."""
        return self._connection.ask("GET", "/v1/accounting", patience=self.patience)

    def neighbors(self) -> list[Document]:
        """List the neighbors, with the state of the link (`linked`, `down`, `shut_off`) and why there is none."""
        return list(self._connection.ask("GET", "/v1/neighbors", patience=self.patience)["neighbors"])

    def removed(self) -> list[Document]:
        """List who was removed from the neighbors, since when, by whom (`people`, `consequence`), and why."""
        return list(self._connection.ask("GET", "/v1/neighbors", patience=self.patience).get("removed", ()))

    def reach(self) -> list[Document]:
        """Have each neighbor with a link dial the module, and return what they answer: `result`, `clock_ahead_ns`, ….

        Takes up to 15 s where nothing answers. Only root and the module's own user may do this.
        """
        seconds = _REACH_SECONDS
        answered = self._connection.ask_held("/v1/reach", payload=b"{}", held_seconds=seconds, patience=self.patience)
        return list(answered["neighbors"])

    def certificate(self) -> Document:
        """Describe the certificate that the module uses, and how many it knows to be revoked."""
        return self._connection.ask("GET", "/v1/certificate", patience=self.patience)

    def renew_certificate(self) -> Document:
        """Renew the certificate of the module, and describe it. Only root and the module's own user may do this."""
        return self._connection.ask("POST", "/v1/certificate/renew", patience=self.patience)

    def shut_off(self, neighbor: str, *, reason: str = "") -> None:
        """End everything with a neighbor and refuse it until it is readmitted; this is stored when it returns.

        The neighbor learns the code `shut_off`, not the reason. Only root and the module's own user may do this.
        """
        self._change_admission(neighbor, off=True, reason=reason)

    def readmit(self, neighbor: str, *, reason: str = "") -> None:
        """Allow a neighbor to be linked again that was shut off, or removed although the topology file lists it.

        Only root and the module's own user may do this.
        """
        self._change_admission(neighbor, off=False, reason=reason)

    def _change_admission(self, neighbor: str, **change: object) -> None:
        self._connection.ask("POST", "/v1/neighbors", body={"neighbor": neighbor, **change}, patience=self.patience)

    def make_join_token(
        self, *, role: str = "child", pattern: str = "*", expires_s: int = 3_600, address: str = ""
    ) -> Document:
        """Make a token with which one system whose name matches a pattern may join the module.

        It becomes its child or its sibling (`role`). Returns `{"token", "id", "expires_at", …}`; `token` is a secret
        line of text. `address` (host:port) is where the newcomer dials the module; empty: where it listens. Only root
        and the module's own user may do this, as all that concerns joining.
        """
        body = {"role": role, "pattern": pattern, "expires_s": expires_s, "address": address}
        return self._connection.ask("POST", "/v1/join/tokens", body=body, patience=self.patience)

    def joining(self) -> Document:
        """Return the tokens (`tokens`, without their secrets) and what waits for an administrator (`requests`)."""
        return self._connection.ask("GET", "/v1/join", patience=self.patience)

    def decide_join(self, name: str, *, approve: bool, text: str = "", certificate: str = "") -> Document:
        """Approve or deny the request that waits under a name, and return its token without the secret.

        The newcomer learns that when it asks again. `certificate` (PEM) is needed where the module has no root's key.
        """
        body = {"name": name, "approve": approve, "text": text, "certificate": certificate}
        return self._connection.ask("POST", "/v1/join/decide", body=body, patience=self.patience)

    def revoke_join_token(self, token: str) -> Document:
        """Let nobody use a token any more, named by its id or the beginning of it, and return `joining()`."""
        return self._connection.ask("POST", "/v1/join/revoke", body={"token": token}, patience=self.patience)

    def add_parent(self, token: str) -> Document:
        """Ask the module of a token to become another parent of this one.

        Returns `{"parent", "waits_for"}`; the request is repeated until nothing is waited for. Only root and the
        module's own user may do this.
        """
        return self._connection.ask("POST", "/v1/parents", body={"token": token}, patience=self.patience)

    def drain(
        self, *, is_on: bool = True, deadline_seconds: int | None = None, reason: str = "", begins: int | None = None
    ) -> Document:
        """Drain the module or end its drain, and return `drain_state()`; only root and the module's own user may.

        If it `begins` later, in seconds since 1970, it is announced, and the deadline counts from then.
        """
        later = {} if begins is None else {"begins": begins}
        body = {"on": is_on, "deadline_s": deadline_seconds, "reason": reason, **later}
        return self._connection.ask("POST", "/v1/drain", body=body, patience=self.patience)

    def drain_state(self) -> Document:
        """Return `{"name", "drain", "maintenance"}`; the last two may be None.

        `drain` has `since`, `deadline`, `reason`, `left`, `empty`, `own_tasks`; `maintenance` is an announced one.
        """
        return self._connection.ask("GET", "/v1/drain", patience=self.patience)

    def remove_neighbor(self, neighbor: str, *, at_once: bool = False, reason: str = "") -> None:
        """End the link with a neighbor for good, when its claims have ended or at once; it gets the reason.

        This is stored when it returns; `neighbors` lists it as `leaving`, and then no more. Only root and the module's
        own user may do this.
        """
        body = {"neighbor": neighbor, "now": at_once, "reason": reason}
        self._connection.ask("POST", "/v1/neighbors/remove", body=body, patience=self.patience)

    def leave(self, parent: str, *, reason: str = "") -> None:
        """End the link with a parent, as `remove_neighbor` does."""
        body = {"parent": parent, "reason": reason}
        self._connection.ask("POST", "/v1/neighbors/leave", body=body, patience=self.patience)

    def submit(self, submission: Submission) -> str:
        """Submit a task and return its id; it is stored when this returns."""
        return str(self._connection.ask("POST", "/v1/tasks", body=submission.document(), patience=self.patience)["id"])

    def plan(self, submission: Submission) -> Document:
        """Return what would become of a submission now (`TaskPlan`); nothing is submitted."""
        return self._connection.ask("POST", "/v1/plan", body=submission.document(), patience=self.patience)

    def knows_key(self, key: str, *, is_file: bool) -> bool:
        """Return whether a submit of this user with a key is stored, or a file of tasks."""
        path = f"/v1/keys?{urlencode({'key': key, 'file': int(is_file)})}"
        return bool(self._connection.ask("GET", path, patience=self.patience)["known"])

    def submit_workflow(self, parts: Sequence[Document], *, key: str) -> list[str]:
        """Submit several tasks and arrays, all or none, and return their ids; they are stored when this returns."""
        body = {"key": key, "submissions": parts}
        return list(self._connection.ask("POST", "/v1/workflows", body=body, patience=self.patience)["ids"])

    def tasks(self, *ids: str, members: bool = False, explained: bool = False, among: Among | None = None) -> Document:
        """Return `{"tasks": […], "unknown": [ids]}` for these ids, or for all tasks; `members` expands arrays.

        `explained` adds to tasks, and `among` leaves tasks out, as in `asked_states`.
        """
        return asked_states(
            self._connection, ids, members=members, explained=explained, among=among, patience=self.patience
        )

    def feed(
        self, task: str, content: bytes = b"", *, attempt: int = 0, offset: int = 0, is_end: bool = False
    ) -> Document:
        """Bring a piece of standard input, at most 256 KiB, which begins at an offset, for an attempt.

        Returns `{"attempt", "taken", "received", "closed", "ended", "problem", "refusal"}`: the present attempt (0:
        none yet), how many bytes it has taken, the offset of the byte that is expected next (None until the attempt
        runs), whether it takes no more, whether that is because it has ended, why it cannot get any, and why a module
        on the way takes none now. Nothing of the piece was taken if the attempt or the offset is another one, or if
        there was no room for seconds. With the end it returns once all is taken, at the latest after seconds.
        """
        asked = urlencode({"attempt": attempt, "offset": offset, "end": int(is_end)})
        return self._connection.ask_held(
            f"{_path(task)}/stdin?{asked}", payload=content, held_seconds=_POLL_SECONDS, patience=self.patience
        )

    def wait(self, task: str, *, timeout: float | None = None) -> Document:
        """Return the task's document when its state is final, or after `timeout` seconds in its current state."""
        poll = _POLL_SECONDS if timeout is None else timeout
        while True:
            path = f"{_path(task)}/wait?timeout={poll:g}"
            document = self._connection.ask_held(path, held_seconds=poll, patience=self.patience)
            if timeout is not None or is_final(document):
                return document

    def cancel(self, task: str) -> Document:
        """Request the end of a task, or of every member of an array; `wait` returns when it has ended.

        Returns `{"id", "cancelled", "members"}`: how many of how many tasks it ends. If all had ended before, also
        `has_ended` and their `states`, which stay as they are.
        """
        return self._connection.ask("POST", f"{_path(task)}/cancel", body={}, patience=self.patience)

    def retry(self, task: str, asked: Document) -> int:
        """Run a failed task, or the failed members of an array, again; return their number. Ids stay the same.

        Every end other than exit code 0 is a failure, including killed and denied tasks; `{"killed": True}` leaves
        those out that exited by themselves or were denied. `inputs` replace those with the same names.
        """
        return int(self._connection.ask("POST", f"{_path(task)}/retry", body=asked, patience=self.patience)["retried"])

    def clean(self, asked: Document) -> Document:
        """Forget ended tasks: `{"ids"}`, or a page of one's own that ended `older_than_s` ago, behind `after` (0)."""
        return self._connection.ask("POST", "/v1/clean", body=asked, patience=self.patience)

    def act_by_hand(self, task: str, act: str, *, reason: str = "") -> Document:
        """Act on a task or an array that has not ended: `revoke`, `move`, `hold` or `release` it.

        Returns `{"id", "at", "attempts"}`: whether that was done at its `origin` or, for root and the module's own user
        alone, at its `executor`, and its attempts that run: a revocation or a move ends them, a hold does not.
        """
        body = {"act": act, "reason": reason}
        return self._connection.ask("POST", f"{_path(task)}/by-hand", body=body, patience=self.patience)

    def missing_files(self, hashes: Sequence[str]) -> list[str]:
        """Return those SHA-256 hashes (in hexadecimal) whose content the module lacks."""
        body = {"sha256": list(hashes)}
        return list(self._connection.ask("POST", "/v1/files/missing", body=body, patience=self.patience)["missing"])

    def put_file(self, sha256: str, pieces: Callable[[], Iterable[bytes]], *, size_bytes: int) -> None:
        """Upload a content, whose hash the module checks; after an interruption, `pieces` is called again."""
        self._connection.put(f"/v1/files/{sha256}", pieces, size_bytes=size_bytes, patience=self.patience)

    def put_files(self, contents: Sequence[bytes]) -> list[str]:
        """Upload small files, together less than 8 MiB, in one request; return the hashes that the module computed."""
        body = b"".join(part for content in contents for part in (len(content).to_bytes(_LENGTH_BYTES), content))
        answer = self._connection.put("/v1/files", lambda: [body], size_bytes=len(body), patience=self.patience)
        return list(answer["sha256"])

    def outputs(self, task: str) -> list[Document]:
        """List the files that an ended task left behind: `{"name", "size", "executable"}` each."""
        return list(self.output_listing(task)["outputs"])

    def output_listing(self, task: str, *, part: str = "outputs") -> Document:
        """List what an ended task left (`outputs`) and had `declared`; `member-outputs` of an array: its `members`'."""
        return self._connection.ask("GET", f"{_path(task)}/{part}", patience=self.patience)

    def keep_outputs(self, task: str, names: Sequence[str]) -> dict[str, str]:
        """Let the module keep files that a task left as inputs of others; return their hashes by name."""
        path, body = f"{_path(task)}/outputs", {"names": list(names)}
        return dict(self._connection.ask("POST", path, body=body, patience=self.patience)["sha256"])

    def read_output(self, task: str, name: str, *, size_bytes: int) -> Generator[bytes, None, None]:
        """Yield an output piece by piece, through interruptions; finish it before reading the next one."""

        def path(offset: int) -> str:
            return f"{_path(task)}/outputs/{quote(name)}?offset={offset}"

        return read_on(self._reader, path, patience=self.patience, size_bytes=size_bytes)

    def logs(
        self, task: str, *, stream: str = "stdout", follow: bool = False, on_connection: OnConnection = untold
    ) -> Iterator[bytes]:
        """Yield what the task wrote, piece by piece; with `follow` until the task is final and everything was sent.

        After an interruption it continues at the same byte.
        """

        def path(offset: int) -> str:
            return f"{_path(task)}/logs?{urlencode({'stream': stream, 'offset': offset, 'follow': int(follow)})}"

        connection = Connection(self.socket_path)
        on_connection(connection)
        try:
            yield from read_on(connection, path, patience=self.patience)
        finally:
            connection.close()


def _path(task: str) -> str:
    return f"/v1/tasks/{quote(task, safe='')}"
