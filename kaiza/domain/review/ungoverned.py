"""Changes without Kaiza: those that the manifest shows, and those over files that Kaiza wrote."""

from collections.abc import Container, Iterable, Iterator, Sequence

from kaiza.domain import errors
from kaiza.domain.manifest.report import OutsideChange
from kaiza.domain.paths import rel_path
from kaiza.domain.plans import scope
from kaiza.domain.plans.plan import Plan
from kaiza.domain.review.authorship import WITHOUT_KAIZA, AuthoredVersion, compare_versions
from kaiza.domain.review.diff import ReviewDiff, build_diff, fold_diff, is_binary, split_content
from kaiza.domain.review.evidence import CurrentFile, ReviewContents, UngovernedEvidence
from kaiza.domain.review.files import FileHistory
from kaiza.domain.review.report import MAX_UNGOVERNED, UngovernedChange, UngovernedFile, UngovernedReview


def review_ungoverned(
    found: UngovernedEvidence | None,
    histories: Sequence[FileHistory],
    plans: Sequence[Plan],
    contents: ReviewContents,
) -> UngovernedReview:
    """Every file that changed without Kaiza, those over its own files first."""
    written = {history.path: history for history in histories}
    items = {item.path: item for item in found.items} if found else {}
    renamed = {item.source for item in items.values() if item.change == "renamed"}
    files: dict[str, UngovernedFile] = {}
    for change in (change for history in histories for change in _changes_over(history, contents, plans)):
        # The manifest may know more than that the content differs: another kind of file, or where it went.
        item = items.get(change.path)
        is_told_better = item is not None and item.change in ("kind", "renamed")
        if not (change.path in renamed if change.change == "deleted" else is_told_better):
            files[change.path] = change
    for item in items.values():
        if item.path not in files:
            files[item.path] = _review_item(item, written, plans, contents)
    listed = sorted(files.values(), key=lambda file: (not file.is_over_governed, not file.is_in_scope, file.path))
    if found is None:
        return UngovernedReview(count=len(files), files=tuple(listed[:MAX_UNGOVERNED]))
    return UngovernedReview(
        manifest="whole" if found.manifest == "whole" else "partial",
        not_covered=found.not_covered,
        compared=found.compared,
        compared_since=found.compared_since,
        count=max(found.count, len(files)),
        files=tuple(listed[:MAX_UNGOVERNED]),
    )


def _changes_over(history: FileHistory, contents: ReviewContents, plans: Sequence[Plan]) -> Iterator[UngovernedFile]:
    """The change that something else made after the last recorded one, or between two of them."""
    last, now, gap = history.steps[-1], contents.read_current(history.path), history.find_gap()
    change: UngovernedChange = "modified"
    if now.is_readable and now.hash != last.after_hash:
        change = "deleted" if now.hash is None else "modified" if last.after_hash else "created"
        diff = _diff_contents(_read(contents, last.after_hash), now.content if now.hash else b"")
        note = f"After call {last.seq}, on top of what Kaiza left."
    elif gap is not None:
        earlier, later = gap
        diff = _diff_contents(_read(contents, earlier.after_hash), _read(contents, later.before_hash))
        note = f"Between call {earlier.seq} and call {later.seq}."
    else:
        return
    if any(map(contents.is_hidden, history.names)):
        diff = fold_diff("unreadable")
    in_scope = _is_in_scope(history.path, change, plans)
    yield UngovernedFile(history.path, change, None, in_scope, is_over_governed=True, note=note, diff=diff)


def _review_item(
    item: OutsideChange, written: Container[str | None], plans: Sequence[Plan], contents: ReviewContents
) -> UngovernedFile:
    now = CurrentFile() if item.change == "deleted" else contents.read_current(item.path)
    old = b"" if item.change == "created" else None
    if old is None and item.before is not None and item.before.hash:
        old = contents.read_earlier(item.source or item.path, item.before.hash)
    new = None if not now.is_readable else now.content if now.hash is not None else b""
    in_scope = _is_in_scope(item.path, item.change, plans)
    note = "Inside the plan's scope, not made by Kaiza." if in_scope else "No call touched this file."
    is_over = item.path in written or item.source in written
    if is_over:
        note = "Kaiza changed this file, too."
    if item.is_overwritten:
        note += " A later call replaced it."
    if item.is_ignored:
        note += " `.gitignore` excludes it, so only its size and times were compared."
    is_hidden = any(map(contents.is_hidden, filter(None, (item.path, item.source))))
    diff = fold_diff("unreadable") if is_hidden else _diff_contents(old, new)
    return UngovernedFile(item.path, item.change, item.source, in_scope, is_over, note, diff)


def _diff_contents(old: bytes | None, new: bytes | None) -> ReviewDiff:
    """Diff of two contents where the change happened without Kaiza; folded if one of them is not known."""
    if old is None or new is None:
        return fold_diff("not_kept")
    if is_binary(old) or is_binary(new):
        return fold_diff("binary")
    return build_diff(compare_versions(split_content(old), [AuthoredVersion(split_content(new), WITHOUT_KAIZA)]))


def _read(contents: ReviewContents, digest: str | None) -> bytes | None:
    return b"" if digest is None else contents.read_content(digest)


def _is_in_scope(path: str, change: UngovernedChange, plans: Iterable[Plan]) -> bool:
    """Whether a plan of the report would have allowed the change."""
    try:
        parsed = rel_path.parse(path)
    except errors.SystemError:
        return False
    operation = {"created": scope.CREATE, "deleted": scope.DELETE}.get(change, scope.MODIFY)
    return any(scope.is_allowed(plan.scope, scope.RequestedOperation(operation, parsed)) for plan in plans)
