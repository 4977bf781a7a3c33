"""Trees on the disk: what is in them, and what differs between two looks, worked out without Kaiza."""

import os
import stat
from pathlib import Path


def look(root):
    """Kind, mode, content and inode of every entry but version control and Kaiza's own."""
    found = {}
    for directory, directories, names in os.walk(os.fsencode(root)):
        directories[:] = [name for name in directories if name not in (b".git", b".kaiza")]
        for name in [*directories, *names]:
            path = os.path.join(directory, name)
            relative = os.fsdecode(os.path.relpath(path, os.fsencode(root)))
            if not relative.startswith("audit/"):
                found[relative] = _look_at(path)
    return found


def _look_at(path):
    status = os.lstat(path)
    kind, mode = stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)
    content = None
    if stat.S_ISREG(status.st_mode):
        content = Path(os.fsdecode(path)).read_bytes()
    elif stat.S_ISLNK(status.st_mode):
        content = os.readlink(path)
    return kind, mode, content, status.st_ino


def differences(before, after):
    """(path, change, from) for everything that differs, as a person would put it. Directories that are not empty are
    shown by their entries."""
    gone = {path for path in before.keys() - after.keys() if _shows(path, before)}
    new = {path for path in after.keys() - before.keys() if _shows(path, after)}
    found = {(path, *change) for path in before.keys() & after.keys() if (change := _change(before[path], after[path]))}
    for target in sorted(new):
        twins = [path for path in sorted(gone) if _is_moved(before[path], after[target])]
        if twins:
            gone.discard(twins[0])
            found.add((target, "renamed", twins[0]))
        else:
            found.add((target, "created", None))
    return found | {(path, "deleted", None) for path in gone}


def _shows(path, entries):
    return not stat.S_ISDIR(entries[path][0]) or not any(other.startswith(f"{path}/") for other in entries)


def _change(old, new):
    if old[0] != new[0]:
        return "kind", None
    if old[2] != new[2]:
        return "modified", None
    return ("mode", None) if old[1] != new[1] and not stat.S_ISLNK(old[0]) else None


def _is_moved(old, new):
    return old[0] == new[0] and old[2] == new[2] and (old[3] == new[3] or (bool(old[2]) and stat.S_ISREG(old[0])))
