"""Diffs of one file's history: what is left in the end, and each call's own."""

from collections.abc import Iterator

from kaiza.domain.review.authorship import AuthoredVersion, compare_versions
from kaiza.domain.review.diff import WITHOUT_KAIZA, LineAuthor, ReviewDiff
from kaiza.domain.review.evidence import MAX_SHOWN_BYTES, CurrentFile, ReviewContents
from kaiza.domain.review.file_history import FileHistory, FileStep
from kaiza.domain.review.hunks import build_diff, fold_diff, is_binary, split_content


class FileDiffs:
    """Diffs of one file's history. Contents are read once."""

    def __init__(self, history: FileHistory, now: CurrentFile, contents: ReviewContents) -> None:
        self._history = history
        self._now = now
        self._contents = contents
        self._cache: dict[str, bytes | None] = {}
        self._is_hidden = any(map(contents.is_hidden, history.names))
        if now.hash is not None and now.content is not None:
            self._cache[now.hash] = now.content

    def net(self) -> tuple[ReviewDiff, tuple[int, int]]:
        """The net diff up to the file as it is now, and how many lines the selected calls added and removed of it."""
        first, now = self._read(self._history.first_hash), self._read(self._now.hash)
        if not self._now.is_readable:
            return fold_diff("unreadable"), (0, 0)
        if first is None or now is None:
            return self._fold_missing(), (0, 0)
        if is_binary(first) or is_binary(now):
            return fold_diff("binary"), (0, 0)
        authored = compare_versions(split_content(first), list(self._versions()))
        return build_diff(authored), authored.count_lines(selected_only=True)

    def of_step(self, step: FileStep) -> ReviewDiff:
        """One call's own diff."""
        before, after = self._read(step.before_hash), self._read(step.after_hash)
        if before is None or after is None:
            return self._fold_missing()
        if is_binary(before) or is_binary(after):
            return fold_diff("binary")
        return build_diff(compare_versions(split_content(before), [AuthoredVersion(split_content(after), step.author)]))

    def up_to(self, last: FileStep) -> tuple[bytes | None, bytes | None]:
        """Contents before the first step and after a later one; None for one that was not kept."""
        return self._read(self._history.first_hash), self._read(last.after_hash)

    def _fold_missing(self) -> ReviewDiff:
        if self._is_hidden:
            return fold_diff("unreadable")
        sizes = (self._now.size, *(step.size for step in self._history.steps))
        return fold_diff("oversized" if max(sizes) > MAX_SHOWN_BYTES else "not_kept")

    def _versions(self) -> Iterator[AuthoredVersion]:
        return (AuthoredVersion(self._lines(digest), author) for digest, author in self._list_versions())

    def _list_versions(self) -> list[tuple[str | None, LineAuthor]]:
        """Hash and author of each version after the first, without detours that ended at an earlier content.

        What an undo put back is then of its first author again, not of the undo.
        """
        versions: list[tuple[str | None, LineAuthor]] = [(self._history.first_hash, WITHOUT_KAIZA)]
        for step in self._history.steps:
            _add_version(versions, step.before_hash, WITHOUT_KAIZA)
            _add_version(versions, step.after_hash, step.author)
        _add_version(versions, self._now.hash, WITHOUT_KAIZA)
        return versions[1:]

    def _lines(self, digest: str | None) -> list[bytes] | None:
        content = self._read(digest)
        return None if content is None else split_content(content)

    def _read(self, digest: str | None) -> bytes | None:
        """Content by hash; empty where there is no file, None where it was not kept."""
        if digest is None:
            return b""
        if self._is_hidden:
            return None
        if digest not in self._cache:
            self._cache[digest] = self._contents.read_content(digest)
        return self._cache[digest]


def _add_version(versions: list[tuple[str | None, LineAuthor]], digest: str | None, author: LineAuthor) -> None:
    """Add a version, or go back to the earlier one with the same content."""
    earlier = next((at for at, (known, _) in enumerate(versions) if known == digest), None)
    if earlier is None:
        versions.append((digest, author))
    else:
        del versions[earlier + 1 :]
