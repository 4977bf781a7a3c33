"""Find and open the workspace that a person means."""

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kaiza.clock import current_timestamp
from kaiza.domain.caps import Caps
from kaiza.domain.refusal import RefusedError, UndeterminedError
from kaiza.render.terminal import escape
from kaiza.store import git, human_decisions
from kaiza.store.config import roots
from kaiza.store.config.roots import find_nearest
from kaiza.store.config.settings import Settings
from kaiza.store.disk import state_dir
from kaiza.store.git import trusted_path
from kaiza.store.trust.binding import Standing, read_binding
from kaiza.store.workspace import Workspace

__all__ = [
    "Progress",
    "Workspace",
    "find_above",
    "find_bound_above",
    "find_nearest",
    "find_nearest_root",
    "find_person_name",
    "find_root",
    "is_foreign",
    "open_root",
    "require_adopted",
    "require_sound_log",
    "require_utf8",
    "trusted_path",
    "verify_whole_log",
]

Progress = Callable[[int, int], None]
_POLL_SECONDS = 0.1
_GIT_SECONDS = 5


def find_root(directory: str) -> str:
    """The real path of the workspace that a person named."""
    root = Path(directory).resolve()
    if not root.is_dir():
        raise UndeterminedError(f"There is no directory {escape(directory)}. Name the workspace with --workspace DIR.")
    return require_utf8(str(root))


def find_nearest_root() -> str:
    """The real path of the workspace that the current directory is in."""
    root = find_nearest(".")
    if root is None:
        raise UndeterminedError(
            "This is not a Kaiza workspace: neither this directory nor one above it has plans/ and audit/. "
            "Go to a workspace, name one with --workspace DIR, or create one with `kaiza init`."
        )
    return require_utf8(root)


def require_utf8(root: str) -> str:
    """The path of a workspace; refused if no record could hold it."""
    if not roots.is_utf8(root):
        raise UndeterminedError(roots.NOT_UTF8)
    return root


def find_bound_above(root: str) -> str | None:
    """The nearest workspace above that belongs to this machine; None if there is none or `root` does itself."""
    current: str | None = root
    while current is not None:
        if read_binding(current, state_dir.path_of(current)).standing is Standing.BOUND:
            return None if current == root else current
        above = os.path.dirname(current)  # noqa: PTH120  a root may hold any bytes
        current = find_nearest(above) if above != current else None
    return None


def find_above(root: str) -> str | None:
    """The nearest workspace above this directory, whether it belongs to this machine or not; None if there is none."""
    return find_nearest(os.path.dirname(root))  # noqa: PTH120  a root may hold any bytes


def is_foreign(root: str) -> bool:
    """Whether the workspace came from elsewhere and was not adopted on this machine."""
    return read_binding(root, state_dir.path_of(root)).is_foreign


def find_person_name(name: str | None) -> str:
    """The person's name: the one given, else git's user.name, else the login."""
    if name:
        return name
    try:
        result = git.run(find_nearest(".") or ".", "config", "user.name", seconds=_GIT_SECONDS)
    except FileNotFoundError:  # the current directory was removed; --workspace may still name one that exists
        result = None
    known = result.stdout.decode("utf-8", "replace").strip() if result else ""
    return known or getpass.getuser()


@contextmanager
def open_root(root: str, progress: Progress | None, *, uses_settings: bool = True) -> Iterator[Workspace]:
    """The workspace at a root, with every record that any process has appended.

    A decision that only restricts reads no settings, so that a broken kaiza.toml cannot prevent it, and passes no
    `progress`: it does not wait until a long log is read.
    """
    workspace = Workspace(root, Caps(), None if uses_settings else Settings())
    try:
        if not workspace.is_recording():
            raise UndeterminedError("There is no audit/ directory to record in. Run `kaiza init` first.")
        human_decisions.catch_up(workspace)
        while progress and (read := workspace.projection.wait(_POLL_SECONDS)) is not None:
            progress(read["bytes"], read["of"])
        yield workspace
    finally:
        workspace.close(current_timestamp())


def verify_whole_log(workspace: Workspace, progress: Progress) -> None:
    """Wait until the whole log is verified; refused if it is damaged."""
    while (state := workspace.verification_progress(_POLL_SECONDS)) is not None:
        progress(state["bytes"], state["of"])
    require_sound_log(workspace)


def require_sound_log(workspace: Workspace) -> None:
    """Refused if the log is damaged or foreign: a decision that loosens needs a log that can be trusted."""
    require_adopted(workspace)
    verdict = workspace.damage()
    if verdict is not None:
        raise RefusedError(
            f"The audit log is damaged ({verdict}). Nothing was changed. Run `kaiza audit verify` first."
        )


def require_adopted(workspace: Workspace) -> None:
    """Refused if the workspace came from elsewhere: nothing is trusted in it before a person adopts it."""
    if workspace.binding.is_foreign:
        raise RefusedError("This workspace came from elsewhere. Nothing was changed. Run `kaiza adopt` first.")
