"""Measure the reading tools as a client sees them, beside the filesystem server from npm, ripgrep and bare floors.

    uv run python benchmarks/reading.py [--rounds 15] [--beside "npx -y @modelcontextprotocol/server-filesystem"]

Both servers answer over standard input and output in the same run, rounds are interleaved, so that a busy machine
slows both sides; ratios are what counts. Prints a Markdown table. Rows whose other side is not installed are left out.
"""

import argparse
import hashlib
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

FILES = 10_000
FILE_BYTES = 5_000
LARGE_BYTES = 20_000_000
WORDS = ("alpha", "beta", "gamma", "delta", "return", "import", "class", "value", "index", "token", "session")
IGNORED = "*.pyc\n__pycache__/\n/build\nnode_modules/\n*.o\ndocs/_build/\n.venv\ndist/\n**/tmp/*.log\n"
BESIDE = "npx -y @modelcontextprotocol/server-filesystem"
WARM_UP = 2

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One line of the table: our work, the other's, and how many times the other's time it may take."""

    measure: str
    ours: Work
    other: Work | None
    beside: str
    bar: float


class Server:
    """An MCP server as a child, asked one question at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._count = 0
        client = {"name": "benchmark", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, name: str, /, **arguments: object) -> dict:
        """The result of a tool's call; RuntimeError if it failed."""
        result = self._ask("tools/call", {"name": name, "arguments": arguments})["result"]
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result

    def resident(self) -> int:
        """Megabytes in memory now."""
        status = Path(f"/proc/{self._child.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024

    def close(self) -> None:
        """End it as a client does."""
        self._child.stdin.close()
        self._child.wait(10)

    def _ask(self, method: str, params: dict) -> dict:
        self._count += 1
        self._send({"jsonrpc": "2.0", "id": self._count, "method": method, "params": params})
        while True:
            answer = json.loads(self._child.stdout.readline())
            if answer.get("id") == self._count and "method" not in answer:
                return answer

    def _send(self, message: dict) -> None:
        self._child.stdin.write(json.dumps(message).encode() + b"\n")
        self._child.stdin.flush()


def project(root: Path) -> None:
    chance = random.Random(5)
    for name in ("plans", "audit", "flat", "tree"):
        (root / name).mkdir()
    for number in range(FILES):
        (root / "flat" / f"entry{number:05d}.txt").touch()
        parent = root / "tree" / f"pkg{number % 20:02d}" / f"mod{number // 20 % 25:02d}"
        parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(" ".join(chance.choices(WORDS, k=9)) for _ in range(FILE_BYTES // 50))
        hit = "\nneedle_in_haystack\n" if number % 100 == 0 else "\n"
        (parent / f"file{number:05d}.{'py' if number % 2 else 'txt'}").write_text(text + hit)
    (root / ".gitignore").write_text(IGNORED)
    line = b"a line of a long file, as long as a line of code is\n"
    (root / "large").write_bytes(line * (LARGE_BYTES // len(line)))


def bare(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(1 << 18):
            digest.update(chunk)
    return digest.hexdigest()


def rows(root: Path, ours: Server, other: Server | None, rg: str | None) -> list[Row]:
    tree, flat = str(root / "tree"), str(root / "flat")
    search = [rg, "--no-config", "--line-number", "needle_in_haystack", tree] if rg else []
    return [
        Row(
            "first page of `list_directory`, 10,000 entries",
            lambda: ours.call("list_directory", path="flat"),
            other and (lambda: other.call("list_directory", path=flat)),
            "filesystem server, `list_directory`",
            0.5,
        ),
        Row(
            "`find_files` over 10,000 files",
            lambda: ours.call("find_files", pattern="**/*.py", path="tree"),
            other and (lambda: other.call("search_files", path=tree, pattern="**/*.py")),
            "filesystem server, `search_files`",
            0.2,
        ),
        Row(
            "`read_file`, first window of 20 MB",
            lambda: ours.call("read_file", path="large", max_lines=200),
            lambda: bare(root / "large"),
            "reading and hashing bare",
            1.8,
        ),
        Row(
            "`search_text` over 10,000 files, 50 MB",
            lambda: ours.call("search_text", query="needle_in_haystack", path="tree"),
            (lambda: subprocess.run(search, capture_output=True, check=True)) if rg else None,
            "ripgrep",
            10,
        ),
        Row(
            "the same with an expression, ignoring case",
            lambda: ours.call("search_text", query="NEEDLE_in.hay", regex=True, ignore_case=True, path="tree"),
            (lambda: subprocess.run([*search[:2], "-i", *search[2:]], capture_output=True, check=True)) if rg else None,
            "ripgrep",
            10,
        ),
    ]


def timed(work: Work) -> float:
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1000


def measured(row: Row, rounds: int) -> str:
    spent: list[tuple[float, float]] = []
    for number in range(rounds + WARM_UP):
        pair = (timed(row.ours), timed(row.other))
        if number >= WARM_UP:
            spent.append(pair)
    mine, theirs = (statistics.median(side) for side in zip(*spent, strict=True))
    return f"| {row.measure} | {mine:.1f} | {theirs:.1f} ({row.beside}) | {mine / theirs:.2f} | {row.bar:g} |"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--beside", default=BESIDE, help="the command that starts the filesystem server")
    asked = options.parse_args()
    beside = shlex.split(asked.beside)
    with tempfile.TemporaryDirectory() as parent:
        root = Path(os.path.realpath(parent)) / "project"
        root.mkdir()
        project(root)
        os.environ["XDG_STATE_HOME"] = str(Path(parent) / "state")
        ours = Server([sys.executable, "-m", "kaiza", "serve", "--workspace", str(root)])
        ours.call("begin_session", role="WINDSURF")
        other = Server([*beside, str(root)]) if shutil.which(beside[0]) else None
        print("| measure | Kaiza, ms | beside it, ms | ratio | bar |\n|---|---|---|---|---|")
        listed = rows(root, ours, other, shutil.which("rg"))
        for row in listed:
            if row.other is not None:
                print(measured(row, asked.rounds))
        before = ours.resident()
        for _ in range(asked.rounds):
            for row in listed:
                row.ours()
        print(f"\nKaiza's memory after these calls {before} MB, after as many again {ours.resident()} MB.")
        ours.close()
        if other:
            other.close()


if __name__ == "__main__":
    main()
