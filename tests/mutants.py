"""Measures the tests: makes each deliberate fault of `mutants.toml` in a copy of the tree and runs the tests for it.

`just mutants` runs all of them, `just mutants chain seal` those whose file or description contains one of the words.
The checkout is never edited. Exit status: 0 every fault was noticed or is equivalent, 1 one survived, 3 one could not
be tried.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
AT_ONCE = 2
TIMEOUT_SECONDS = 300
# pytest's exit status is 1 where a test failed; others mean that the tests did not run.
RESULTS = {0: "survived", 1: "noticed"}


class Mutant(NamedTuple):
    """One edit, and the tests that must fail because of it."""

    fault: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""
    """Why no test can notice it, where that is so."""

    @property
    def test_paths(self):
        return [f"tests/{path}" for path in self.tests]

    def edit(self, text):
        return text.replace(self.old, self.new)


def read_mutants():
    """The table."""
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


@contextmanager
def copied_tree():
    """A copy of the tree in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="kaiza-mutant-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)  # some tests use another account
        directory = Path(name, "tree")
        shutil.copytree(ROOT, directory, ignore=shutil.ignore_patterns(".*", "__pycache__", "node_modules"))
        yield directory


def run_tests(directory, tests):
    """Run tests in a copy; `noticed`, `survived`, `timeout` or `not run`, and what pytest printed last."""
    temporary = directory.with_name("tmp")
    temporary.mkdir()
    # PYTHONPATH comes before the checkout, which the environment has installed for processes that tests start.
    environment = {**os.environ, "PYTHONPATH": str(directory), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    # A short path for the tests' files: the address of a socket has 108 bytes.
    command = [sys.executable, "-m", "pytest", "-x", "-q", f"--basetemp={directory.with_name('t')}", *tests]
    with directory.with_name("output").open("w+", errors="replace") as output:
        process = subprocess.Popen(
            command, cwd=directory, env=environment, stdout=output, stderr=output, start_new_session=True
        )
        try:
            result = RESULTS.get(process.wait(TIMEOUT_SECONDS), "not run")
        except subprocess.TimeoutExpired:
            result = "timeout"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return result, output.read()[-2000:]


def try_mutant(mutant):
    """Make the edit in a new copy and run its tests."""
    with copied_tree() as directory:
        source = directory / "kaiza" / mutant.file
        source.write_text(mutant.edit(source.read_text()))
        result, _ = run_tests(directory, mutant.test_paths)
    print(f"{result:8}  {mutant.file}: {mutant.fault}", flush=True)
    return result


def check_passing(path):
    """What pytest printed last where a test file fails without any edit: every fault would seem to be noticed."""
    with copied_tree() as directory:
        result, output = run_tests(directory, [path])
    return "" if result == "survived" else f"{path}: {result}\n{output}"


def main(words):
    mutants = [
        mutant
        for mutant in read_mutants()
        if not words or any(word in f"{mutant.file} {mutant.fault}" for word in words)
    ]
    with ThreadPoolExecutor(AT_ONCE) as executor:
        failures = list(executor.map(check_passing, sorted({path for mutant in mutants for path in mutant.test_paths})))
        if any(failures):
            print(*filter(None, failures), "Tests fail without a fault; see above.", sep="\n", file=sys.stderr)
            return 3
        results = list(executor.map(try_mutant, mutants))
    counts = Counter(results)
    noticed = counts["noticed"] + counts["timeout"]
    print(f"{noticed} of {len(mutants)} noticed ({counts['timeout']} by a timeout), {counts['not run']} not run.")
    if counts["not run"]:
        return 3
    survived = [mutant for mutant, result in zip(mutants, results, strict=True) if result == "survived"]
    return int(any(not mutant.equivalent for mutant in survived))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
