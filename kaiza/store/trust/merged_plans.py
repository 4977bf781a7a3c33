"""Plans approved by merge: the plan's bytes are the blob at its path in a ref that a person trusts."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kaiza.domain import errors
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import APPROVED, MAX_BYTES
from kaiza.store import git
from kaiza.store.disk.byte_io import name_stamp
from kaiza.store.documents.plan_files import DIRECTORY, SUFFIX
from kaiza.store.trust.timed_cache import TimedCache
from kaiza.store.trust.trust_file import expand_ref, list_trusted_refs


@dataclass(frozen=True, slots=True)
class MergeStatus:
    """The trusted ref that contains a plan, or why none does; both None if no ref is trusted for the workspace."""

    ref: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class _RefLocation:
    """The workspace's place in the repository, and the files that change when the ref does."""

    prefix: str
    files: Sequence[str]


class _NotMergedError(Exception):
    """Why a plan is not merged."""


_locations: TimedCache[tuple[str, str], _RefLocation] = TimedCache()
_statuses: TimedCache[tuple[object, ...], MergeStatus] = TimedCache()


def find_merge(root: str, state_path: Path, stored: StoredPlan) -> MergeStatus:
    """Whether a plan is merged into a trusted ref. Starts git, so it is not called under the log's lock."""
    plan = stored.parsed.plan
    if plan is None or plan.status != APPROVED:
        return MergeStatus()
    try:
        names = [ref.name for ref in list_trusted_refs(root, state_path)]
    except errors.SystemError as error:
        return MergeStatus(problem=error.human_message)
    statuses = [_find_in_ref(root, name, stored) for name in names]
    return next((status for status in statuses if status.ref), statuses[0] if statuses else MergeStatus())


def check_ref(root: str, name: str) -> str | None:
    """Why no plan can be merged into a ref; None if it names a commit. Starts git."""
    try:
        _resolve_commit(root, expand_ref(name))
    except (_NotMergedError, ValueError) as problem:
        return str(problem)
    return None


def find_default_branch(root: str) -> str | None:
    """The remote-tracking branch behind `origin/HEAD`; None if there is none. Starts git."""
    result = git.run(root, "rev-parse", "--verify", "--quiet", "--symbolic-full-name", "refs/remotes/origin/HEAD")
    name = result.stdout.decode("utf-8", "replace").strip() if result and result.returncode == 0 else ""
    return name if name.startswith("refs/remotes/origin/") and name != "refs/remotes/origin/HEAD" else None


def _find_in_ref(root: str, name: str, stored: StoredPlan) -> MergeStatus:
    try:
        ref = expand_ref(name)
        location = _locations.get((root, ref), lambda: _locate_ref(root, ref))
        key = (root, ref, stored.plan_id, stored.parsed.plan_hash, *map(name_stamp, location.files))
        return _statuses.get(key, lambda: _compare(root, ref, location, stored))
    except (_NotMergedError, ValueError) as problem:
        return MergeStatus(problem=str(problem))


def _locate_ref(root: str, ref: str) -> _RefLocation:
    # A ref is a file of its own, a line of packed-refs, or in the tables of a reftable.
    names = (ref, "packed-refs", "reftable/tables.list")
    output = _ask_git(root, "rev-parse", "--show-prefix", *(word for name in names for word in ("--git-path", name)))
    lines = os.fsdecode(output or b"").split("\n")
    if len(lines) != len(names) + 2:
        raise _NotMergedError("the workspace is not in a git repository, or git cannot read it")
    return _RefLocation(lines[0], [os.path.join(root, path) for path in lines[1:-1]])  # noqa: PTH118  may be absolute


def _compare(root: str, ref: str, location: _RefLocation, stored: StoredPlan) -> MergeStatus:
    try:
        commit = _resolve_commit(root, ref)
        merged = _read_blob(root, f"{commit}:{location.prefix}{DIRECTORY}/{stored.plan_id}{SUFFIX}")
    except _NotMergedError as problem:
        return MergeStatus(problem=str(problem))
    if merged is None:
        return MergeStatus(problem=f"{ref} does not contain the plan")
    # A checkout may have changed the ends of lines, and nothing else.
    if merged not in {stored.content, stored.content.replace(b"\r\n", b"\n")}:
        return MergeStatus(problem=f"{ref} contains the plan with another text")
    return MergeStatus(ref=ref)


def _resolve_commit(root: str, ref: str) -> str:
    # `rev-parse` alone would look further, for a tag or a branch of this whole name, and anyone can push one.
    found = _ask_git(root, "show-ref", "--verify", "--hash", ref)
    output = (
        _ask_git(root, "rev-parse", "--verify", "--quiet", f"{found.decode().strip()}^{{commit}}") if found else None
    )
    if not output:
        raise _NotMergedError(f"git does not resolve {ref} to a commit")
    return output.decode().strip()


def _read_blob(root: str, name: str) -> bytes | None:
    """The content of a blob; None if there is none of that name, or none of a plan's size."""
    answer = _ask_git(root, "cat-file", "--batch-check", stdin=os.fsencode(name) + b"\n") or b""
    words = answer.split()
    if len(words) != 3 or words[1] != b"blob" or int(words[2]) > MAX_BYTES:  # noqa: PLR2004  id, type, size
        return None
    return _ask_git(root, "cat-file", "blob", words[0].decode())


def _ask_git(root: str, command: str, *arguments: str, stdin: bytes = b"") -> bytes | None:
    """What git prints; None if it reports an error."""
    result = git.run(root, command, *arguments, stdin=stdin)
    if result is None:
        raise _NotMergedError("git is not installed, or did not answer in time")
    return result.stdout if result.returncode == 0 else None
