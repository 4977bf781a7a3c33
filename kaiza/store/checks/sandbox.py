"""Builds the sandbox of a check: the options of bubblewrap.

In it, the workspace can be written, but not what governs the agent; secrets are empty; the rest of the disk is
read-only, and the home directory, temporary files and Kaiza's own directories are hidden. There is no network.
"""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kaiza.store import git
from kaiza.store.checks.guarded_paths import GuardedPath

_ISOLATION = ("--unshare-all", "--cap-drop", "ALL", "--new-session", "--die-with-parent")
_SYSTEM = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
# /run holds sockets of services that would act outside for a check: of containers, of the desktop, of systemd.
_HIDDEN = ("/tmp", "/var/tmp", "/run", "/var/run")  # noqa: S108  replaced by empty ones in the sandbox
_SHOWN_BELOW_RUN = ("/run/current-system", "/run/systemd/resolve")
# Programs that people install below their home directory, and what these need to start.
_TOOLCHAINS = (
    ".asdf",
    ".bun",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".deno",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/fnm",
    ".local/share/mise",
    ".local/share/pipx",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
)
_PROBE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class SandboxRules:
    """What a sandbox hides, and what the settings allow: the network, and directories that may be written."""

    hidden: tuple[str, ...]
    """Kaiza's own directories outside the workspace."""
    network: bool = False
    writable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox for one command. Its mounts are those of the workspace when it was built."""

    program: str
    options: tuple[str, ...]

    @contextmanager
    def open_options(self) -> Iterator[int]:
        """Descriptor with the options, for `--args`: there may be more of them than a command line can hold."""
        fd = os.memfd_create("kaiza-sandbox")
        try:
            os.write(fd, b"".join(os.fsencode(option) + b"\0" for option in self.options))
            os.lseek(fd, 0, os.SEEK_SET)
            yield fd
        finally:
            os.close(fd)


def find_bubblewrap(root: str) -> str | None:
    """The bubblewrap of this machine; None if it is missing or cannot make a sandbox here."""
    program = shutil.which("bwrap", path=os.pathsep.join(git.trusted_path(root)))
    if program is None:
        return None
    # Tried, because in many containers the kernel refuses what bubblewrap needs.
    command = [program, *_ISOLATION, *_SYSTEM, "--", program, "--version"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_PROBE_SECONDS)  # noqa: S603  fixed
    except (OSError, subprocess.TimeoutExpired):
        return None
    return program if done.returncode == 0 else None


def build_sandbox(
    program: str, root: str, rules: SandboxRules, guarded: Iterable[GuardedPath], empty_file: str
) -> Sandbox:
    """Compute the options. Later ones cover earlier ones, so that nothing uncovers what is protected."""
    homes = _home_directories()
    kaiza_directories = _existing(rules.hidden)
    options = [*_ISOLATION, *(["--share-net"] if rules.network else []), *_SYSTEM]
    if os.geteuid() == 0:
        # Root owns the kernel's settings in /proc/sys, and may write them without any capability.
        options += ["--remount-ro", "/proc"]
    options += _mount("--tmpfs", _existing([*_HIDDEN, *homes]))
    options += _bind("--ro-bind-try", [*_SHOWN_BELOW_RUN, *_toolchains(homes)])
    options += _bind("--bind-try", _writable(rules.writable, [root, *kaiza_directories]))
    options += _mount("--tmpfs", kaiza_directories)
    options += ["--bind", root, root]
    options += [option for path in guarded for option in _protect(root, path, empty_file)]
    return Sandbox(program, (*options, "--chdir", root))


def sandbox_environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment of a sandboxed command: its temporary files are in the sandbox's own /tmp."""
    return {name: value for name, value in inherited.items() if name != "TMPDIR"}


def _protect(root: str, guarded: GuardedPath, empty_file: str) -> Sequence[str]:
    # A mount follows links, and would cover what the link leads to. A changed link is found afterwards.
    if guarded.link_target is not None:
        return ()
    path = f"{root}/{guarded.path}"
    if guarded.is_secret:
        return ("--tmpfs", path) if guarded.is_directory else ("--ro-bind", empty_file, path)
    return ("--ro-bind", path, path)


def _home_directories() -> list[str]:
    """The home directory of the environment and that of the account: an environment may name another one."""
    homes = {os.path.expanduser("~")}  # noqa: PTH111  Path.home() raises for an account without an entry
    with suppress(KeyError):
        homes.add(pwd.getpwuid(os.geteuid()).pw_dir)
    return [home for home in homes if home.startswith("/")]


def _toolchains(homes: Sequence[str]) -> Iterator[str]:
    for home in _existing(homes):
        yield from (f"{home}/{name}" for name in _TOOLCHAINS)
    hidden = _existing([*_HIDDEN, *homes])
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.realpath(entry)
        if entry.startswith("/") and any(_is_below(path, directory) for directory in hidden):
            # The programs of a virtual environment need all of it.
            environment = os.path.dirname(path)  # noqa: PTH120  as text
            yield environment if os.path.lexists(f"{environment}/pyvenv.cfg") else path


def _writable(named: Sequence[str], protected: Sequence[str]) -> Iterator[str]:
    """Real paths of directories that may be written, without those that contain the workspace or Kaiza's state."""
    for name in named:
        path = os.path.realpath(os.path.expanduser(name))  # noqa: PTH111  as above
        if not any(path == inner or _is_below(inner, path) for inner in protected):
            yield path


def _existing(directories: Iterable[str]) -> list[str]:
    """Real paths of the directories that exist, outermost first, without the root of the disk."""
    real = {os.path.realpath(directory) for directory in directories}
    return sorted(path for path in real if path != "/" and Path(path).is_dir())


def _is_below(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")


def _mount(option: str, paths: Iterable[str]) -> list[str]:
    return [word for path in paths for word in (option, path)]


def _bind(option: str, paths: Iterable[str]) -> list[str]:
    return [word for path in dict.fromkeys(paths) for word in (option, path, path)]
