"""Plans that git has, and approvals that came with it instead of by an edit on this machine.

Looked for in HEAD, in the index with every stage of an unmerged path, and in the history of one file. An editor, a
formatter or a person who resolves a conflict makes bytes that git never had, so a plan that git brought is recognised
by its id, and not by its bytes or path.
"""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from kaiza.domain.plans.parser import parse
from kaiza.domain.plans.plan import APPROVED, MAX_BYTES
from kaiza.store import git
from kaiza.store.disk.git_directory import is_in_operation, is_index_locked, is_under_other_system
from kaiza.store.documents.plan_files import DIRECTORY, SUFFIX
from kaiza.store.trust.git_origin import find_repositories

GIT, OTHER_SYSTEM, IN_PROGRESS, BOUND = "git", "other_vcs", "in_progress", "bound"
LOCKED = "locked"
"""Nothing is known until git has written its index."""

_MAX_FILES = 1000
_MAX_IDS = 200
_MAX_TIPS = 200
_MAX_OTHERS = 4000
"""Files that are looked for in all tips together."""
_OWN_TREES = (b"HEAD", b"ORIG_HEAD", b"FETCH_HEAD")
_ERROR = re.compile(rb"(?m)^(error|fatal):")
_STAGE = re.compile(rb"[0-7]+ ([0-9a-f]+) [1-3]\t(.*)", re.DOTALL)
_SIZE = re.compile(rb"[0-9a-f]+ blob ([0-9]+)")
_MARKS = b"\xef\xbb\xbf\xfe\xff \t\r\n"
"""What may precede the front matter: marks of an encoding, blanks."""
_APPROVED = re.compile(APPROVED.encode() + rb"|(?i:status[^\n]{0,200}approved(?!_))")
_HEAD = re.compile(rb"---.*?[\r\n]---", re.DOTALL)
_ESCAPE = re.compile(rb"\\[xuU\r\n]")
"""What a quoted YAML text may contain in place of a letter of an id or a status."""
_Names = Mapping[bytes, frozenset[str]]
"""Names of blobs, each with the plans whose own file it is."""


class _NoAnswerError(Exception):
    """Git did not answer, or there is more than can be looked at."""


def trace_approvals(root: str, plan_ids: Collection[str]) -> Mapping[str, str]:
    """How those of the plans came to say APPROVED that no edit here can have approved. May start git."""
    if not plan_ids:
        return {}
    if is_under_other_system(os.path.join(root, str(DIRECTORY))):  # noqa: PTH118  as text
        return dict.fromkeys(plan_ids, OTHER_SYSTEM)
    repositories = find_repositories(root, str(DIRECTORY))
    if any(is_in_operation(top) for top, _ in repositories):
        return dict.fromkeys(plan_ids, IN_PROGRESS)
    if any(is_index_locked(top) for top, _ in repositories):
        return dict.fromkeys(plan_ids, LOCKED)
    found = (find_approved(top, directory, plan_ids) for top, directory in repositories)
    return dict.fromkeys((plan_id for each in found for plan_id in each), GIT)


def is_taken_back(root: str, plan_id: str, objects: Collection[str]) -> bool:
    """Whether a draft that git has takes back an approval with these objects.

    It does if a commit that HEAD contains had the approval as the plan's file. It also does if no repository has the
    approval at all: then nothing was switched or stashed, an edit was discarded.
    """
    repositories = [
        (top, os.path.normpath(os.path.join(prefix, plan_id + SUFFIX)))  # noqa: PTH118  as git names it
        for top, prefix in find_repositories(root, str(DIRECTORY))
    ]
    return any(has_in_history(top, path, objects) for top, path in repositories) or (
        bool(objects) and not any(has_object(top, objects) for top, _ in repositories)
    )


def find_approved(top: str, directory: str, plan_ids: Collection[str]) -> frozenset[str]:
    """Those of the plans that say APPROVED in HEAD or in the index, at any path; all of them if git does not answer.

    `directory` is that of the plans, below `top`: there a file is a plan's own, in whatever form, also on branches.
    """
    wanted = frozenset(plan_ids)
    if len(wanted) > _MAX_IDS:
        return wanted
    try:
        owners = {os.fsencode(os.path.normpath(f"{directory}/{plan_id}{SUFFIX}")): plan_id for plan_id in wanted}
        names = dict.fromkeys(_find_candidates(top, wanted), frozenset[str]())
        # The newest commits that branches, tags and the stash name: a person may have taken a file from one of them.
        limit = min(_MAX_TIPS, _MAX_OTHERS // max(1, len(wanted)))
        tips = _ask_git(top, "rev-list", "--no-walk", "--all", f"--max-count={limit}").split()
        for tree in (b":0", *_OWN_TREES, *tips):
            names |= {tree + b":" + path: frozenset({plan_id}) for path, plan_id in owners.items()}
        for name, path in _find_stages(top):
            names[name] = names.get(name, frozenset()) | ({owners[path]} if path in owners else frozenset())
        return frozenset(
            plan_id for content, own in _read_blobs(top, names) for plan_id in _approved_ids(content, wanted, own)
        )
    except _NoAnswerError:
        return wanted


def has_in_history(top: str, path: str, objects: Collection[str]) -> bool:
    """Whether HEAD's history of a file has one of these objects; also if git does not answer."""
    if not objects:
        return False
    result = git.run(
        top, "rev-list", "--objects", "--no-object-names", "--full-history", "HEAD", "--", f":(literal){path}"
    )
    if result is None or result.returncode != 0:
        return not _is_unborn(top)
    return not set(result.stdout.decode("ascii", "replace").split()).isdisjoint(objects)


def has_object(top: str, objects: Collection[str]) -> bool:
    """Whether a repository has one of these objects; not if git does not answer."""
    try:
        answer = _ask_objects(top, "--batch-check", map(str.encode, objects))
    except _NoAnswerError:
        return False
    return any(not line.endswith(b" missing") for line in answer.splitlines())


def _find_candidates(top: str, plan_ids: Collection[str]) -> Iterator[bytes]:
    """Names of the blobs of HEAD and the index that may be one of the plans."""
    # The id may be written with escapes, which have a backslash.
    patterns = ("-E", "--all-match", "-e", "kaiza_plan", "-e", "|".join(["\\\\", *sorted(plan_ids)]))
    trees = [("--cached",)] if _is_unborn(top) else [("--cached",), ("HEAD",)]
    for tree in trees:
        options, revision = ((), tree) if tree == ("HEAD",) else (tree, ())
        result = git.run(top, "grep", *options, *patterns, *revision, "--")
        # 1: nothing was found. An error about a single file is written, but not reported by the status.
        if result is None or result.returncode not in (0, 1) or _ERROR.search(result.stderr):
            raise _NoAnswerError
        names = result.stdout.split(b"\0")[:-1]
        if len(names) > _MAX_FILES:
            raise _NoAnswerError
        yield from (name if revision else b":0:" + name for name in names)


def _find_stages(top: str) -> list[tuple[bytes, bytes]]:
    """Objects and names of the unmerged paths, which `grep` passes over."""
    lines = _ask_git(top, "ls-files", "--unmerged").split(b"\0")
    if len(lines) > _MAX_FILES + 1:
        raise _NoAnswerError
    return [(match[1], match[2]) for line in lines if (match := _STAGE.match(line))]


def _read_blobs(top: str, names: _Names) -> Iterator[tuple[bytes | None, frozenset[str]]]:
    """Contents of the blobs, None for a larger one than a plan may be; each with the plans whose file it is."""
    if any(b"\n" in name for name in names):
        raise _NoAnswerError
    sizes = _ask_objects(top, "--batch-check", names).split(b"\n")[:-1]
    if len(sizes) != len(names):
        raise _NoAnswerError
    owners: dict[bytes, frozenset[str]] = {}
    for line, own in zip(sizes, names.values(), strict=True):
        match = _SIZE.fullmatch(line)
        if match and int(match[1]) > MAX_BYTES:
            yield None, own
        elif match:
            name = line.split()[0]
            owners[name] = owners.get(name, frozenset()) | own
    answer, position = _ask_objects(top, "--batch", owners) if owners else b"", 0
    while position < len(answer):
        head, _, _ = answer[position : position + 200].partition(b"\n")
        match = _SIZE.fullmatch(head)
        if match is None:
            raise _NoAnswerError
        start = position + len(head) + 1
        position = start + int(match[1]) + 1
        yield answer[start : position - 1], owners[head.split()[0]]


def _ask_objects(top: str, option: str, names: Iterable[bytes]) -> bytes:
    return _ask_git(top, "cat-file", option, stdin=b"".join(name + b"\n" for name in names))


def _ask_git(top: str, *command: str, stdin: bytes = b"") -> bytes:
    result = git.run(top, *command, stdin=stdin)
    if result is None or result.returncode != 0:
        raise _NoAnswerError
    return result.stdout


def _approved_ids(content: bytes | None, plan_ids: frozenset[str], own: frozenset[str]) -> Collection[str]:
    """Ids of the plans that this content approves, or would once its form is mended."""
    if content is None:
        return own
    plan = parse(content).plan
    if plan is not None:
        return plan_ids & {plan.plan_id} if plan.status == APPROVED else ()
    text = content.replace(b"\0", b"").lstrip(_MARKS)  # letters of UTF-16 have a NUL each
    head = _HEAD.match(text)
    is_escaped = bool(_ESCAPE.search(head[0] if head else text))
    if not is_escaped and not _APPROVED.search(text):
        return ()
    if not text.startswith((b"---", b"%", b"<<<<<<<")):
        return own  # elsewhere it is a text about plans
    return plan_ids if is_escaped else own | {plan_id for plan_id in plan_ids if os.fsencode(plan_id) in text}


def _is_unborn(top: str) -> bool:
    """Whether the branch has no commit yet."""
    result = git.run(top, "rev-parse", "--verify", "--quiet", "HEAD")
    return result is not None and result.returncode == 1 and not result.stdout
