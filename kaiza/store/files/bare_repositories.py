"""Whether a path is in a repository, also in one of git under another name, which is found by what is on disk."""

from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.repository_names import BARE_REPOSITORY, is_in_repository, possible_bare_repositories
from kaiza.store.files.confined_root import ConfinedRoot


def is_in_any_repository(files: ConfinedRoot, path: RelPath) -> bool:
    """Whether the path is a part of a repository that may not be read, whatever the repository is called."""
    return is_in_repository(path) or any(
        _is_repository(files, directory) for directory in possible_bare_repositories(path)
    )


def _is_repository(files: ConfinedRoot, directory: RelPath) -> bool:
    try:
        return all(files.with_resolved(directory / name, lambda _: True, follow=False) for name in BARE_REPOSITORY)
    except OSError:
        return False
