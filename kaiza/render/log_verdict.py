"""The verdict on the audit log in sentences: what it proves, and what to do next."""

from collections.abc import Mapping
from typing import Any

from kaiza.render.terminal import escape, format_count

_FAULT_MEANINGS = {
    "edited": "its content does not match its hash",
    "dropped": "records before it are missing",
    "reordered": "it is out of order",
    "inserted": "it does not belong here",
    "unreadable": "it is not a valid record",
}
_DAMAGE_ADVICE = (
    "Changes are refused until a person accepts the damage; reads still work and are recorded. Compare the log with "
    'a copy you trust, then start a new log: `kaiza audit accept --reason "what you found"`'
)


def describe(verdict: Mapping[str, Any]) -> list[str]:
    """The verdict, what it means, and the next step; one sentence or two a line."""
    name, count = verdict["verdict"], verdict.get("records", 0)
    if name == "intact":
        return _describe_intact(verdict)
    valid = f"{format_count(count, 'record')} {'is' if count == 1 else 'are'} valid"
    if name == "broken":
        return [*_describe_fault(verdict, valid), _DAMAGE_ADVICE]
    damage = {
        "cut_off": f"Cut off: {valid}, but a later checkpoint is known: the end of the log is missing.",
        "replaced": f"Replaced: {valid}, but not the ones that were written here before.",
        "missing": "Missing: there was a log here, and it is gone.",
    }
    if name in damage:
        return [damage[name], _DAMAGE_ADVICE]
    if name != "torn_tail":
        return [f"Verdict: {escape(str(name))}."]
    return [
        f"Torn tail: {valid}; after that comes an incomplete line, as a crash leaves it.",
        "That line was never acknowledged. The next call sets it aside and records that; there is nothing to do.",
    ]


def describe_states(count: int) -> str:
    """Warning that sessions were recorded from several state directories; none of them has all checkpoints."""
    return f"its sessions were recorded from {count} state directories"


def _describe_intact(verdict: Mapping[str, Any]) -> list[str]:
    head, count = verdict.get("head"), verdict["records"]
    if not count:
        return ["Intact: nothing has been recorded yet."]
    lines = [f"Intact: {format_count(count, 'record')}, unaltered and in order."]
    if verdict.get("anchored"):
        lines.append("The log matches the checkpoint kept outside the workspace: nothing was cut off the end.")
    else:
        lines.append(
            "No checkpoint is kept outside the workspace, so this does not show whether the end was cut off "
            "or the whole log replaced."
        )
    if head is not None:
        lines.append("Save this checkpoint outside this machine; verify against it later:")
        # Two lines of shell: in one, the command and its 64 digits would be wider than 80 columns.
        lines += ["  kaiza audit verify --head \\", f"    {head['seq']}:{head['entry_hash']}"]
    return lines


def _describe_fault(verdict: Mapping[str, Any], valid: str) -> list[str]:
    fault = verdict.get("first_fault") or {}
    reason = str(fault.get("why", "")) or "unknown"
    where = f" at record {fault['seq']}" if "seq" in fault else ""
    meaning = f", {_FAULT_MEANINGS[reason]}" if reason in _FAULT_MEANINGS else ""
    return [f"Broken{where}: {escape(reason)}{meaning}.", f"Before it, {valid}; what follows cannot be trusted."]
