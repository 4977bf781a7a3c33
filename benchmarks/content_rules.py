"""How many files of this Python's standard library each content rule would refuse, were they new.

With a number as argument it also shows that many findings of each rule, evenly spread, to be looked at. With `twice` it
shows instead what a write of 8 KB costs, and how the time grows from hostile content to twice as much; the bar is 2.5.
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
        "beginnings of keys": lambda n: "AKI" * 2 * n,
        "names of keys": lambda n: "aws_secret_access_" * n,
        "tokens in one line": lambda n: ("é " + GITHUB) * (n // 8),
        "zeros": lambda n: "\0" * 10 * n,
        "short lines": lambda n: "x\n" * 10 * n,
    },
    "a.py": {
        "hashes": lambda n: "x = (" + "#" * 10 * n,
        "colons": lambda n: "x = (\nexcept" + " :" * 5 * n,
        "open strings": lambda n: "x = " + "{" * 4000 + "'\\" * 5 * n,
        "open brackets": lambda n: "(" * 10 * n,
        "fields of a string": lambda n: "x = f'" + "{a}" * 5 * n + "'",
        "a long line, a note": lambda n: "x = [" + "ü," * n + "] # FIXMES",
        "empty functions": lambda n: "def f(): pass\n" * (n // 4),
    },
    "a.js": {
        "slashes, over 2 MiB": lambda n: "/" * 60 * n,
        "notes": lambda n: "/* FIXME */" * n,
        "functions in one line": lambda n: "function f(){}" * n,
        "catches in one line": lambda n: "try{}catch{}" * n,
        "classes in each other": lambda n: "class A { f(a =\n" * (n // 2) + "1" + ") {} }\n" * (n // 2),
        "open braces": lambda n: "{" * 2 * n,
    },
    "a.rs": {
        "fields in each other": lambda n: ".unwrap " * n,
        "calls in one line": lambda n: "fn f() { " + "a.unwrap(); " * n + "}",
        "macros in a macro": lambda n: "m!(" + "panic!() " * n + ")",
        "calls in each other": lambda n: "fn f() { a" + ".unwrap()" * n + " }",
    },
}
PARSERS = {"a.cs": "A<", "a.go": "case a:", "a.c": "a=>"}
"""Where the parser that ast-grep brings is slow by itself; what Kaiza does with the tree is not."""


def main() -> None:
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)
    refused: Counter[str] = Counter()
    places = defaultdict(list)
    start = time.perf_counter()
    for path in files:
        content = path.read_bytes()
        lines = content.decode("utf-8", "replace").split("\n")
        findings = scan_file(ALL, path.name, content)
        refused.update({finding.rule for finding in findings} | {kind(finding.rule) for finding in findings})
        for finding in findings:
            place = f"{path.relative_to(root)}:{finding.line + 1}:{finding.column + 1}"
            places[finding.rule].append(f"{place}: {lines[finding.line].strip()[:90]}")
    seconds = time.perf_counter() - start
    print(f"{len(files)} files, {sum(path.stat().st_size for path in files) / 1e6:.1f} MB, {seconds:.1f} s")
    for rule, count in sorted(refused.items()):
        print(f"{rule:22} {count:5} files {100 * count / len(files):5.1f} %   {len(places[rule]) or '':>6}")
    shown = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for rule, found in sorted(places.items()):
        for line in found[:: max(1, len(found) // shown)][:shown] if shown else ():
            print(f"{rule}  {line}")


def twice(n=40_000):
    print(f"8 KB, secrets alone: {seconds('a.txt', b'a' * 8192, ContentPolicy()) * 1e6:.0f} us")
    for name, shapes in HOSTILE.items():
        for shape, text in shapes.items():
            report(name, shape, text(n).encode(), text(2 * n).encode())
    for name, one in PARSERS.items():
        report(name, f"parser alone: {one}", one.encode() * 1000, one.encode() * 2000)


def report(name, shape, once, again):
    one, two = seconds(name, once), seconds(name, again)
    print(f"{name:6} {shape:24} {len(once):>9} B {one * 1e3:8.1f} ms, twice {two * 1e3:8.1f} ms: {two / one:.2f}")


def seconds(name, content, policy=ALL):
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        scan_file(policy, name, content)
        taken.append(time.perf_counter() - start)
    return min(taken)


def kind(rule: str) -> str:
    return {"secret": "ALL SECRETS", "stub": "ALL STUBS", "rust": "ALL RUST"}[rule.partition("-")[0]]


if __name__ == "__main__":
    twice() if sys.argv[1:] == ["twice"] else main()
