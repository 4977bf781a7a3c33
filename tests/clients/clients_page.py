"""Renders docs/clients.md from what the runs of the real programs measured, and from the table of clients."""

from clients import story
from clients.programs import NEEDED, PROGRAMS

from kaiza.store.clients.registry import CLIENTS

HEAD = """# Clients

The clients that `kaiza init` configures. Four are run by the tests: the real program from npm, with the configuration
exactly as `init` writes it, an empty home, the trust that a person gives, and a script on this machine in place of the
model. The first table is what was measured. The other four are configured as their documentation says, and not run.

The tests write this page:
`KAIZA_WRITE_PAGES=1 CI=true uv run --locked pytest tests/clients/test_coding_agents.py`.

## Run with the program

"""
NOTES = """
What the rows mean:

- **Before and after trust** is what `kaiza doctor` says, which asks the client itself.
- **Tools in the first request**: a client that defers tools offers them once its model has searched for them.
- **Whole session**: begin, read, a refused change, a draft, your approval by one word in the file, a change, a refused
  change outside of the plan's scope, a report, undo, end. Every refusal reaches the model with its error code.
- **Large answers**: a file of {size:,} bytes and {hits:,} hits, read page after page. Put together, the pages that
  reached the model are the file and all hits.
- **Own tools**: the model calls the client's own tools that write, in the mode in which the client asks least (for
  Claude Code `acceptEdits`, for Gemini CLI `--yolo`, for opencode `--auto`). No file of the project changed.

## What remains

- **Claude Code**: the Agent tool can let a subagent work in a git worktree of its own. That creates a branch and a
  directory below `.claude/worktrees`; Claude Code's writing tools are denied there, too.
- **Codex**: it may ask you to run a command outside of the sandbox. If you agree, that command can write.
- **Gemini CLI**: a tool of its own that you add to `tools.core` is used without asking.
- **opencode**: an agent of yours whose own `permission` allows `edit` or `bash` can write.

## Written from the documentation

"""


def render(measured):
    """The whole page."""
    size = len(story.BIG_TEXT.encode())
    return HEAD + _measured_table(measured) + NOTES.format(size=size, hits=story.HITS) + _documented_table() + _files()


def _measured_table(measured):
    rows = {
        "npm package": [f"`{program.package}`" for program in PROGRAMS.values()],
        "version": [facts["version"] for facts in measured.values()],
        "name in the log": [_logged_name(facts) for facts in measured.values()],
        "trust": [program.trust for program in PROGRAMS.values()],
        "before trust": [_verdict(facts["session"]["untrusted"]) for facts in measured.values()],
        "after trust": [_verdict(facts["session"]["trusted"]) for facts in measured.values()],
        "tools in the first request": [_offered(facts["session"]) for facts in measured.values()],
        "whole session": [f"works, exit {facts['session']['exit']}" for facts in measured.values()],
        "large file": [f"whole, {facts['large']['file_pages']} pages" for facts in measured.values()],
        "many hits": [f"whole, {facts['large']['hit_pages']} pages" for facts in measured.values()],
        "own tools tried": [_own_tools(facts["writers"]) for facts in measured.values()],
    }
    titles = ["", *(program.title for program in PROGRAMS.values())]
    return _table(titles, [[name, *cells] for name, cells in rows.items()])


def _logged_name(facts):
    names = {record["client"] for record in facts["session"]["log"] if record.get("client")}
    return ", ".join(f"`{name}`" for name in sorted(names))


def _verdict(check):
    return "`ok`: uses Kaiza" if check["verdict"] == "ok" else f"`{check['verdict']}`: ignores Kaiza"


def _offered(facts):
    if facts["direct"]:
        return f"{facts['direct']}"
    return f"none; one search finds {facts['found']} of the {len(NEEDED)} that the session needs"


def _own_tools(facts):
    return ", ".join(f"`{name}`" for name, _ in facts["own"]) + ": nothing changed"


def _documented_table():
    rows = [
        [client.title, f"{client.own_tools[0].upper()}{client.own_tools[1:]}."]
        for client in CLIENTS.values()
        if not client.is_tried
    ]
    return _table(["client", "own tools that write"], rows)


def _files():
    rows = [
        [client.title, ", ".join(f"`{file.name}`" for file in client.files), f"[page](how-to/under-{client.name}.md)"]
        for client in CLIENTS.values()
    ]
    return "\n## Files\n\n" + _table(["client", "files that `init` writes", "details"], rows)


def _table(head, rows):
    return "".join(f"| {' | '.join(row)} |\n" for row in [head, ["---"] * len(head), *rows])
