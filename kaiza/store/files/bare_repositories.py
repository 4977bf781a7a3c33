"""Repositories of git under another name than `.git`, found by what is on disk."""

from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.repository_names import BARE_REPOSITORY, possible_bare_repositories
from kaiza.store.files.confined_root import ConfinedRoot


def is_in_bare_repository(files: ConfinedRoot, path: RelPath) -> bool:
    """Whether a directory above the path is a repository, and the path a part of it that may not be read."""
    return any(_is_repository(files, directory) for directory in possible_bare_repositories(path))


def _is_repository(files: ConfinedRoot, directory: RelPath) -> bool:
    try:
        return all(files.with_resolved(directory / name, lambda _: True, follow=False) for name in BARE_REPOSITORY)
    except OSError:
        return False
