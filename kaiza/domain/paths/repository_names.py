"""Names of version control: its directories, and the few files in them that hold nothing but names of commits.

What was ever committed or added is in a repository's objects, so they are as secret as all files that it ever had.
"""

from collections.abc import Collection, Iterator

from kaiza.domain.paths.confusables import skeleton
from kaiza.domain.paths.rel_path import RelPath

REPOSITORY_DIRECTORIES = frozenset({".git", ".hg", ".jj", ".svn", ".bzr", ".pijul", ".sl", "_darcs"})
"""In a worktree or a submodule `.git` is a file, which is no more readable."""
READABLE_FILES = frozenset({"HEAD", "packed-refs"})
READABLE_DIRECTORY = "refs"
BARE_REPOSITORY = frozenset({"HEAD", "objects", "refs"})
"""Without one of these git takes no directory for a repository."""
_BARE_ENTRIES = frozenset(
    {
        *("addp-hunk-edit.diff", "annex", "commit_editmsg", "config", "config.worktree", "fetch_head", "hooks"),
        *("index", "info", "lfs", "logs", "lost-found", "merge_msg", "modules", "objects", "rebase-apply"),
        *("rebase-merge", "reftable", "rr-cache", "sequencer", "squash_msg", "svn", "tag_editmsg", "worktrees"),
    }
)
"""Entries of a repository that may hold contents or credentials. Others may be work trees."""


def is_repository_directory(name: str) -> bool:
    """Whether this is a name of version control's own directory."""
    return skeleton(name) in REPOSITORY_DIRECTORIES


def is_in_repository(path: RelPath) -> bool:
    """Whether the path is version control's own: its directory or in it, but for HEAD and refs of git."""
    # Folding can produce a slash, for example from U+FF0F.
    owned = [not REPOSITORY_DIRECTORIES.isdisjoint(skeleton(part).split("/")) for part in path.parts]
    if True not in owned:
        return False
    depth = owned.index(True)
    rest = path.parts[depth + 1 :]
    is_readable = rest[:1] == (READABLE_DIRECTORY,) or (len(rest) == 1 and rest[0] in READABLE_FILES)
    return path.parts[depth] != ".git" or True in owned[depth + 1 :] or not is_readable


def is_bare_repository(names: Collection[str]) -> bool:
    """Whether a directory with these names is a repository under another name."""
    return BARE_REPOSITORY.issubset(names)


def is_bare_entry(name: str) -> bool:
    """Whether an entry of a bare repository is as secret as `.git`."""
    return skeleton(name) in _BARE_ENTRIES


def possible_bare_repositories(path: RelPath) -> Iterator[RelPath]:
    """Directories in which the path could not be read if they were bare repositories."""
    for depth, part in enumerate(path.parts):
        if is_bare_entry(part):
            yield RelPath(path.parts[:depth])
