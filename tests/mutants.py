"""Measures the tests: makes each deliberate fault of `mutants.toml` in a copy of the tree and runs the tests for it.

`just mutants` runs all of them, `just mutants chain seal` those whose place or description contains one of the words.
A fault is anchored by the function that it is in, so code may be moved and formatted freely; after a function was
renamed or inlined, `python tests/mutants.py --anchor` finds the new places of what was not rewritten. Only the table is
ever edited, never the checkout's code. Exit status: 0 every fault was noticed or is equivalent, 1 one survived, 3 one
could not be tried.
"""

import ast
import json
import os
import re
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
TABLE = Path(__file__).with_suffix(".toml")
IGNORED = r"^[ \t]*#.*$|\s+"
LAST_COMMAS = r"|,(?=\s*[)\]}])"
AT_ONCE = 2
TIMEOUT_SECONDS = 300
# pytest's exit status is 1 where a test failed; others mean that the tests did not run.
RESULTS = {0: "survived", 1: "noticed"}


class Mutant(NamedTuple):
    """One edit, and the tests that must fail because of it."""

    fault: str
    where: str
    """The function, `Class.method` or constant, after `module:` if the name is not unique."""
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""
    """Why no test can notice it, where that is so."""

    @property
    def test_paths(self):
        return [f"tests/{path}" for path in self.tests]

    def edit(self, places):
        """The file to change and its new text; LookupError where the fault does not fit the code exactly once."""
        spots = [
            (place, spot) for place in find_places(places, self.where) for spot in find_spots(place.text, self.old)
        ]
        if len(spots) != 1:
            raise LookupError(f"{self.fault!r}: `old` occurs {len(spots)} times in {self.where}")
        [(place, (start, end))] = spots
        source = place.path.read_text()
        before = source[: place.start + start]
        line = before[before.rfind("\n") + 1 :]
        indented = self.new.replace("\n", "\n" + line[: len(line) - len(line.lstrip())])
        return place.path, before + indented + source[place.start + end :]


class Place(NamedTuple):
    """A top-level function, a class, a method or an assignment, and its text in its file."""

    path: Path
    name: str
    start: int
    text: str

    @property
    def modules(self):
        """The names of its module, from the shortest to the whole."""
        parts = [part for part in self.path.with_suffix("").parts if part != "__init__"]
        return ["/".join(parts[-length:]) for length in range(1, len(parts))]


def read_places(directory):
    """Every place in the code of kaiza and in the second verifier, the innermost first."""
    files = [*sorted(Path(directory, "kaiza").rglob("*.py")), Path(directory, "tools/verify_audit_log.py")]
    return [place for path in files for place in places_in(path)]


def places_in(path):
    source = path.read_text()
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))

    def visit(nodes, prefix):
        for node in nodes:
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{prefix}{node.name}.")
            for name in names_of(node):
                first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
                yield Place(path, prefix + name, lines[first - 1], source[lines[first - 1] : lines[node.end_lineno]])

    return visit(ast.parse(source).body, "")


def names_of(node):
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]
    return []


def find_places(places, where):
    """The places of this name; one, unless methods of a property share it."""
    module, _, name = where.rpartition(":")
    return [place for place in places if place.name == name and (not module or module in place.modules)]


def find_spots(text, old):
    """Where `old` stands in the text, whatever the line breaks, indentation, comments and, if need be, last commas."""
    for skipped in (IGNORED, IGNORED + LAST_COMMAS):
        wanted, _ = squeeze(old, skipped)
        chars, positions = squeeze(text, skipped)
        found = [match.start() for match in re.finditer(f"(?={re.escape(wanted)})", chars)]
        if found:
            break
    return [(positions[index], positions[index + len(wanted) - 1] + 1) for index in found]


def squeeze(text, ignored):
    """The text without what is ignored; the position that each character had."""
    skipped = {index for match in re.finditer(ignored, text, re.MULTILINE) for index in range(*match.span())}
    positions = [index for index in range(len(text)) if index not in skipped]
    return "".join(text[index] for index in positions), positions


def read_mutants():
    """The table."""
    rows = tomllib.loads(TABLE.read_text())["mutant"]
    return [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def anchor_again():
    """Write the new place of each fault that no longer fits; how many could not be found."""
    places = read_places(ROOT)
    table = TABLE.read_text()
    lost = 0
    for mutant in read_mutants():
        try:
            mutant.edit(places)
        except LookupError as error:
            found = [place for place in places if len(find_spots(place.text, mutant.old)) == 1]
            inner = [place for place in found if not any(other.name.startswith(f"{place.name}.") for other in found)]
            if len(inner) == 1:
                row = f'fault = {json.dumps(mutant.fault, ensure_ascii=False)}\nwhere = "'
                table = table.replace(f'{row}{mutant.where}"', f'{row}{anchor_of(inner[0], places)}"')
            else:
                lost += 1
                print(error, *(anchor_of(place, places) for place in inner), file=sys.stderr)
    TABLE.write_text(table)
    return lost


def anchor_of(place, places):
    """The shortest name that means this place alone."""
    same = [other for other in places if other.name == place.name and other.path != place.path]
    taken = {module for other in same for module in other.modules}
    return f"{next(module for module in place.modules if module not in taken)}:{place.name}" if same else place.name


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
        path, text = mutant.edit(read_places(directory))
        path.write_text(text)
        result, _ = run_tests(directory, mutant.test_paths)
    print(f"{result:8}  {mutant.where}: {mutant.fault}", flush=True)
    return result


def check_passing(path):
    """What pytest printed last where a test file fails without any edit: every fault would seem to be noticed."""
    with copied_tree() as directory:
        result, output = run_tests(directory, [path])
    return "" if result == "survived" else f"{path}: {result}\n{output}"


def main(words):
    if words == ["--anchor"]:
        return int(anchor_again() > 0)
    mutants = [
        mutant
        for mutant in read_mutants()
        if not words or any(word in f"{mutant.where} {mutant.fault}" for word in words)
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
