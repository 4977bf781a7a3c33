"""What the rules of one change cost, with a plan of 50 globs and a log of any length behind it; the bar is 150 µs p50.

The usage of a plan is a fold kept up to date record by record, so the length of the log does not come into it.
"""

import statistics
import tempfile
import time
from pathlib import Path

from kaiza.domain.card import Card
from kaiza.domain.paths import parse
from kaiza.domain.plan_usage import Usage
from kaiza.domain.scope import Wanted
from kaiza.domain.session import Facts, Seal, Session
from kaiza.policy.case import Case
from kaiza.policy.judge import APPROVAL_AND_PHASE, CHANGING, IN_SCOPE, ON_RESULT, judge
from kaiza.store.plans import Plans
from kaiza.store.workspace import Workspace

NOW = "2026-11-18T12:00:00.000Z"
GLOBS = ", ".join(f'"src/part{number}/**/*.py"' for number in range(49))
PLAN = f"""---
kaiza_plan: 1
plan_id: PLAN-1
title: Fifty patterns
status: APPROVED
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: [{GLOBS}, "src/last/*.py"]}}
limits: {{files: 2000000, operations: 2000000, lines: 80000000, bytes: 2000000000}}
---
"""
CARD = Card("write_file", "Write", "", "files", "core", "change", ("WINDSURF",), needs_session=True, idempotent=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "plans").mkdir()
        Path(directory, "plans", "PLAN-1.md").write_text(PLAN)
        with Workspace(directory) as workspace:
            measure(Plans(workspace))


def measure(plans: Plans) -> None:
    first = time.perf_counter()
    stored = plans.read("PLAN-1")
    assert stored is not None
    print(f"first reading, with the YAML reader loaded: {(time.perf_counter() - first) * 1000:.1f} ms")
    plan_hash = stored.reading.plan_hash
    for records in (0, 10_000, 100_000, 1_000_000):
        used = Usage(dict.fromkeys((f"src/part1/f{number}.py" for number in range(records)), 1), 9, 9, records)
        facts = Facts(seals={"PLAN-1": Seal(plan_hash, "edited", None, 1)}, usage={"PLAN-1": used})
        rules, whole = zip(*(timed(plans, facts, plan_hash) for _ in range(2000)), strict=True)
        told = " ".join(f"{statistics.median(times):6.1f}" for times in (rules, whole))
        print(f"{records:>9} records: rules and rules with reading the plan's file, p50 in µs: {told}")


def timed(plans: Plans, facts: Facts, plan_hash: str) -> tuple[float, float]:
    start = time.perf_counter()
    stored = plans.by_hash(plan_hash)
    read = time.perf_counter()
    path = parse("src/last/file.py")
    assert stored is not None
    case = Case(
        card=CARD,
        arguments={"plan_hash": plan_hash},
        now=NOW,
        facts=facts,
        session=Session("s", "WINDSURF", "/w", NOW, NOW),
        paths=(path,),
        wanted=(Wanted("modify", path),),
        plan_id="PLAN-1",
        reading=stored.reading,
        lines=1,
        bytes=1,
    )
    judge((*CHANGING, *APPROVAL_AND_PHASE, *IN_SCOPE, *ON_RESULT), case)
    end = time.perf_counter()
    return (end - read) * 1e6, (end - start) * 1e6


if __name__ == "__main__":
    main()
