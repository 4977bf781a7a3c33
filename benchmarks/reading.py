"""Time the reading tools over stdio, compared with the filesystem server from npm, ripgrep and bare system calls.

    uv run python benchmarks/reading.py [--rounds 15] [--baseline "npx -y @modelcontextprotocol/server-filesystem"]

Rounds of both servers are interleaved in one run, so that other load slows both sides; compare the ratios. Prints
a Markdown table. Rows whose baseline is not installed are omitted.
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
BASELINE = "npx -y @modelcontextprotocol/server-filesystem"
WARM_UP = 2

Work = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """One row of the table: Kaiza's work, the baseline's, and the largest accepted ratio."""

    measure: str
    kaiza: Work
    baseline: Work | None
    baseline_name: str
    limit: float


class Server:
    """An MCP server in a child process; one request at a time."""

    def __init__(self, command: Sequence[str]) -> None:
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._count = 0
        client = {"name": "benchmark", "version": "1"}
        self._ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, name: str, /, **arguments: object) -> dict:
        """Return the result of a tool call; RuntimeError if it failed."""
        result = self._ask("tools/call", {"name": name, "arguments": arguments})["result"]
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result

    def resident_megabytes(self) -> int:
        """Resident memory in megabytes."""
        status = Path(f"/proc/{self._child.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) // 1024

    def close(self) -> None:
        """Close standard input and wait for the exit, as a client does."""
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


def create_project(root: Path) -> None:
    generator = random.Random(5)
    for name in ("plans", "audit", "flat", "tree"):
        (root / name).mkdir()
    for number in range(FILES):
        (root / "flat" / f"entry{number:05d}.txt").touch()
        parent = root / "tree" / f"pkg{number % 20:02d}" / f"mod{number // 20 % 25:02d}"
        parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(" ".join(generator.choices(WORDS, k=9)) for _ in range(FILE_BYTES // 50))
        hit = "\nneedle_in_haystack\n" if number % 100 == 0 else "\n"
        (parent / f"file{number:05d}.{'py' if number % 2 else 'txt'}").write_text(text + hit)
    (root / ".gitignore").write_text(IGNORED)
    line = b"a line of a long file, as long as a line of code is\n"
    (root / "large").write_bytes(line * (LARGE_BYTES // len(line)))


def hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(1 << 18):
            digest.update(chunk)
    return digest.hexdigest()


def build_rows(root: Path, kaiza: Server, filesystem: Server | None, rg: str | None) -> list[Row]:
    tree, flat = str(root / "tree"), str(root / "flat")
    search = [rg, "--no-config", "--line-number", "needle_in_haystack", tree] if rg else []
    return [
        Row(
            "first page of `list_directory`, 10,000 entries",
            lambda: kaiza.call("list_directory", path="flat"),
            filesystem and (lambda: filesystem.call("list_directory", path=flat)),
            "filesystem server, `list_directory`",
            0.5,
        ),
        Row(
            "`find_files` over 10,000 files",
            lambda: kaiza.call("find_files", pattern="**/*.py", path="tree"),
            filesystem and (lambda: filesystem.call("search_files", path=tree, pattern="**/*.py")),
            "filesystem server, `search_files`",
            0.2,
        ),
        Row(
            "`read_file`, first 500 lines of 20 MB",
            lambda: kaiza.call("read_file", path="large", max_lines=500),
            filesystem and (lambda: filesystem.call("read_text_file", path=str(root / "large"), head=500)),
            "filesystem server, `head`",
            1.5,
        ),
        Row(
            "the same with hash and line count",
            lambda: kaiza.call("read_file", path="large", max_lines=500, with_hash=True),
            lambda: hash_file(root / "large"),
            "reading and hashing alone",
            1.8,
        ),
        Row(
            "`search_text` over 10,000 files, 50 MB",
            lambda: kaiza.call("search_text", query="needle_in_haystack", path="tree"),
            (lambda: subprocess.run(search, capture_output=True, check=True)) if rg else None,
            "ripgrep",
            10,
        ),
        Row(
            "the same with a regular expression, ignoring case",
            lambda: kaiza.call("search_text", query="NEEDLE_in.hay", regex=True, ignore_case=True, path="tree"),
            (lambda: subprocess.run([*search[:2], "-i", *search[2:]], capture_output=True, check=True)) if rg else None,
            "ripgrep",
            10,
        ),
    ]


def milliseconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1000


def measure_row(row: Row, rounds: int) -> str:
    times: list[tuple[float, float]] = []
    for number in range(rounds + WARM_UP):
        pair = (milliseconds(row.kaiza), milliseconds(row.baseline))
        if number >= WARM_UP:
            times.append(pair)
    kaiza, baseline = (statistics.median(side) for side in zip(*times, strict=True))
    ratios = sorted(kaiza / baseline for kaiza, baseline in times)
    spread = f"{kaiza / baseline:.2f} (rounds: {ratios[0]:.2f} to {ratios[-1]:.2f})"
    compared = f"{kaiza:.1f} | {baseline:.1f} ({row.baseline_name}) | {spread}"
    return f"| {row.measure} | {compared} | {row.limit:g} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--baseline", default=BASELINE, help="the command that starts the filesystem server")
    options = parser.parse_args()
    baseline = shlex.split(options.baseline)
    with tempfile.TemporaryDirectory() as parent:
        root = Path(os.path.realpath(parent)) / "project"
        root.mkdir()
        create_project(root)
        os.environ["XDG_STATE_HOME"] = str(Path(parent) / "state")
        kaiza = Server([sys.executable, "-m", "kaiza", "serve", "--workspace", str(root)])
        kaiza.call("begin_session", role="WINDSURF")
        filesystem = Server([*baseline, str(root)]) if shutil.which(baseline[0]) else None
        print("| measure | Kaiza, ms | baseline, ms | ratio | limit |\n|---|---|---|---|---|")
        rows = build_rows(root, kaiza, filesystem, shutil.which("rg"))
        for row in rows:
            if row.baseline is not None:
                print(measure_row(row, options.rounds))
        before = kaiza.resident_megabytes()
        for _ in range(options.rounds):
            for row in rows:
                row.kaiza()
        print(f"\nKaiza's memory after these calls {before} MB, after as many again {kaiza.resident_megabytes()} MB.")
        kaiza.close()
        if filesystem:
            filesystem.close()


if __name__ == "__main__":
    main()
