"""Claude Code, Codex, Gemini CLI and opencode, as npm has them, with the configuration that `kaiza init` writes.

The model is a script on loopback; the home is empty but for the trust that a person gives. What was measured is
docs/clients.md.
"""

import functools
import json
import os
from pathlib import Path

import pytest
from clients import clients_page, story
from clients.programs import KAIZA, PROGRAMS, commit, make_home
from clients.scripted_model import playing
from scenes import records

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "clients.md"
EACH = pytest.mark.parametrize("name", PROGRAMS)
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def packages(installed):
    return installed(HERE / "coding_agents" / "package.json")


@pytest.fixture(scope="module")
def started(packages, tmp_path_factory):
    """Sets a client up with `kaiza init`, trusts it and starts it with a script; the same run is made once."""

    @functools.cache
    def start(name, play):
        program, facts = PROGRAMS[name], {}
        base = tmp_path_factory.mktemp(name)
        with playing(_script(name, play, base, facts)) as (model, url):
            home = make_home(base, program, packages, url)
            _fill(home.project)
            _set_up(home, program, facts)
            before = _files(home.project)
            done = home.run(program, *program.command(permissive=play == "writers"))
        facts["changed"] = {path for path, content in _files(home.project).items() if before.get(path) != content}
        facts |= {"exit": done.returncode, "log": records(home.project), "ended": model.is_done}
        if model.error is not None:
            raise model.error
        assert model.is_done, f"the script was not played to its end: {done.stdout[-800:]} {done.stderr[-800:]}"
        return facts

    return start


def _script(name, play, base, facts):
    program = PROGRAMS[name]
    tools = story.Toolbox(program)
    plays = {
        "session": lambda: story.play_session(tools, base / "project", facts),
        "writers": lambda: story.play_own_writers(tools, program, facts),
        "large": lambda: story.play_large_answers(tools, facts),
    }
    yield from plays[play]()
    facts |= {"direct": tools.direct, "found": tools.found}


def _fill(project):
    (project / "greeting.txt").write_text("helo\n")
    (project / "README.md").write_text("A\n")
    (project / story.BIG_FILE).write_text(story.BIG_TEXT)
    (project / "haystack.txt").write_text(story.HIT_TEXT)
    commit(project)


def _set_up(home, program, facts):
    init = home.run(program, KAIZA, "init", "--client", program.name, "--yes")
    assert init.returncode == 0, init.stderr
    facts["untrusted"] = _doctor(home, program)
    program.give_trust(home)
    facts["trusted"] = _doctor(home, program)


def _doctor(home, program):
    done = home.run(program, KAIZA, "doctor", "--json")
    return {check["check"]: check for check in json.loads(done.stdout)["checks"]}[f"client:{program.name}"]


def _files(project):
    """The user's files: without Kaiza's and git's own."""
    kept = (".git", ".kaiza", "audit", "plans", "docs")
    return {
        str(path.relative_to(project)): path.read_bytes()
        for path in project.rglob("*")
        if path.is_file() and path.relative_to(project).parts[0] not in kept
    }


@EACH
def test_a_whole_session_works_with_the_configuration_as_init_wrote_it(started, name):
    facts = started(name, "session")

    assert facts["exit"] == 0
    assert facts["codes"] == [
        "PLAN_NOT_FOUND",
        "PLAN_NOT_APPROVED",
        None,
        "PLAN_SCOPE_VIOLATION",
        "SESSION_LOCKED",
        None,
    ]
    assert facts["texts"] == ["hello\n", "helo\n"]
    assert facts["changed"] <= {".claude/settings.local.json"}


@EACH
def test_doctor_warns_until_the_client_trusts_the_project(started, name):
    facts = started(name, "session")

    assert facts["trusted"]["verdict"] == "ok"
    assert facts["untrusted"]["verdict"] == ("ok" if name == "opencode" else "warning")


@EACH
def test_the_clients_own_writing_tools_change_nothing(started, name):
    facts = started(name, "writers")

    assert facts["exit"] == 0
    assert [tool for tool, _ in facts["own"]] == [tool for tool, _ in PROGRAMS[name].writers]
    assert facts["changed"] <= {".claude/settings.local.json"}


@EACH
def test_a_large_file_and_many_hits_arrive_whole_page_after_page(started, name):
    facts = started(name, "large")

    assert facts["file_is_whole"]
    assert facts["hits_are_whole"]


def test_the_page_about_clients_is_what_was_measured(started, packages):
    measured = {
        name: {play: started(name, play) for play in ("session", "writers", "large")}
        | {"version": _version(packages, program)}
        for name, program in PROGRAMS.items()
    }
    text = clients_page.render(measured)
    if os.environ.get("KAIZA_WRITE_PAGES"):
        PAGE.write_text(text)

    assert PAGE.read_text() == text


def _version(packages, program):
    return json.loads((packages / "node_modules" / program.package / "package.json").read_text())["version"]
