"""Contents for a review: from the blob store by hash, and the files as they are now."""

import re
from hashlib import sha256

from kaiza.domain import errors
from kaiza.domain.paths.protected_names import is_control_plane
from kaiza.domain.paths.rel_path import RelPath, parse
from kaiza.domain.review.evidence import MAX_SHOWN_BYTES, CurrentFile
from kaiza.store import git
from kaiza.store.workspace import Workspace

MAX_GIT_CALLS = 100
"""Files whose earlier content is looked for in git in one review."""
_DIGEST = re.compile("[0-9a-f]{64}")
_UNREADABLE = CurrentFile(is_readable=False)


class WorkspaceContents:
    """Contents of one workspace. Files that may not be read are not: a report may be passed on."""

    def __init__(self, workspace: Workspace, max_bytes: int = MAX_SHOWN_BYTES) -> None:
        self._workspace = workspace
        self._max_bytes = max_bytes
        self._git_calls = 0
        self._current: dict[str, CurrentFile] = {}

    def read_content(self, digest: str) -> bytes | None:
        """The stored content with this hash; None if it was not kept, is damaged or is too large to show."""
        # Nothing that came with a clone is evidence of what was written here.
        if self._workspace.binding.is_foreign or not _DIGEST.fullmatch(digest):
            return None
        try:
            return b"".join(self._workspace.blobs.chunks(digest, self._max_bytes))
        except errors.SystemError:
            return None

    def read_earlier(self, path: str, digest: str) -> bytes | None:
        """The same; if it was not kept, git's committed content of the path, where it has this hash."""
        content = self.read_content(digest)
        if content is not None or self._workspace.binding.is_foreign or self._git_calls >= MAX_GIT_CALLS:
            return content
        self._git_calls += 1
        root, name = self._workspace.root, f"HEAD:./{path}"
        size = git.run(root, "cat-file", "-s", name)
        if size is None or size.returncode or int(size.stdout) > self._max_bytes:
            return None
        found = git.run(root, "cat-file", "blob", name)
        if found is None or found.returncode or sha256(found.stdout).hexdigest() != digest:
            return None
        return found.stdout

    def is_hidden(self, path: str) -> bool:
        """Whether the path may not be read now, even if it could be when the content was stored."""
        try:
            parsed = parse(path)
        except errors.SystemError:
            return True
        return self._workspace.is_unreadable(parsed) or is_control_plane(parsed)

    def read_current(self, path: str) -> CurrentFile:
        """The file as it is now."""
        if path not in self._current:
            self._current[path] = self._read_file(path)
        return self._current[path]

    def _read_file(self, path: str) -> CurrentFile:
        # The log may have come with a clone: its paths must not lead to what may not be read.
        try:
            parsed = parse(path)
            if is_control_plane(parsed):
                return _UNREADABLE
            with self._workspace.files.open_file(parsed, lambda real: self._require_readable(parsed, real)) as file:
                if self._workspace.is_linked_secret(parsed, file.status):
                    return _UNREADABLE
                digest, chunks = sha256(), []
                for chunk in file.chunks():
                    digest.update(chunk)
                    if file.size <= self._max_bytes:
                        chunks.append(chunk)
                content = b"".join(chunks) if file.size <= self._max_bytes else None
                return CurrentFile(digest.hexdigest(), file.mode, content, file.size)
        except errors.SystemError as error:
            return CurrentFile() if error.error_code == "FILE_NOT_FOUND" else _UNREADABLE

    def _require_readable(self, path: RelPath, real: RelPath) -> None:
        # Changes do not follow links: one in a recorded path was put there later, and leads to another file.
        if real != path or self._workspace.is_unreadable(real) or is_control_plane(real):
            raise errors.SystemError.tool_failure("FILE_READ_FAILED")
