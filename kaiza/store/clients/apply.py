"""Carries out what was decided: all of it, or nothing of it where one part fails."""

from collections.abc import Sequence
from pathlib import Path

from kaiza.store.clients import config_files
from kaiza.store.clients.changes import ConfigChange
from kaiza.store.clients.errors import ConfigError
from kaiza.store.clients.install_manifest import InstallManifest


def apply_changes(changes: Sequence[ConfigChange], directories: Sequence[Path], away: Sequence[Path]) -> None:
    """Everything is done when this returns; OSError or ConfigFault, and everything as before, where something fails."""
    made: list[Path] = []
    begun: list[ConfigChange] = []
    try:
        for directory in (*directories, *(needed for change in changes for needed in change.directories)):
            if not directory.is_dir():
                directory.mkdir()
                made.append(directory)
        for change in changes:
            begun.append(change)
            config_files.replace(change.path, change.before, change.after)
    except (OSError, ConfigError):
        for change in reversed(begun):
            if config_files.read(change.path.parent, (change.path.name,)) == change.after:
                config_files.replace(change.path, change.after, change.before)
        remove_empty_directories(list(reversed(made)))
        raise
    remove_empty_directories(away)


def remove_empty_directories(directories: Sequence[Path]) -> None:
    """Those of the directories that are empty are gone when this returns."""
    for directory in directories:
        if directory.is_dir() and not directory.is_symlink() and not any(directory.iterdir()):
            directory.rmdir()


def removal_changes(memory: InstallManifest, owner: str, root: Path) -> list[ConfigChange]:
    """The files made for this owner that nobody has changed since."""
    found: list[ConfigChange] = []
    for path, done in memory.files.items():
        if done.owner == owner and Path(path).is_relative_to(root):
            parts = Path(path).relative_to(root).parts
            now = config_files.read(root, parts)
            if done.is_unchanged(now):
                found.append(ConfigChange(Path(path), "/".join(parts), owner, now, done.before, done.before))
    return found
