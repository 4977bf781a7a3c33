"""Documentation matches the program: commands parse, links resolve, configurations are what init writes."""

import argparse
import os
import re
import shlex
from hashlib import sha256
from importlib import import_module
from pathlib import Path

import pytest

from kaiza.app import App
from kaiza.cli import dispatch, serve
from kaiza.store.clients.client import ServerCommand
from kaiza.store.clients.registry import CLIENTS
from kaiza.store.documents import workspace_template

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/how-to/*.md"), *ROOT.glob("docs/adr/*.md"), *ROOT.glob("*.md")]
)
WRITTEN = [
    page for page in PAGES if page.name == "tutorial.md" or page.parent.name == "how-to" or page.name == "README.md"
]


def page_name(page):
    return str(page.relative_to(ROOT))


def blocks(page, *languages):
    matches = re.findall(r"^( *)```(\w*)\n(.*?)^ *```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [
        re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
        for indent, language, text in matches
        if language in languages
    ]


def command_lines():
    """The arguments of every `kaiza` call in a shell block, with its page."""
    for page in WRITTEN:
        for block in blocks(page, "sh"):
            for line in block.splitlines():
                for words in calls(line):
                    if words[:1] == ["kaiza"]:
                        yield pytest.param(words[1:], id=f"{page_name(page)}: {' '.join(words)}")


def calls(line):
    """The words of each command in a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    commands = [[]]
    for token in lexer:
        if set(token) <= set("|&;<>()"):
            commands.append([])
        else:
            commands[-1].append(token)
    return commands


def spans():
    """The words of every inline `kaiza …`: a command, and its subcommand and options if given."""
    for page in [*WRITTEN, Path(workspace_template.__file__)]:
        text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for span in sorted(set(re.findall(r"`kaiza ([^`\n]+)`", text))):
            yield pytest.param(shlex.split(span.replace("\\|", "|")), id=f"{page_name(page)}: {span}")


def require_command(words):
    assert words[0] in dispatch.COMMANDS


@pytest.mark.parametrize("words", list(command_lines()))
def test_command_lines_in_docs_parse(words):
    require_command(words)
    words = [re.sub(r"^\$\(tail .*", "1:" + "0" * 64, word) for word in words]
    if words[0] == "serve":
        assert serve.parse_options(words[1:]).workspace
        return
    parser = argparse.ArgumentParser(allow_abbrev=False)
    import_module(dispatch.COMMANDS[words[0]][0]).add(parser)
    _, rest = parser.parse_known_args(words[1:])

    assert rest == []


@pytest.mark.parametrize("words", list(spans()))
def test_commands_named_in_sentences_exist(words, capsys):
    if words[0].startswith("-"):
        return
    require_command(words)
    if words[0] == "serve":
        assert serve.parse_options(words[1:])
        return
    parser = argparse.ArgumentParser(allow_abbrev=False)
    import_module(dispatch.COMMANDS[words[0]][0]).add(parser)
    subcommands = next((a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction)), None)
    if subcommands is None or len(words) == 1:
        subcommands, names = {"": parser}, [""]
    else:
        names = words[1].split("|")

    assert set(names) <= set(subcommands)
    options = {option for name in names for action in subcommands[name]._actions for option in action.option_strings}
    assert {word for word in words if word.startswith("-")} <= options


def headings(page):
    for line in re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", line.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_resolve(page):
    missing = []
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            missing.append(link)

    assert missing == []


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_client_page_shows_exactly_what_init_writes(client):
    server = ServerCommand("/path/to/kaiza", ("serve", "--workspace", "/path/to/project"))
    page = ROOT / "docs/how-to" / f"under-{client.name}.md"

    assert blocks(page, "json", "toml") == [file.insert("", server) for file in client.files]
    assert all(file.name in page.read_text() for file in client.files)


def test_tutorial_links_to_every_how_to_page():
    tutorial = (ROOT / "docs/tutorial.md").read_text()
    pages = [page.name for page in (ROOT / "docs/how-to").glob("*.md") if not page.name.startswith("under-")]

    assert [page for page in pages if f"how-to/{page}" not in tutorial] == []


def test_tutorial_steps_have_the_stated_results(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("HOME", str(tmp_path))
    root = tmp_path / "project"
    root.mkdir()
    assert dispatch.main(["init", str(root), "--client", "claude-code", "--yes"]) == 0
    plan = root / "plans/PLAN-0001-example.md"
    app = App([os.path.realpath(root)])
    app.call("begin_session", {"role": "WINDSURF"})

    def write(path):
        plan_hash = sha256(plan.read_bytes()).hexdigest()
        outcome = app.call("write_file", {"path": path, "content": "Hello\n", "plan_hash": plan_hash})
        return outcome.envelope["error_code"] if outcome.envelope else None

    draft = write("notes/hello.md")
    plan.write_text(plan.read_text().replace("status: DRAFT ", "status: APPROVED "))
    approved, elsewhere, locked = write("notes/hello.md"), write("notes/other.md"), write("notes/hello.md")
    app.close()
    tutorial = (ROOT / "docs/tutorial.md").read_text()

    assert (draft, approved, elsewhere, locked) == ("PLAN_NOT_APPROVED", None, "PLAN_SCOPE_VIOLATION", "SESSION_LOCKED")
    assert (root / "notes/hello.md").read_text() == "Hello\n"
    assert all(code in tutorial for code in (draft, elsewhere))
