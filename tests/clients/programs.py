"""The coding agents that are tried: where npm puts each, how it finds the model, and how a person trusts a project."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

KAIZA = str(Path(sys.executable).parent / "kaiza")
NEEDED = (
    "begin_session",
    "end_session",
    "read_file",
    "search_text",
    "save_plan",
    "list_plans",
    "write_file",
    "write_report",
    "undo_changes",
)


@dataclass(frozen=True)
class Home:
    """An empty home, a project that `kaiza init` has set up, and the programs, for one run of one client."""

    base: Path
    model: str

    @property
    def directory(self):
        return self.base / "home"

    @property
    def project(self):
        return self.base / "project"

    def environment(self, program):
        """All that the client inherits. No proxy is behind the port: nothing reaches another machine."""
        node = Path(shutil.which("node")).parent
        return {
            "HOME": str(self.directory),
            "PATH": f"{self.base / 'bin'}:{node}:/usr/bin:/bin",
            "TMPDIR": str(self.base / "tmp"),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "XDG_STATE_HOME": str(self.base / "state"),
            "HTTPS_PROXY": "http://127.0.0.1:9",
            "NO_PROXY": "127.0.0.1,localhost",
            **program.environment(self.model),
        }

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))

    def run(self, program, *words, seconds=300):
        """Run a command in the project, and end all that it started; its exit status and both streams."""
        child = subprocess.Popen(
            words, cwd=self.project, env=self.environment(program), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        try:
            out, err = child.communicate(timeout=seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        return subprocess.CompletedProcess(words, child.returncode, out, err)


class Claude:
    name, title, package = "claude-code", "Claude Code", "@anthropic-ai/claude-code"
    program, pattern = "claude", "@anthropic-ai/claude-code-linux-*/claude"
    trust = "A person allows the server when `claude` asks."
    writers = (
        ("Write", {"file_path": "own.txt", "content": "x"}),
        ("Edit", {"file_path": "README.md", "old_string": "A", "new_string": "B"}),
        ("NotebookEdit", {"notebook_path": "own.ipynb", "new_source": "x"}),
        ("Bash", {"command": "echo x > own.txt", "description": "x"}),
        ("EnterWorktree", {"name": "own"}),
        ("CronCreate", {"cron": "* * * * *", "prompt": "x", "durable": True}),
    )

    def environment(self, model):
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        return {"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "none", **quiet}

    def configure(self, home):
        """Nothing: the environment names the model."""

    def give_trust(self, home):
        allowed = {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["kaiza"]}
        home.write(".claude.json", {"projects": {str(home.project): allowed}})

    def command(self, *, permissive):
        mode = ("--permission-mode", "acceptEdits") if permissive else ()
        return ("claude", "-p", *mode, "go")

    def spell(self, tool):
        return f"mcp__kaiza__{tool}"

    def search(self):
        names = [*map(self.spell, NEEDED), *(name for name, _ in self.writers)]
        return "ToolSearch", {"query": f"select:{','.join(names)}"}


class Codex:
    name, title, package = "codex", "Codex", "@openai/codex"
    program, pattern = "codex", "@openai/codex-linux-*/vendor/*/bin/codex"
    trust = "A person trusts the project when `codex` asks."
    writers = (
        ("exec_command", {"cmd": "echo x > own.txt"}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Add File: own.txt\n+x\n*** End Patch"}),
    )

    def environment(self, model):
        return {"OPENAI_API_KEY": "none"}

    def configure(self, home):
        home.write(".codex/config.toml", self._settings(home))

    def give_trust(self, home):
        trusted = f'[projects."{home.project}"]\ntrust_level = "trusted"\n'
        home.write(".codex/config.toml", self._settings(home) + trusted)

    def _settings(self, home):
        provider = (
            f'name = "scripted"\nbase_url = "{home.model}/v1"\nwire_api = "responses"\nenv_key = "OPENAI_API_KEY"\n'
        )
        return f'model = "gpt-5.5"\nmodel_provider = "scripted"\n[model_providers.scripted]\n{provider}'

    def command(self, *, permissive):
        return ("codex", "exec", "go")

    def spell(self, tool):
        return f"mcp__kaiza.{tool}"

    def search(self):
        return "tool_search", {"query": "kaiza workspace files session plan read search write", "limit": 40}


class Gemini:
    name, title, package = "gemini", "Gemini CLI", "@google/gemini-cli"
    program, pattern = "gemini", "@google/gemini-cli/bundle/gemini.js"
    trust = "A person trusts the folder when `gemini` asks."
    writers = (
        ("write_file", {"file_path": "own.txt", "content": "x"}),
        ("replace", {"file_path": "README.md", "old_string": "A", "new_string": "B", "instruction": "x"}),
        ("run_shell_command", {"command": "echo x > own.txt"}),
    )

    def environment(self, model):
        return {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": model}

    def configure(self, home):
        quiet = {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}}
        home.write(".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}, **quiet})

    def give_trust(self, home):
        home.write(".gemini/trustedFolders.json", {str(home.project): "TRUST_FOLDER"})

    def command(self, *, permissive):
        return ("gemini", "-m", "gemini-2.5-flash", *(("--yolo",) if permissive else ()), "-p", "go")

    def unwrap(self, result):
        """A refusal is in the protocol's result, in a sentence."""
        _, sentence, response = result.partition(" with response: ")
        return json.loads(response)[0]["functionResponse"]["response"]["content"][0]["text"] if sentence else result

    def spell(self, tool):
        return f"mcp_kaiza_{tool}"


class Opencode:
    name, title, package = "opencode", "opencode", "opencode-ai"
    program, pattern = "opencode", "opencode-linux-*/bin/opencode"
    trust = "None is asked for."
    writers = (
        ("write", {"filePath": "own.txt", "content": "x"}),
        ("edit", {"filePath": "README.md", "oldString": "A", "newString": "B"}),
        ("bash", {"command": "echo x > own.txt", "description": "x"}),
        ("apply_patch", {"patchText": "*** Begin Patch\n*** Add File: own.txt\n+x\n*** End Patch"}),
    )

    def environment(self, model):
        names = ("MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD")
        return {f"OPENCODE_DISABLE_{name}": "1" for name in names}

    def configure(self, home):
        scripted = {"name": "scripted", "tool_call": True, "limit": {"context": 1_000_000, "output": 8000}}
        options = {"baseURL": f"{home.model}/v1", "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "name": "s", "options": options, "models": {"m": scripted}}
        names = {"model": "scripted/m", "small_model": "scripted/m", "share": "disabled"}
        home.write(".config/opencode/opencode.json", {**names, "provider": {"scripted": provider}})

    def give_trust(self, home):
        """Nothing: opencode uses what the project has."""

    def command(self, *, permissive):
        return ("opencode", "run", *(("--auto",) if permissive else ()), "go")

    def spell(self, tool):
        return f"kaiza_{tool}"


PROGRAMS = {program.name: program for program in (Claude(), Codex(), Gemini(), Opencode())}


def make_home(base, program, packages, model):
    """Create the directories, put the program into PATH, and let `kaiza init` configure it."""
    home = Home(base, model)
    for name in ("home", "project", "bin", "tmp"):
        (base / name).mkdir(parents=True)
    found = [path for path in packages.glob(f"node_modules/{program.pattern}") if "baseline" not in str(path)]
    starter = base / "bin" / program.program
    node = "exec node" if found[0].suffix == ".js" else "exec"
    starter.write_text(f'#!/bin/sh\n{node} "{os.path.realpath(found[0])}" "$@"\n')
    starter.chmod(0o755)
    program.configure(home)
    return home


def commit(project):
    """Make the project a repository with a commit, from which a client could make a worktree."""
    git = ["git", "-C", str(project), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Begin"]):
        subprocess.run([*git, *words], check=True)
