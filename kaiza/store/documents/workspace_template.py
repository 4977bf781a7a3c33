"""Directories and files that `kaiza init` creates in a workspace: an example plan, and a .gitignore for the log."""

from datetime import UTC, datetime
from pathlib import Path

from kaiza.store.clients.changes import ConfigChange, ConfigFileError
from kaiza.store.clients.client import ConfigError

OWNER = "workspace"
DIRECTORIES = (("plans",), ("audit",), ("docs",), ("docs", "reports"))
GITIGNORE_CONTENT = b"*\n!.gitignore\n"
EXAMPLE_PLAN_ID = "PLAN-0001-example"

_EXAMPLE_TEXT = """\
---
# This is a plan: what an agent may change once you agree, and nothing else. It is an example, and safe to approve.
kaiza_plan: 1
plan_id: PLAN-0001-example            # the name of this file, without .md
title: Write a greeting into notes/hello.md
status: DRAFT                         # to approve, change this one word to APPROVED and save
author: kaiza init
created: "{created}"
approved_by: null                     # your name, if you like; kaiza plan approve fills it in
approved_at: null
scope:                                # what is not named here cannot be done
  create: ["notes/hello.md"]          # files that may appear
  modify: ["notes/hello.md"]          # files that may change
  delete: ["notes/hello.md"]          # files that may go
  deny: []                            # always wins over the lists above
limits: {{files: 1, lines: 40, operations: 10}}
---
# Why

To see once, on a file that does not matter, how a change happens under Kaiza.

# What

The agent writes a greeting of a few lines into `notes/hello.md`, and may correct it.

# How to check

1. Before you approve, ask your agent to write `notes/hello.md`: it is refused, and says PLAN_NOT_APPROVED.
2. Above, change the status from `DRAFT` to `APPROVED` and save. From the first change on these bytes are sealed:
   edit anything in this file afterwards, and the plan is invalid until you approve it again.
3. Ask again: the file is written. Ask for `notes/other.md`: it is refused, because no list above names it.
4. Read the log: `kaiza audit show`, `kaiza audit verify`.

Real plans are drafted by the agent (`save_plan`) or by you; delete this one whenever you like.
"""


def find_missing(root: Path) -> tuple[list[Path], list[ConfigChange]]:
    """Missing directories and files; ConfigFileError if something else has the name of a directory."""
    directories = []
    for parts in DIRECTORIES:
        path = root.joinpath(*parts)
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise ConfigFileError("/".join(parts), ConfigError("This is not a directory. Rename or remove it"))
        if not path.exists():
            directories.append(path)
    files = [_missing_file(root, ("audit", ".gitignore"), GITIGNORE_CONTENT)]
    if not any(root.joinpath("plans").glob("*.md")):
        files.append(_missing_file(root, ("plans", f"{EXAMPLE_PLAN_ID}.md"), example_plan(datetime.now(UTC))))
    return directories, [file for file in files if file is not None]


def is_unused(root: Path) -> bool:
    """Whether nothing was ever recorded: `audit/` is missing, or has only the file that init created."""
    audit = root / "audit"
    return not audit.is_dir() or {path.name for path in audit.iterdir()} <= {".gitignore"}


def example_plan(now: datetime) -> bytes:
    """Content of the example plan, a draft."""
    return _EXAMPLE_TEXT.format(created=now.strftime("%Y-%m-%dT%H:%M:%SZ")).encode()


def _missing_file(root: Path, parts: tuple[str, ...], content: bytes) -> ConfigChange | None:
    path = root.joinpath(*parts)
    if path.exists() or path.is_symlink():
        return None
    return ConfigChange(path, "/".join(parts), OWNER, None, content, None)
