"""What putting Kaiza into a client, or taking it out, would change: decided in full before a byte is written."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kaiza.store.clients import files
from kaiza.store.clients.client import Client, File, Server
from kaiza.store.clients.fault import ConfigFault
from kaiza.store.clients.memory import Done, Memory, digest


@dataclass(frozen=True, slots=True)
class Site:
    """Where: the workspace, the home directory, and what is remembered of earlier changes."""

    root: Path
    home: Path
    memory: Memory

    def base(self, file: File) -> Path:
        """The directory that the file's path begins in."""
        return self.root if file.where == "workspace" else self.home


@dataclass(frozen=True, slots=True)
class Change:
    """One file before and after; None is no file. `base` is what it is to be again when it is taken back."""

    path: Path
    name: str
    owner: str
    before: bytes | None
    after: bytes | None
    base: bytes | None
    directories: tuple[Path, ...] = ()
    """Those that have to be made for it, the outer ones first."""


class FileFault(Exception):  # noqa: N818  it refuses; the program is not at fault
    """A ConfigFault with the name of its file."""

    def __init__(self, name: str, fault: ConfigFault) -> None:
        where = name if fault.line is None else f"{name}, line {fault.line}"
        super().__init__(f"{where}: {fault.sentence}.")


def putting(client: Client, server: Server, site: Site) -> list[Change]:
    """The files that would change for this client to start this server; FileFault where one stands in the way."""
    return _each(client, partial(_put, server, site))


def taking(client: Client, site: Site) -> list[Change]:
    """The files that would change for this client to be as it was before Kaiza."""
    return _each(client, partial(_take, site))


def entries(client: Client, site: Site) -> Iterator[tuple[File, str, Server]]:
    """The entries of Kaiza that are there, with the text they stand in."""
    for file in client.files:
        try:
            text = _text(files.read(site.base(file), file.path) or b"")
            entry = file.entry(text) if text.strip() else None
        except ConfigFault as fault:
            raise FileFault(file.name, fault) from fault
        if entry is not None:
            yield file, text, entry


def serves(entry: Server, root: Path) -> bool:
    """Whether the entry is for this workspace."""
    return str(root) in entry.workspaces


def remembered(change: Change, memory: Memory) -> Memory:
    """The memory with this change about to be made."""
    known = {path: done for path, done in memory.files.items() if path != str(change.path)}
    if change.after is not None and change.after != change.base:
        known[str(change.path)] = Done(change.owner, change.base, digest(change.after))
    directories = {**memory.directories, **dict.fromkeys(map(str, change.directories), change.owner)}
    return Memory(known, directories)


def _each(client: Client, decide: Callable[[Client, File], Change | None]) -> list[Change]:
    found: list[Change] = []
    for file in client.files:
        try:
            change = decide(client, file)
        except ConfigFault as fault:
            raise FileFault(file.name, fault) from fault
        found += [] if change is None else [change]
    return found


def _put(server: Server, site: Site, client: Client, file: File) -> Change | None:
    base = site.base(file)
    path = base.joinpath(*file.path)
    now = files.read(base, file.path)
    if now is not None and file.put(_text(now), server).encode() == now:
        return None
    before = _before(file, now, site.memory.files.get(str(path)))
    after = file.put(_text(before or b""), server).encode()
    files.check_writable(base, file.path)
    directories = tuple(files.missing_directories(base, file.path))
    return Change(path, file.name, client.name, now, after, before, directories)


def _take(site: Site, client: Client, file: File) -> Change | None:
    base = site.base(file)
    path = base.joinpath(*file.path)
    now, done = files.read(base, file.path), site.memory.files.get(str(path))
    if now is None:
        return None
    if done is not None:
        after = _before(file, now, done)
    elif _is_ours(file, now, site.root):
        after = file.take(_text(now), None).encode()
    else:
        return None
    if after == now:
        return None
    files.check_writable(base, file.path)
    return Change(path, file.name, client.name, now, after, after)


def _before(file: File, now: bytes | None, done: Done | None) -> bytes | None:
    """What the file would be without Kaiza: as it was, or, where somebody changed it since, with Kaiza taken out."""
    if done is None or now is None:
        return now
    if done.is_as_written(now):
        return done.before
    text = file.take(_text(now), _text(done.before or b"")) if now.strip() else ""
    return None if done.before is None and text.strip() in {"", "{}"} else text.encode()


def _is_ours(file: File, now: bytes, root: Path) -> bool:
    """Whether an entry that nobody remembers making is Kaiza's to take: one at home only where it names the root."""
    if not now.strip():
        return False
    entry = file.entry(_text(now))
    return file.where == "workspace" or (entry is not None and serves(entry, root))


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigFault("This is no UTF-8", line) from error
