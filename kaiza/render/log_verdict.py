"""A verdict on the log in words: what it proves, and what to do next."""

from collections.abc import Mapping
from typing import Any

from kaiza.render.terminal import escape

_FAULT_MEANINGS = {
    "edited": "its bytes are not the ones that were hashed",
    "dropped": "records before it are gone",
    "reordered": "it is not in its place",
    "inserted": "it does not belong there",
    "unreadable": "it is no record",
}
_DAMAGE_ADVICE = (
    "Changes are refused until a person has looked; reads go on and are recorded. "
    'Compare with a copy you trust, then begin a new log with: kaiza audit accept --reason "what you found"'
)


def describe(told: Mapping[str, Any]) -> list[str]:
    """The verdict, what it means, and the next step; a line each."""
    return (
        _DESCRIPTIONS[told["verdict"]](told)
        if told["verdict"] in _DESCRIPTIONS
        else [f"Verdict: {escape(str(told['verdict']))}."]
    )


def format_record_count(count: int) -> str:
    """A number of records as a person says it."""
    return "1 record" if count == 1 else f"{count:,} records"


def _describe_intact(told: Mapping[str, Any]) -> list[str]:
    head, count = told.get("head"), told["records"]
    if not count:
        return ["Intact: nothing has been recorded yet."]
    first = f"Intact: {format_record_count(count)}, unaltered and in order."
    if told.get("anchored"):
        proof = (
            "The log goes at least as far as the head that Kaiza keeps outside the workspace: its end was not cut off."
        )
    else:
        proof = (
            "There is no head outside the workspace to hold it against, "
            "so this does not show whether its end was cut off or the whole log replaced."
        )
    if head is None:
        return [first, proof]
    keep = f"Keep this head elsewhere, and hold the log against it with --head: {head['seq']}:{head['entry_hash']}"
    return [first, proof, keep]


def _describe_torn(told: Mapping[str, Any]) -> list[str]:
    return [
        f"Torn tail: {_sound_records(told)} intact; after that comes an incomplete line, as a crash leaves it.",
        "Nobody was told that it was written. The next call sets it aside and records that; there is nothing to do.",
    ]


def _describe_broken(told: Mapping[str, Any]) -> list[str]:
    fault = told.get("first_fault") or {}
    why = str(fault.get("why", "")) or "unknown"
    where = f" at record {fault['seq']}" if "seq" in fault else ""
    reason = _FAULT_MEANINGS.get(why)
    return [
        f"Broken{where}: {escape(why)}" + (f", {reason}." if reason else "."),
        f"What comes before it, {format_record_count(told['records'])}, is sound; what follows cannot be trusted.",
        _DAMAGE_ADVICE,
    ]


def _describe_cut_off(told: Mapping[str, Any]) -> list[str]:
    return [
        f"Cut off: {_sound_records(told)} intact, but a later head is known: the end is gone.",
        _DAMAGE_ADVICE,
    ]


def _describe_replaced(told: Mapping[str, Any]) -> list[str]:
    return [
        f"Replaced: {_sound_records(told)} intact in itself, but not what was written here before.",
        _DAMAGE_ADVICE,
    ]


def _sound_records(told: Mapping[str, Any]) -> str:
    return format_record_count(told["records"]) + (" is" if told["records"] == 1 else " are")


def _describe_missing(_told: Mapping[str, Any]) -> list[str]:
    return ["Missing: there was a log, and it is gone.", _DAMAGE_ADVICE]


_DESCRIPTIONS = {
    "intact": _describe_intact,
    "torn_tail": _describe_torn,
    "broken": _describe_broken,
    "cut_off": _describe_cut_off,
    "replaced": _describe_replaced,
    "missing": _describe_missing,
}
