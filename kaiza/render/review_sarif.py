"""A review as SARIF 2.1.0: only what a reviewer should look at, never a change that Kaiza made under a plan."""

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from kaiza.domain.review.findings import SOUND_VERDICTS
from kaiza.domain.review.report import ReviewReport
from kaiza.render.terminal import escape

SCHEMA_URI = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RECORD_RULE, UNGOVERNED_RULE, ATTEMPT_RULE = "record-not-intact", "changed-without-kaiza", "attempt-outside-the-plan"
_RULES = {
    RECORD_RULE: "The audit log is not intact.",
    UNGOVERNED_RULE: "A file changed without Kaiza.",
    ATTEMPT_RULE: "An agent asked for something that its plan or its role does not allow. It was refused.",
}
_BASE_ID = "%SRCROOT%"
# In messages, SARIF makes links of square brackets.
_LINK_CHARACTER = re.compile(r"([\\\[\]])")


def encode_sarif(report: ReviewReport) -> dict[str, Any]:
    """The report as a SARIF log with one run."""
    driver = {
        "name": "Kaiza",
        "semanticVersion": report.source.kaiza,
        "rules": [
            {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": "warning"}}
            for rule, text in _RULES.items()
        ],
    }
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_BASE_ID: {"description": {"text": "The workspace's root."}}},
        "columnKind": "unicodeCodePoints",
        "results": list(_results(report)),
    }
    return {"$schema": SCHEMA_URI, "version": "2.1.0", "runs": [run]}


def _results(report: ReviewReport) -> Iterator[dict[str, Any]]:
    if report.source.verdict not in SOUND_VERDICTS:
        yield _result(RECORD_RULE, "error", f"The audit log is {_plain(report.source.verdict)}.", "")
    for file in report.ungoverned.files:
        text = f"{_plain(file.path)} was {file.change} without Kaiza. {file.note}"
        lines = [line.new_number for hunk in file.diff.hunks for line in hunk.lines if line.author is not None]
        first = next((number for number in lines if number is not None), None)
        result = _result(UNGOVERNED_RULE, "warning", text, f"{file.change}:{file.path}")
        yield {**result, "locations": [_location(file.path, first)]}
    for refusal in report.refusals:
        if refusal.tone == "bad":
            on = f" on {_plain(', '.join(refusal.paths))}" if refusal.paths else ""
            what = f"{refusal.words}: {_plain(refusal.tool_name)}{on}"
            text = f"{what} was refused in record {refusal.seq} ({_plain(refusal.error_code)})."
            result = _result(ATTEMPT_RULE, "warning", text, refusal.request_id)
            yield {**result, "locations": [_location(path, None) for path in refusal.paths[:1]]}


def _result(rule: str, level: str, text: str, identity: str) -> dict[str, Any]:
    fingerprint = sha256(f"{rule}\0{identity}".encode(errors="surrogatepass")).hexdigest()
    return {
        "ruleId": rule,
        "ruleIndex": list(_RULES).index(rule),
        "level": level,
        "message": {"text": text},
        "partialFingerprints": {"kaiza/v1": fingerprint},
    }


def _location(path: str, line: int | None) -> dict[str, Any]:
    encoded = quote(path, safe="/", errors="surrogateescape")
    artifact = {"uri": f"file://{encoded}"} if path.startswith("/") else {"uri": encoded, "uriBaseId": _BASE_ID}
    # Code scanning shows only results that have a line; a whole file is shown at its first.
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line or 1}}}


def _plain(text: str) -> str:
    """A text that is not Kaiza's own: control characters by name, and no links."""
    return _LINK_CHARACTER.sub(r"\\\1", escape(text))
