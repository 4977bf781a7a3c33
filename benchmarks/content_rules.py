"""Count the files of this Python's standard library that each content rule would refuse if they were new.

With a number as argument it also prints that many findings per rule, evenly spread, for review. With `twice` it prints
instead the cost of checking 8 KB, and the ratio of times for hostile content and twice as much of it; the limit is 2.5.
"""

import sys
import sysconfig
import time
from collections import Counter, defaultdict
from pathlib import Path

from kaiza.domain.plans.plan import ContentPolicy
from kaiza.policy.content.scan import scan_file

ALL = ContentPolicy(secrets=True, stubs=True, rust=True)
GITHUB = "gh" + "p_" + "aB3" * 12
HOSTILE = {
    "a.txt": {
        "key prefixes": lambda n: "AKI" * 2 * n,
        "key names": lambda n: "aws_secret_access_" * n,
        "tokens in one line": lambda n: ("é " + GITHUB) * (n // 8),
        "zeros": lambda n: "\0" * 10 * n,
        "short lines": lambda n: "x\n" * 10 * n,
    },
    "a.py": {
        "hashes": lambda n: "x = (" + "#" * 10 * n,
        "colons": lambda n: "x = (\nexcept" + " :" * 5 * n,
        "open strings": lambda n: "x = " + "{" * 4000 + "'\\" * 5 * n,
        "open brackets": lambda n: "(" * 10 * n,
        "f-string fields": lambda n: "x = f'" + "{a}" * 5 * n + "'",
        "a long line with a comment": lambda n: "x = [" + "ü," * n + "] # FIXMES",
        "empty functions": lambda n: "def f(): pass\n" * (n // 4),
    },
    "a.js": {
        "slashes, over 2 MiB": lambda n: "/" * 60 * n,
        "comments": lambda n: "/* FIXME */" * n,
        "functions in one line": lambda n: "function f(){}" * n,
        "catches in one line": lambda n: "try{}catch{}" * n,
        "nested classes": lambda n: "class A { f(a =\n" * (n // 2) + "1" + ") {} }\n" * (n // 2),
        "open braces": lambda n: "{" * 2 * n,
    },
    "a.rs": {
        "chained fields": lambda n: ".unwrap " * n,
        "calls in one line": lambda n: "fn f() { " + "a.unwrap(); " * n + "}",
        "macros in a macro": lambda n: "m!(" + "panic!() " * n + ")",
        "chained calls": lambda n: "fn f() { a" + ".unwrap()" * n + " }",
    },
}
PARSERS = {"a.cs": "A<", "a.go": "case a:", "a.c": "a=>"}
"""Content on which the parser of ast-grep itself takes quadratic time."""


def count_refusals() -> None:
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)
    refused: Counter[str] = Counter()
    samples = defaultdict(list)
    start = time.perf_counter()
    for path in files:
        content = path.read_bytes()
        lines = content.decode("utf-8", "replace").split("\n")
        findings = scan_file(ALL, path.name, content)
        refused.update({finding.rule for finding in findings} | {group_name(finding.rule) for finding in findings})
        for finding in findings:
            place = f"{path.relative_to(root)}:{finding.line + 1}:{finding.column + 1}"
            samples[finding.rule].append(f"{place}: {lines[finding.line].strip()[:90]}")
    seconds = time.perf_counter() - start
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB, {seconds:.1f} s")
    for rule, count in sorted(refused.items()):
        print(f"{rule:22} {count:5} files {100 * count / len(files):5.1f} %   {len(samples[rule]) or '':>6}")
    shown = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for rule, lines in sorted(samples.items()):
        for line in lines[:: max(1, len(lines) // shown)][:shown] if shown else ():
            print(f"{rule}  {line}")


def measure_growth(n=40_000):
    print(f"8 KB, secrets alone: {best_seconds('a.txt', b'a' * 8192, ContentPolicy()) * 1e6:.0f} us")
    for name, shapes in HOSTILE.items():
        for shape, text in shapes.items():
            print_growth(name, shape, text(n).encode(), text(2 * n).encode())
    for name, part in PARSERS.items():
        print_growth(name, f"parser alone: {part}", part.encode() * 1000, part.encode() * 2000)


def print_growth(name, shape, content, doubled):
    single, double = best_seconds(name, content), best_seconds(name, doubled)
    times = f"{single * 1e3:8.1f} ms, twice {double * 1e3:8.1f} ms: {double / single:.2f}"
    print(f"{name:6} {shape:26} {len(content):>9} B {times}")


def best_seconds(name, content, policy=ALL):
    times = []
    for _ in range(3):
        start = time.perf_counter()
        scan_file(policy, name, content)
        times.append(time.perf_counter() - start)
    return min(times)


def group_name(rule: str) -> str:
    return {"secret": "ALL SECRETS", "stub": "ALL STUBS", "rust": "ALL RUST"}[rule.partition("-")[0]]


if __name__ == "__main__":
    measure_growth() if sys.argv[1:] == ["twice"] else count_refusals()
