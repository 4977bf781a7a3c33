"""What a directory lacks to be a workspace: its directories, what keeps the record out of git, a first plan to read."""

from datetime import UTC, datetime
from pathlib import Path

from kaiza.store.clients.changes import ConfigChange, ConfigFileError
from kaiza.store.clients.errors import ConfigError

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
2. Change `status: DRAFT` to `status: APPROVED` above and save. From the first change on these bytes are sealed:
   edit anything in this file afterwards, and the plan counts for nothing until you approve it again.
3. Ask again: the file is written. Ask for `notes/other.md`: it is refused, because no list above names it.
4. Look at the record: `kaiza audit show`, `kaiza audit verify`.

Real plans are drafted by the agent (`save_plan`) or by you; delete this one whenever you like.
"""


def find_missing(root: Path) -> tuple[list[Path], list[ConfigChange]]:
    """The directories and the files to make; FileFault where something else stands in their place."""
    directories = [root.joinpath(*parts) for parts in DIRECTORIES if _is_directory_missing(root, parts)]
    found = [_missing_file(root, ("audit", ".gitignore"), GITIGNORE_CONTENT)]
    if not any(root.joinpath("plans").glob("*.md")):
        found.append(_missing_file(root, ("plans", f"{EXAMPLE_PLAN_ID}.md"), example_plan(datetime.now(UTC))))
    return directories, [change for change in found if change is not None]


def is_unused(root: Path) -> bool:
    """Whether nothing has been recorded here: audit/ holds only what was put there to begin with, or is not there."""
    audit = root / "audit"
    return not audit.is_dir() or {place.name for place in audit.iterdir()} <= {".gitignore"}


def example_plan(now: datetime) -> bytes:
    """The first plan, a draft that explains itself."""
    return _EXAMPLE_TEXT.format(created=now.strftime("%Y-%m-%dT%H:%M:%SZ")).encode()


def _is_directory_missing(root: Path, parts: tuple[str, ...]) -> bool:
    place = root.joinpath(*parts)
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        raise ConfigFileError(
            "/".join(parts), ConfigError("A directory is needed here, and something else stands in its place")
        )
    return not place.exists()


def _missing_file(root: Path, parts: tuple[str, ...], content: bytes) -> ConfigChange | None:
    path = root.joinpath(*parts)
    if path.exists() or path.is_symlink():
        return None
    return ConfigChange(path, "/".join(parts), OWNER, None, content, None)
