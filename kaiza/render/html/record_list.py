"""Every record: the data of the virtual list, and the drawer for one record.

The columns are arrays with one dictionary for all texts that repeat. They are deflated, and so are whole records in
blocks, which the browser unpacks when one of them is opened.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from datetime import datetime

from kaiza.domain.review.report import ACTOR_NAMES, RecordRow, ReviewReport
from kaiza.render.html.markup import EMPTY, Html, escape, render_section, script_data, tag
from kaiza.render.terminal import format_count

_PER_BLOCK = 500
_GROUPS = (("all", "All"), ("change", "Changes"), ("refusal", "Refusals"), ("read", "Others"))
_COLUMNS = (
    ("#", "right"),
    ("Time (UTC)", "wide"),
    ("Actor", "wide"),
    ("Tool", None),
    ("What", "wide"),
    ("Outcome", None),
    ("ms", "right wide"),
)


def render_record_list(report: ReviewReport) -> Html:
    """The section with the filter, the list and the drawer."""
    hint = "tool, path, code ( / )"
    query = {"id": "query", "type": "search", "aria-label": "Filter the records", "placeholder": hint}
    groups = (
        tag("button", {"data-kind": name, "aria-pressed": "true" if name == "all" else "false"}, escape(label))
        for name, label in _GROUPS
    )
    titles = (tag("span", {"role": "columnheader", "class": name}, escape(title)) for title, name in _COLUMNS)
    omitted = EMPTY
    if report.omitted_records:
        words = f"{format_count(report.omitted_records, 'older record')} left out; `kaiza audit show` lists them."
        omitted = tag("p", {"class": "soft"}, escape(words))
    return render_section(
        "records",
        "Every record",
        "times are UTC; choose a number to see the exact record",
        tag("div", {"class": "filter"}, tag("input", query), *groups, tag("output", {"id": "count"})),
        tag(
            "div",
            {"id": "record-list", "class": "records", "role": "table", "aria-label": "Records", "tabindex": 0},
            tag("div", {"role": "rowgroup"}, tag("div", {"class": "row head", "role": "row"}, *titles)),
            tag("div", {"class": "body", "role": "rowgroup"}),
        ),
        omitted,
        _render_drawer(),
        script_data("record-data", pack_records(report.records)),
    )


def _render_drawer() -> Html:
    buttons = (
        tag("button", {"id": "record-before", "aria-label": "Previous record"}, escape("↑")),
        tag("button", {"id": "record-after", "aria-label": "Next record"}, escape("↓")),
        tag("button", {"data-close": ""}, escape("Close")),
    )
    header = tag("header", {}, tag("h2", {"id": "record-title"}, escape("Record")), *buttons)
    copy = tag("button", {"id": "record-copy", "data-copy": ""}, escape("Copy"))
    attributes = {"id": "record", "class": "drawer", "aria-labelledby": "record-title"}
    summary = tag("p", {"id": "record-summary", "class": "soft"})
    return tag("dialog", attributes, header, summary, tag("pre", {"id": "record-text", "tabindex": 0}), copy)


def pack_records(records: Sequence[RecordRow]) -> dict[str, object]:
    """The list's data: its columns with the words they refer to, and the blocks of whole records, all deflated."""
    words: dict[str, int] = {}

    def index(text: str) -> int:
        return words.setdefault(text, len(words))

    columns: dict[str, object] = {
        "seq": [record.seq for record in records],
        "at": [_to_milliseconds(record.at) for record in records],
        "role": [index(ACTOR_NAMES[record.actor]) for record in records],
        "tool": [index(record.tool_name) for record in records],
        "what": [index(record.what) for record in records],
        "outcome": [index(record.outcome) for record in records],
        "ms": [record.duration_ms for record in records],
        "kind": ["read" if record.group == "other" else record.group for record in records],
    }
    columns["words"] = list(words)
    return {
        "columns": _pack_text(json.dumps(columns, separators=(",", ":"))),
        "per_block": _PER_BLOCK,
        "blocks": [
            _pack_text("\n".join(record.line for record in records[start : start + _PER_BLOCK]))
            for start in range(0, len(records), _PER_BLOCK)
        ],
    }


def _pack_text(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), 9)).decode()


def _to_milliseconds(timestamp: str) -> int | None:
    """Milliseconds since 1970; None for a time that a damaged log has in another form."""
    try:
        return round(datetime.fromisoformat(timestamp).timestamp() * 1000)
    except ValueError:
        return None
