"""Run logs, as tests write and read them."""

import json
from pathlib import Path

from kaiza.domain.run_event import RunError, RunEvent

PLACE = Path(".kaiza", "runs", "mcp_server", "envelope_validation")
COMPONENTS = [PLACE.parent.parent, PLACE.parent, PLACE]
MEMBERS = [
    *("ts", "runId", "agentId", "taskId", "stepId", "transport", "route", "method", "traceId", "spanId", "requestId"),
    *("status", "durationMs", "attempt", "inputBytes", "outputBytes", "metadata", "error"),
]
METADATA = ["schemaVersion", "deterministic", "dialect", "toolId", "promptId", "auditSeq"]
EVENT = RunEvent(
    transport="stdio",
    route="tools/call",
    method="tools/call",
    dialect="canonical",
    tool_id="read_file",
    agent_id="a client",
    input_bytes=120,
    output_bytes=340,
    at=1_795_000_000.25,
    seconds=0.0123,
    audit_seq=7,
)
FAILED = EVENT._replace(error=RunError("MISSING_REQUIRED_FIELD", {"missing": ["path"]}))


def run_files(root):
    """Files of all runs, oldest first by name."""
    return sorted(Path(root, PLACE).glob("*.jsonl"))


def read_run(path):
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def latest_run(root):
    """Lines of the run that `.latest` points to."""
    return read_run(Path(root, PLACE, ".latest"))
