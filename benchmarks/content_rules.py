"""How many files of this Python's standard library each content rule would refuse, were they new.

With a number as argument it also shows that many findings of each rule, evenly spread, to be looked at.
"""

import sys
import sysconfig
import time
from collections import Counter, defaultdict
from pathlib import Path

from kaiza.domain.plan import Policy
from kaiza.policy.content import look

ALL = Policy(secrets=True, stubs=True, rust=True)


def main() -> None:
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)
    refused: Counter[str] = Counter()
    places = defaultdict(list)
    start = time.perf_counter()
    for path in files:
        content = path.read_bytes()
        lines = content.decode("utf-8", "replace").split("\n")
        findings = look(ALL, path.name, content)
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


def kind(rule: str) -> str:
    return {"secret": "ALL SECRETS", "stub": "ALL STUBS", "rust": "ALL RUST"}[rule.partition("-")[0]]


if __name__ == "__main__":
    main()
