"""What the rules of one change cost, with a plan of 50 globs and a log of any length behind it; the bar is 150 µs p50.

The usage of a plan is a fold kept up to date record by record, so the length of the log does not come into it.
"""

import statistics
import tempfile
import time
from pathlib import Path

from kaiza.domain.audit.projection import AuditState, PlanSeal, Session
from kaiza.domain.paths.rel_path import parse
from kaiza.domain.plans.plan import PlanUsage
from kaiza.domain.plans.scope import RequestedOperation
from kaiza.domain.tool_card import ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import APPROVAL_AND_PHASE, CHANGE_RULES, RESULT_RULES, SCOPE_RULES, judge
from kaiza.store.documents.plan_files import PlanFiles
from kaiza.store.files.confined_root import ConfinedRoot

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
CARD = ToolCard(
    "write_file", "Write", "", "files", "core", "change", ("WINDSURF",), needs_session=True, idempotent=True
)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "plans").mkdir()
        Path(directory, "plans", "PLAN-1.md").write_text(PLAN)
        with ConfinedRoot(directory) as workspace:
            measure(PlanFiles(workspace))


def measure(plans: PlanFiles) -> None:
    first = time.perf_counter()
    stored = plans.read("PLAN-1")
    assert stored is not None
    print(f"first reading, with the YAML reader loaded: {(time.perf_counter() - first) * 1000:.1f} ms")
    plan_hash = stored.parsed.plan_hash
    for records in (0, 10_000, 100_000, 1_000_000):
        used = PlanUsage(dict.fromkeys((f"src/part1/f{number}.py" for number in range(records)), 1), 9, 9, records)
        facts = AuditState(seals={"PLAN-1": PlanSeal(plan_hash, "edited", None, 1)}, usage={"PLAN-1": used})
        rules, whole = zip(*(timed(plans, facts, plan_hash) for _ in range(2000)), strict=True)
        told = " ".join(f"{statistics.median(times):6.1f}" for times in (rules, whole))
        print(f"{records:>9} records: rules and rules with reading the plan's file, p50 in µs: {told}")


def timed(plans: PlanFiles, facts: AuditState, plan_hash: str) -> tuple[float, float]:
    start = time.perf_counter()
    stored = plans.find_by_hash(plan_hash)
    read = time.perf_counter()
    path = parse("src/last/file.py")
    assert stored is not None
    case = Case(
        card=CARD,
        arguments={"plan_hash": plan_hash},
        now=NOW,
        audit_state=facts,
        session=Session("s", "WINDSURF", "/w", NOW, NOW),
        paths=(path,),
        requested_operations=(RequestedOperation("modify", path),),
        plan_id="PLAN-1",
        parsed=stored.parsed,
        lines=1,
        bytes=1,
    )
    judge((*CHANGE_RULES, *APPROVAL_AND_PHASE, *SCOPE_RULES, *RESULT_RULES), case)
    end = time.perf_counter()
    return (end - read) * 1e6, (end - start) * 1e6


if __name__ == "__main__":
    main()
