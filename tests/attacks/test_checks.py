"""Attacks by a check, which runs code that the agent wrote: on approvals, secrets, the network, hooks and processes."""

import json
import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from agents import Agent, checking, plan
from doors import PATIENCE, call
from scenes import records, write_adopted_settings

from kaiza.store.checks import sandbox

needs_bubblewrap = pytest.mark.skipif(
    sandbox.find_bubblewrap("/dev/null/none") is None, reason="bubblewrap is missing, or cannot make a sandbox here"
)


@pytest.fixture
def sandboxed(make_app, workspace):
    """Run a script as the check of an approved plan, in the sandbox."""
    return checking(make_app(workspace, allowed=("allow_checks",)), workspace)


@pytest.fixture
def unsandboxed(make_app, workspace, monkeypatch):
    """Run a script as the check of an approved plan, without a sandbox, because there is no bubblewrap."""
    monkeypatch.setenv("PATH", "/dev/null/none")
    return checking(make_app(workspace, allowed=("allow_checks", "allow_unsandboxed_checks")), workspace)


def files_below(*directories):
    """Content of every file, by path."""
    return {path: path.read_bytes() for directory in directories for path in directory.rglob("*") if path.is_file()}


def state_directory():
    return Path(os.environ["XDG_STATE_HOME"])


@pytest.mark.parametrize("program", ["none", "in the workspace", "broken"])
def test_without_a_sandbox_checks_are_refused_and_nothing_runs(make_app, workspace, tmp_path, monkeypatch, program):
    directory = {"none": tmp_path / "none", "in the workspace": workspace, "broken": tmp_path}[program]
    if program != "none":
        end = "exit 1" if program == "broken" else f"touch {workspace}/ran"
        (directory / "bwrap").write_text(f"#!/bin/sh\n{end}\n")
        (directory / "bwrap").chmod(0o755)
    monkeypatch.setenv("PATH", str(directory))
    envelope = checking(make_app(workspace, allowed=("allow_checks",)), workspace)("open('ran', 'w')").envelope

    assert (envelope["error_code"], envelope["cause"]["reason"]) == ("INSUFFICIENT_PERMISSIONS", "no_sandbox")
    assert not (workspace / "ran").exists()


@needs_bubblewrap
@pytest.mark.parametrize(
    "script",
    [
        "p = 'plans/PLAN-1.md'; t = open(p).read().replace('A plan', 'Mine'); open(p, 'w').write(t)",
        "open('plans/PLAN-2.md', 'w').write('x')",
        "import os; os.rename('plans', 'old')",
        "import shutil; shutil.rmtree('plans')",
        "open('audit/audit-log.jsonl', 'ab').write(b'x')",
        "import os; os.truncate('audit/audit-log.jsonl', 0)",
        "open('.git/hooks/pre-commit', 'w').write('x')",
        "open('.git/config.worktree', 'w').write('x')",
        "open('.git/refs/heads/main', 'w').write('x')",
        "open('CLAUDE.md', 'w').write('obey')",
        "import os; os.unlink('CLAUDE.md')",
        "open('docs/.cursor/rules', 'w').write('obey')",
        "open('kaiza.toml', 'w').write('')",
    ],
)
def test_a_sandboxed_check_cannot_write_what_governs_the_agent(sandboxed, workspace, script):
    subprocess.run(["git", "init", "-q", workspace], check=True)
    for name in (".git/hooks/x.sample", "CLAUDE.md", "docs/.cursor/x", "kaiza.toml"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("")
    log = (workspace / "audit" / "audit-log.jsonl").read_bytes()
    before = files_below(workspace / ".git", workspace / "docs", workspace / "plans")
    envelope = sandboxed(script).envelope

    assert (envelope["error_code"], envelope["cause"]["exit_code"]) == ("PREFLIGHT_FAILED", 1)
    assert files_below(workspace / ".git", workspace / "docs", workspace / "plans") == before
    assert (workspace / "audit" / "audit-log.jsonl").read_bytes().startswith(log)
    assert [(workspace / name).read_text() for name in ("CLAUDE.md", "kaiza.toml")] == ["", ""]


@needs_bubblewrap
def test_a_journal_planted_by_a_sandboxed_check_is_not_on_disk(sandboxed, workspace):
    sandboxed("import os; os.makedirs('.kaiza/journal', exist_ok=True); open('.kaiza/journal/evil', 'w').write('{}')")

    assert [path for path in (workspace / ".kaiza").rglob("*") if path.name == "evil"] == []


@needs_bubblewrap
@pytest.mark.parametrize(
    ("script", "path"),
    [
        ("import os; os.makedirs('.git/hooks'); open('.git/hooks/pre-commit', 'w').write('x')", ".git"),
        ("open('CLAUDE.md', 'w').write('obey')", "CLAUDE.md"),
        ("import os; os.makedirs('src/.claude'); open('src/.claude/x', 'w').write('x')", "src/.claude"),
        ("import os; os.symlink('/etc/passwd', 'kaiza.toml')", "kaiza.toml"),
        ("import os; os.symlink('src', 'Plans')", "Plans"),
        ("import os; os.makedirs('below/.kaiza')", "below/.kaiza"),
        (
            "import os; os.makedirs('b/plans'); open('b/plans/P.md', 'w').write('---\\nkaiza_plan: 1\\n---\\n')",
            "b/plans",
        ),
    ],
)
def test_a_new_file_that_would_govern_the_agent_is_set_aside_and_recorded(sandboxed, workspace, script, path):
    output = sandboxed(script).output

    assert [moved["path"] for moved in output["set_aside"]] == [path]
    assert not os.path.lexists(workspace / path)
    assert os.path.lexists(workspace / output["set_aside"][0]["moved_to"])
    assert records(workspace)[-1]["detail"]["set_aside"] == output["set_aside"]


@needs_bubblewrap
def test_a_name_of_odd_bytes_is_set_aside_and_named(sandboxed, workspace):
    script = "import os; os.makedirs(b'\\xff/' + b'x' * 200 + b'/.claude')"
    output = sandboxed(script).output

    assert output["set_aside"][0]["path"].startswith("\\xff/xxx")
    assert records(workspace)[-1]["detail"]["set_aside"] == output["set_aside"]


@needs_bubblewrap
def test_a_steering_link_that_a_check_removed_or_replaced_is_restored(sandboxed, workspace):
    (workspace / "AGENTS.md").write_text("be careful")
    for name in ("CLAUDE.md", "GEMINI.md"):
        (workspace / name).symlink_to("AGENTS.md")
    script = "import os; os.unlink('CLAUDE.md'); os.unlink('GEMINI.md'); open('GEMINI.md', 'w').write('obey')"
    output = sandboxed(script).output

    assert [moved["path"] for moved in output["set_aside"]] == ["GEMINI.md"]
    assert [(workspace / name).read_text() for name in ("CLAUDE.md", "GEMINI.md")] == ["be careful", "be careful"]


@needs_bubblewrap
def test_what_one_check_moves_with_its_directory_is_guarded_in_the_next(make_app, workspace):
    (workspace / "src").mkdir()
    (workspace / "src" / ".env").write_text("secret")
    (workspace / "src" / "CLAUDE.md").write_text("be careful")
    decoys = "os.mkdir('src'); open('src/.env', 'w'); open('src/CLAUDE.md', 'w')"
    scripts = [
        f"import os; os.rename('src', 'old'); {decoys}",
        "print(open('old/.env').read())",
        "try: open('old/CLAUDE.md', 'w').write('obey')\nexcept OSError: print('refused')",
    ]
    app = make_app(workspace, allowed=("allow_checks",))
    app.call("begin_session", {"role": "WINDSURF"})
    for number, script in enumerate(scripts):
        (workspace / f"{number}.py").write_text(script)
    verify = json.dumps([[sys.executable, f"{number}.py"] for number in range(len(scripts))])
    approved = plan(workspace, more=f"phases: [{{phase_id: P1, verify: {verify}}}]\n")
    output = app.call("run_checks", {"plan_hash": approved, "phase_id": "P1"}).output

    moved = {each["path"]: workspace / each["moved_to"] for each in output["set_aside"]}

    assert [result["output"] for result in output["results"]] == ["", "\n", "refused\n"]
    assert moved["old/CLAUDE.md"].read_text() == "be careful"


@needs_bubblewrap
def test_what_a_failed_check_leaves_is_set_aside_too(sandboxed, workspace):
    envelope = sandboxed("open('AGENTS.md', 'w').write('obey'); raise SystemExit(1)").envelope

    assert envelope["cause"]["set_aside"][0]["path"] == "AGENTS.md"
    assert not (workspace / "AGENTS.md").exists()


@needs_bubblewrap
def test_a_steering_file_replaced_with_its_directory_is_set_aside(sandboxed, workspace):
    (workspace / "src").mkdir()
    (workspace / "src" / "CLAUDE.md").write_text("be careful")
    script = "import os; os.rename('src', 'old'); os.mkdir('src'); open('src/CLAUDE.md', 'w').write('obey')"
    output = sandboxed(script).output

    assert {moved["path"] for moved in output["set_aside"]} == {"src/CLAUDE.md", "old/CLAUDE.md"}


@needs_bubblewrap
def test_a_sandboxed_check_reads_no_secret_of_workspace_home_or_state(sandboxed, workspace, tmp_path, monkeypatch):
    # The test's directories are below /tmp, which the sandbox would hide as a whole.
    monkeypatch.setattr(sandbox, "_HIDDEN", ("/run",))
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    (workspace / "app").mkdir()
    (workspace / "app" / ".env").write_text("secret")
    keys = [str(path) for path in state_directory().rglob("*") if path.is_file()]
    places = ["app/.env", str(home / ".ssh" / "config"), str(Path.home() / ".ssh"), f"/proc/{os.getpid()}/environ"]
    script = f"""
import os
for path in {[*keys, *places]!r}:
    try:
        print(path, open(path, "rb").read())
    except OSError as error:
        print(path, type(error).__name__)
print(os.listdir(".kaiza"), os.listdir("/run"), os.environ)
"""
    monkeypatch.setenv("TOKEN", "secret")
    output = sandboxed(script).output["results"][0]["output"]

    assert keys
    assert "secret" not in output
    assert all(f"{key} FileNotFoundError" in output for key in keys)
    assert "app/.env b''" in output


@needs_bubblewrap
def test_a_file_that_the_settings_allow_can_be_read_by_a_check(make_app, workspace):
    write_adopted_settings(workspace, 'allow_read = ["tests/server.key"]\ndeny_read = ["customers/**"]\n')
    for name in ("tests/server.key", "customers/list.txt"):
        (workspace / name).parent.mkdir()
        (workspace / name).write_text("content")
    run = checking(make_app(workspace, allowed=("allow_checks",)), workspace)
    script = "print([open(path).read() for path in ('tests/server.key', 'customers/list.txt')])"

    assert run(script).output["results"][0]["output"] == "['content', '']\n"


@needs_bubblewrap
def test_a_sandboxed_check_reaches_nothing_outside_and_has_no_rights(sandboxed, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    places = [home / ".gitconfig", state_directory() / "kaiza" / "planted", tmp_path / "planted"]
    with socket.socket() as internet, socket.socket(socket.AF_UNIX) as service:
        internet.bind(("127.0.0.1", 0))
        service.bind(str(tmp_path / "service"))
        internet.listen(), service.listen()
        script = f"""
import os
import socket

def reached(act, *arguments):
    try:
        return act(*arguments) is not None
    except OSError:
        return False

for path in {list(map(str, places))!r}:
    reached(open, path, "w")
print(reached(socket.create_connection, {internet.getsockname()!r}, 2))
print(reached(lambda path: socket.socket(socket.AF_UNIX).connect(path) or path, {str(tmp_path / "service")!r}))
print(sorted(set(os.listdir("/run")) - {{"current-system", "systemd"}}))
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")])
print(sorted(os.listdir("/proc/self/fd")))
print(os.getsid(0) > 0)
"""
        (result,) = sandboxed(script).output["results"]

    assert result["output"].splitlines() == [
        *("False", "False", "[]"),
        "['0000000000000000']",
        "['0', '1', '2', '3']",  # the last one lists the directory
        "True",  # 0 is a session outside, whose terminal the check could type into
    ]
    assert [path for path in places if path.exists()] == []


@needs_bubblewrap
def test_the_settings_give_a_check_the_network_and_a_directory(make_app, workspace, tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    write_adopted_settings(workspace, f"[checks]\nnetwork = true\nwritable = [{json.dumps(str(cache))}]\n")
    run = checking(make_app(workspace, allowed=("allow_checks",)), workspace)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        address = listener.getsockname()
        script = f"import socket; socket.create_connection({address!r}, 2); open({str(cache / 'x')!r}, 'w')"
        outcome = run(script)

    assert outcome.output["results"][0]["exit_code"] == 0
    assert (cache / "x").exists()


@needs_bubblewrap
@pytest.mark.parametrize("writable", ["workspace's parent", "state"])
def test_a_writable_directory_never_uncovers_what_is_protected(make_app, workspace, writable):
    named = workspace.parent if writable == "workspace's parent" else state_directory()
    write_adopted_settings(workspace, f"[checks]\nwritable = [{json.dumps(str(named))}]\n")
    run = checking(make_app(workspace, allowed=("allow_checks",)), workspace)
    run(f"open({str(named / 'planted')!r}, 'w')")

    assert not (named / "planted").exists()


@needs_bubblewrap
@pytest.mark.parametrize("end", ["", "import time; time.sleep(600)"])
def test_a_daemon_does_not_survive_the_sandbox(make_app, workspace, end):
    mark = f"kaiza-daemon-{os.getpid()}-{len(end)}"
    script = f"""
import os, sys, subprocess
daemon = "import os, time\\nos.setsid()\\nif os.fork(): os._exit(0)\\nopen('up', 'w').close()\\ntime.sleep(600)"
subprocess.Popen([sys.executable, "-c", daemon, {mark!r}])
while not os.path.exists("up"):
    pass
{end}
"""
    (workspace / "kaiza.toml").write_text("[checks]\nseconds = 5\n")
    run = checking(make_app(workspace, allowed=("allow_checks",)), workspace)
    run(script)

    assert (workspace / "up").exists()
    assert [pid for pid in os.listdir("/proc") if pid.isdecimal() and mark in command_line(pid)] == []


def command_line(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


@needs_bubblewrap
def test_a_sandboxed_check_ends_with_the_server_that_started_it(workspace):
    agent = Agent(workspace, options=["--allow-checks"])
    try:
        approved = plan(workspace, more=f"phases: [{{phase_id: P1, verify: [[{sys.executable!r}, check.py]]}}]\n")
        os.mkfifo(workspace / "alive")
        script = "import signal\nalive = open('alive', 'w', 1)\nalive.write('x\\n')\nsignal.pause()\n"
        Path(workspace, "check.py").write_text(script)
        agent.door.say(call(99, "run_checks", plan_hash=approved, phase_id="P1"))
        # Opened without waiting for the check, which may not have begun: until it has, there is nothing to read.
        with os.fdopen(os.open(workspace / "alive", os.O_RDONLY | os.O_NONBLOCK)) as alive:
            assert select.select([alive], [], [], PATIENCE)[0]
            assert alive.read(1) == "x"
            agent.door.process.kill()
            ready, _, _ = select.select([alive], [], [], PATIENCE)
    finally:
        agent.door.process.kill()
        agent.close()

    assert ready


@pytest.mark.rows("S1-49")
@pytest.mark.parametrize(
    "script",
    [
        "p = 'plans/PLAN-1.md'; t = open(p).read().replace('A plan', 'Mine'); open(p, 'w').write(t)",
        "open('plans/PLAN-2.md', 'w').write('x')",
        "import os; os.makedirs('.git/hooks'); open('.git/hooks/pre-commit', 'w').write('x')",
        "import os; os.makedirs('.git'); open('.git/config.worktree', 'w').write('x')",
        "p = 'audit/audit-log.jsonl'; b = bytearray(open(p, 'rb').read()); b[9] ^= 1; open(p, 'wb').write(b)",
        "open('CLAUDE.md', 'w').write('obey')",
        "import os; os.symlink('/etc/passwd', 'kaiza.toml')",
        "import os; os.makedirs('.kaiza/journal'); open('.kaiza/journal/evil', 'w').write('{}')",
        "import glob; p = glob.glob(STATE + '/kaiza/*/key.json')[0]; t = open(p).read(); open(p, 'w').write(t)",
        "import glob; open(glob.glob(STATE + '/kaiza/*')[0] + '/workspace.json', 'w').write('{}')",
        "import glob; open(glob.glob(STATE + '/kaiza/*')[0] + '/sights.json', 'w').write('{}')",
        "open(CONFIG + '/kaiza/config.toml', 'w').write('[trust]')",
        "import os; os.makedirs(b'\\xff/.claude'); open(b'\\xff/.claude/x', 'w').write('x')",
        "import os; os.makedirs('below/.kaiza'); open('below/.kaiza/id', 'w').write('x')",
    ],
)
def test_what_an_unsandboxed_check_alters_is_detected_and_locks(unsandboxed, workspace, tmp_path, monkeypatch, script):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "kaiza").mkdir(parents=True)
    # The key exists only once something was authenticated with it.
    (next(state_directory().glob("kaiza/*")) / "key.json").touch()
    places = f"STATE, CONFIG = {str(state_directory())!r}, {str(tmp_path / 'config')!r}"
    envelope = unsandboxed(f"{places}\n{script}").envelope

    assert (envelope["error_code"], envelope["invariant_id"]) == ("INVARIANT_VIOLATION", "CHECKS_MEDDLED")
    assert records(workspace)[-1]["invariant_id"] == "CHECKS_MEDDLED"


def test_an_object_that_an_unsandboxed_check_alters_is_detected(unsandboxed, workspace):
    stored = workspace / ".kaiza/objects/ab"
    stored.parent.mkdir(exist_ok=True)
    stored.write_text("x")
    envelope = unsandboxed("open('.kaiza/objects/ab', 'a').write('y')").envelope

    assert envelope["invariant_id"] == "CHECKS_MEDDLED"
    assert envelope["cause"]["paths"] == [".kaiza/objects/ab"]


FORGE = """
import hashlib, json
log = open("audit/audit-log.jsonl", "rb").read().splitlines()
record = json.loads(log[-1])
previous = record.pop("entry_hash")
record.update(seq=record["seq"] + 1, prev_hash=previous, **CHANGES)
body = json.dumps(record, sort_keys=True, separators=(",", ":"))
digest = hashlib.sha256(body.encode()).hexdigest()
open("audit/audit-log.jsonl", "a").write(body[:-1] + f',"entry_hash":"{digest}"}}\\n')
"""


@pytest.mark.parametrize("kind", ["person", "plan"])
def test_a_decision_forged_by_an_unsandboxed_check_locks_until_a_person_unlocks(make_app, workspace, monkeypatch, kind):
    monkeypatch.setenv("PATH", "/dev/null/none")
    app = make_app(workspace, allowed=("allow_checks", "allow_unsandboxed_checks"))
    run = checking(app, workspace)
    changes = {
        "kind": kind,
        "tool_name": None,
        "session_id": None,
        "plan_id": "PLAN-9",
        "plan_hash": "0" * 64,
        "detail": {"action": "approve", "person": "me"},
    }
    envelope = run(f"CHANGES = {changes!r}\n{FORGE}").envelope
    report = app.call("write_report", {"title": "t", "content": "c"}).output

    assert (envelope["error_code"], envelope["invariant_id"]) == ("INVARIANT_VIOLATION", "CHECKS_MEDDLED")
    assert [record["kind"] for record in records(workspace) if record["seq"] in envelope["cause"]["records"]] == [kind]
    assert report["state"] == "locked"


def test_the_late_count_of_a_plans_files_is_no_forged_decision_and_seals_nothing(make_app, workspace, monkeypatch):
    monkeypatch.setenv("PATH", "/dev/null/none")
    app = make_app(workspace, allowed=("allow_checks", "allow_unsandboxed_checks"))
    run = checking(app, workspace)
    detail = {"how": "command", "approved_by": "me", "files": 1, "counted": True, "seal_seq": 1}
    changes = {"kind": "plan", "tool_name": None, "session_id": None, "plan_id": "PLAN-9", "plan_hash": "0" * 64}
    answer = run(f"CHANGES = { ({**changes, 'detail': detail})!r}\n{FORGE}")
    app.call("session_status", {})

    assert answer.envelope is None
    assert "PLAN-9" not in app.services.workspaces[os.path.realpath(workspace)].audit_state.seals


def test_a_person_may_freeze_while_an_unsandboxed_check_runs(unsandboxed, workspace):
    changes = {"kind": "person", "tool_name": None, "session_id": None, "detail": {"action": "freeze", "person": "me"}}
    outcome = unsandboxed(f"CHANGES = {changes!r}\n{FORGE}")

    assert outcome.envelope is None


def test_a_snapshot_that_an_unsandboxed_check_leaves_is_not_used(unsandboxed):
    index = next(state_directory().glob("kaiza/*")) / "index.json"
    unsandboxed(f"open({str(index)!r}, 'w').write('{{}}')")

    assert not index.exists()


@needs_bubblewrap
def test_what_a_check_hides_in_a_directory_that_cannot_be_listed_is_detected(sandboxed, workspace):
    # The path is too long to be listed, also for root. With fewer rights, `chmod 0311` has the same effect.
    script = """
import os
open("CLAUDE.md", "w").write("obey")
for _ in range(40):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
os.mkdir(".claude")
"""
    envelope = sandboxed(script).envelope

    assert (envelope["error_code"], envelope["invariant_id"]) == ("INVARIANT_VIOLATION", "CHECKS_MEDDLED")
    assert not (workspace / "CLAUDE.md").exists()


@needs_bubblewrap
def test_a_steering_link_replaced_by_a_file_with_its_inode_number_is_restored(sandboxed, workspace):
    (workspace / "AGENTS.md").write_text("be careful")
    (workspace / "CLAUDE.md").symlink_to("AGENTS.md")
    script = """
import os
number = os.lstat("CLAUDE.md").st_ino
os.unlink("CLAUDE.md")
for each in range(1000):
    open(f"file-{each}", "w").write("obey")
    if os.lstat(f"file-{each}").st_ino == number:
        break
os.rename(f"file-{each}", "CLAUDE.md")
"""
    output = sandboxed(script).output

    assert [moved["path"] for moved in output["set_aside"]] == ["CLAUDE.md"]
    assert (workspace / "CLAUDE.md").read_text() == "be careful"


@needs_bubblewrap
@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns the kernel's settings")
def test_a_sandboxed_check_of_root_cannot_open_the_kernels_settings_for_writing(sandboxed):
    # Opened only: to write would change the machine that runs the test.
    script = """
import os
for name in ("kernel/core_pattern", "kernel/modprobe", "vm/overcommit_memory"):
    try:
        os.close(os.open("/proc/sys/" + name, os.O_WRONLY))
        print("opened", name)
    except OSError:
        pass
"""
    assert sandboxed(script).output["results"][0]["output"] == ""
