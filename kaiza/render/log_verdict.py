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
    name = verdict["verdict"]
    return _DESCRIPTIONS[name](verdict) if name in _DESCRIPTIONS else [f"Verdict: {escape(str(name))}."]


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
    if head is None:
        return lines
    # Two lines of shell: in one, the command and its 64 digits would be wider than 80 columns.
    return [
        *lines,
        "Save this checkpoint outside this machine; verify against it later:",
        "  kaiza audit verify --head \\",
        f"    {head['seq']}:{head['entry_hash']}",
    ]


def _describe_torn(verdict: Mapping[str, Any]) -> list[str]:
    return [
        f"Torn tail: {_valid_records(verdict)}; after that comes an incomplete line, as a crash leaves it.",
        "That line was never acknowledged. The next call sets it aside and records that; there is nothing to do.",
    ]


def _describe_broken(verdict: Mapping[str, Any]) -> list[str]:
    fault = verdict.get("first_fault") or {}
    reason = str(fault.get("why", "")) or "unknown"
    where = f" at record {fault['seq']}" if "seq" in fault else ""
    meaning = _FAULT_MEANINGS.get(reason)
    return [
        f"Broken{where}: {escape(reason)}" + (f", {meaning}." if meaning else "."),
        f"Before it, {_valid_records(verdict)}; what follows cannot be trusted.",
        _DAMAGE_ADVICE,
    ]


def _describe_cut_off(verdict: Mapping[str, Any]) -> list[str]:
    return [
        f"Cut off: {_valid_records(verdict)}, but a later checkpoint is known: the end of the log is missing.",
        _DAMAGE_ADVICE,
    ]


def _describe_replaced(verdict: Mapping[str, Any]) -> list[str]:
    return [f"Replaced: {_valid_records(verdict)}, but not the ones that were written here before.", _DAMAGE_ADVICE]


def _describe_missing(_verdict: Mapping[str, Any]) -> list[str]:
    return ["Missing: there was a log here, and it is gone.", _DAMAGE_ADVICE]


def _valid_records(verdict: Mapping[str, Any]) -> str:
    count = verdict["records"]
    return format_count(count, "record") + (" is" if count == 1 else " are") + " valid"


_DESCRIPTIONS = {
    "intact": _describe_intact,
    "torn_tail": _describe_torn,
    "broken": _describe_broken,
    "cut_off": _describe_cut_off,
    "replaced": _describe_replaced,
    "missing": _describe_missing,
}
