"""An in-toto Statement about what a session, or a plan's sessions, changed; `kaiza attest` prints it.

The same log gives the same statement. The caller checks that the log is intact: of another log nothing may be believed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import kaiza
from kaiza.domain.audit.inverse_changes import is_undo, net_changes, took_effect
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import Record, is_well_formed
from kaiza.domain.audit.undone_changes import undone_paths
from kaiza.domain.refusal import UndeterminedError
from kaiza.render.terminal import escape
from kaiza.store import git
from kaiza.store.trust import ssh_keygen

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:kaiza:predicate:changes:v1"
NAMESPACE = "kaiza-attestation"
"""What an SSH signature of a statement is for."""
MAX_COMPARED_FILES = 500
"""Files that are compared with the commit; with more, it is not said whether the commit holds them."""


@dataclass(slots=True)
class AttestedRecords:
    """The records of a session or of a plan, and every change in the log, which may have undone theirs."""

    member: str
    """`session_id` or `plan_id`."""
    value: str
    count: int = 0
    first: Record | None = None
    last: Record | None = None
    begin: Record | None = None
    end: Record | None = None
    changed: list[Record] = field(default_factory=list)
    announced: list[Record] = field(default_factory=list)
    """Intents of the attested calls."""
    policies: set[tuple[str, str]] = field(default_factory=set)

    def add(self, record: Record) -> None:
        """Take in the next record of the log."""
        if took_effect(record):
            self.changed.append(record)
        if record.members.get(self.member) != self.value:
            return
        if record.kind == "intent" and is_well_formed(record):
            self.announced.append(record)
        self.count, self.first, self.last = self.count + 1, self.first or record, record
        if record.outcome == "ok" and self.member == "session_id":
            self.begin = record if record.tool_name == "begin_session" else self.begin
            self.end = record if record.tool_name == "end_session" else self.end
        if took_effect(record) and record.plan_id and record.plan_hash:
            self.policies.add((record.plan_id, record.plan_hash))

    def net_result(self) -> list[dict[str, Any]]:
        """What is left of the changes: one row a path, without what was undone."""
        undone = undone_paths(self.changed)
        left = []
        for record in self.changed:
            if record.members[self.member] != self.value or is_undo(record):
                continue
            for change in record.changes:
                if (record.request_id, change["path"]) not in undone:
                    # A plain move may leave out the hash of its result.
                    is_plain_move = change["source"] is not None and change["after_hash"] is None
                    left.append({**change, "after_hash": change["before_hash"]} if is_plain_move else change)
        return net_changes(left)


def collect_records(records: Iterable[Record], member: str, value: str) -> AttestedRecords:
    """The records of a session or of a plan, from one pass over the log."""
    attested = AttestedRecords(member, value)
    for record in records:
        attested.add(record)
    return attested


def build_statement(attested: AttestedRecords, state: AuditState, root: str) -> dict[str, Any]:
    """The statement. Its subjects are the files that were left, and the commit if that has exactly them."""
    result = attested.net_result()
    subjects = [{"name": row["path"], "digest": {"sha256": row["after_hash"]}} for row in result if "after_hash" in row]
    commit = _describe_commit(root, result)
    if commit is not None and commit["holds"]:
        subjects.append({"name": "git", "digest": {"gitCommit": commit["commit"]}})
    return {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "producer": {"name": "kaiza", "version": kaiza.__version__},
            "session": _describe_session(attested),
            "plan": attested.value if attested.member == "plan_id" else None,
            "policy": [_describe_policy(state, *each) for each in sorted(attested.policies)],
            "changes": result,
            "audit": {
                "first": _place_of(attested.first),
                "last": _place_of(attested.last),
                "count": attested.count,
            },
            "git": commit,
        },
    }


def sign_statement(root: str, key: Path, content: bytes) -> bytes:
    """The SSH signature of an encoded statement. Undetermined if ssh-keygen refuses."""
    try:
        return ssh_keygen.sign_text(root, key, NAMESPACE, content)
    except ssh_keygen.SshKeygenError as problem:
        raise UndeterminedError(f"{escape(str(problem))}. Nothing was attested.") from problem


def _describe_session(attested: AttestedRecords) -> dict[str, Any] | None:
    begin, end = attested.begin, attested.end
    if begin is None:
        return None
    return {
        "session_id": begin.session_id,
        "role": begin.role,
        "client": begin.client,
        "principal": begin.principal,
        "begun_at": begin.timestamp,
        "ended_at": end.timestamp if end else None,
    }


def _describe_policy(state: AuditState, plan_id: str, plan_hash: str) -> dict[str, Any]:
    """A plan by the hash that was in force, and its approval as far as that is known."""
    seal = state.seals.get(plan_id)
    known = seal if seal is not None and seal.plan_hash == plan_hash else None
    by, how = (known.approved_by, known.how) if known else (None, None)
    return {"plan_id": plan_id, "digest": {"sha256": plan_hash}, "approved_by": by, "how": how}


def _place_of(record: Record | None) -> dict[str, Any] | None:
    return {"seq": record.seq, "entry_hash": record.entry_hash} if record is not None else None


def _describe_commit(root: str, result: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The commit of the checkout, and whether it has exactly these files; null if they are too many to say."""
    head = git.read_head(root)
    if head is None:
        return None
    holds = None if len(result) > MAX_COMPARED_FILES else all(_compare_files(root, head["commit"], result))
    return {"commit": head["commit"], "branch": head.get("branch"), "holds": holds and bool(result)}


def _compare_files(root: str, commit: str, result: list[dict[str, Any]]) -> Iterator[bool]:
    for row in result:
        # `./`: the workspace may be a directory of the repository.
        found = git.run(root, "cat-file", "blob", f"{commit}:./{row['path']}")
        content = found.stdout if found is not None and found.returncode == 0 else None
        yield (sha256(content).hexdigest() if content is not None else None) == row.get("after_hash")
