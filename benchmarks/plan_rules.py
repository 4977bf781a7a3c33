"""Time the rules of one change, with a plan of 50 globs and logs of different lengths. The limit is 150 µs p50.

Plan usage is projected from the log record by record, so the time does not depend on the length of the log.
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
from kaiza.policy.judge import CHANGE_RULES, PLAN_RULES, RESULT_RULES, SCOPE_RULES, judge
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
CARD = ToolCard("write_file", "Write", "", "files", "change", ("WINDSURF",), needs_session=True, idempotent=True)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "plans").mkdir()
        Path(directory, "plans", "PLAN-1.md").write_text(PLAN)
        with ConfinedRoot(directory) as workspace:
            print_medians(PlanFiles(workspace))


def print_medians(plans: PlanFiles) -> None:
    start = time.perf_counter()
    stored = plans.read("PLAN-1")
    assert stored is not None
    print(f"first parse, including the import of the YAML reader: {(time.perf_counter() - start) * 1000:.1f} ms")
    plan_hash = stored.parsed.plan_hash
    for records in (0, 10_000, 100_000, 1_000_000):
        usage = PlanUsage(dict.fromkeys((f"src/part1/f{number}.py" for number in range(records)), 1), 9, 9, records)
        audit_state = AuditState(seals={"PLAN-1": PlanSeal(plan_hash, "edited", None, 1)}, usage={"PLAN-1": usage})
        rules, total = zip(*(time_judgement(plans, audit_state, plan_hash) for _ in range(2000)), strict=True)
        medians = " ".join(f"{statistics.median(times):6.1f}" for times in (rules, total))
        print(f"{records:>9} records: rules alone, and rules with parsing the plan, p50 in µs: {medians}")


def time_judgement(plans: PlanFiles, audit_state: AuditState, plan_hash: str) -> tuple[float, float]:
    start = time.perf_counter()
    stored = plans.find_by_hash(plan_hash)
    parsed = time.perf_counter()
    path = parse("src/last/file.py")
    assert stored is not None
    case = Case(
        card=CARD,
        arguments={"plan_hash": plan_hash},
        now=NOW,
        audit_state=audit_state,
        session=Session("s", "WINDSURF", "/w", NOW, NOW),
        paths=(path,),
        requested_operations=(RequestedOperation("modify", path),),
        plan_id="PLAN-1",
        parsed=stored.parsed,
        lines=1,
        bytes=1,
    )
    judge((*CHANGE_RULES, *PLAN_RULES, *SCOPE_RULES, *RESULT_RULES), case)
    end = time.perf_counter()
    return (end - parsed) * 1e6, (end - start) * 1e6


if __name__ == "__main__":
    main()
