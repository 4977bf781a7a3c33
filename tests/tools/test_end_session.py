"""The answer of `end_session`: bounded, and one sentence on what changed without Kaiza."""

import json
import uuid
from dataclasses import dataclass, field, replace

import pytest

from kaiza.domain.audit.projection import Session
from kaiza.domain.caps import Caps
from kaiza.domain.manifest.report import Coverage, OutsideChange, OutsideReport
from kaiza.store.config.schema_registry import SchemaRegistry
from kaiza.tools.session import end_session

SCHEMAS = SchemaRegistry().load_tool_io("end_session")


@dataclass
class View:
    changes: int
    path: str = "src/file-{}.py"
    coverage: Coverage = field(default_factory=Coverage)
    caps = Caps()
    session = Session("s", "WINDSURF", "/", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z")

    def session_changes(self):
        return []

    def end_manifest(self):
        listed = tuple(OutsideChange(self.path.format(number), "modified") for number in range(self.changes))
        return OutsideReport("s", "", "", listed, self.changes, coverage=self.coverage)


def answer(*arguments, **options):
    found = end_session.run(None, View(*arguments, **options))
    assert SCHEMAS.output.is_valid(dict(found.output))
    return found


@pytest.mark.parametrize("count", [0, 1, 199, 200, 201, 9_999])
def test_at_most_200_changes_are_listed_and_all_are_counted(count):
    output = answer(count).output

    assert (len(output["ungoverned"]), output["ungoverned_count"]) == (min(count, 200), count)


@pytest.mark.parametrize("path", ["{}" + "d" * 4_000, "{}" + "\u202e" * 1_000, "{}" + "\udcff" * 300])
def test_long_paths_never_make_the_answer_too_large(path):
    output = answer(200, path).output

    assert len(json.dumps(output, ensure_ascii=False).encode()) < 40 * 1024
    assert output["truncated"] is (len(output["ungoverned"]) < 200)
    assert output["ungoverned_count"] == 200


def test_the_summary_says_what_could_not_be_compared():
    summaries = {
        gaps: answer(1, coverage=Coverage("partial", gaps=gaps)).output["summary"]
        for gaps in (("unlisted",), ("not_bound",))
    }

    summaries[()] = answer(1).output["summary"]

    assert len(set(summaries.values())) == 3
    assert all(len(summary) <= 200 for summary in summaries.values())


def test_the_record_has_the_counts_and_the_hash_of_the_list_but_no_path():
    found = answer(3)

    assert found.detail["manifest"]["ungoverned"] == 3
    assert len(found.detail["manifest"]["sha256"]) == 64
    assert "file-1" not in json.dumps(found.detail)


@pytest.mark.parametrize("gaps", [(), ("not_bound",), ("begin_unfinished",)])
def test_the_summary_is_short_enough_whatever_was_found(gaps):
    """Too long a summary would be refused, and then the session could never end."""
    usage = dict.fromkeys(("calls", "changes", "refusals"), 999_999)
    view = View(0, coverage=Coverage("partial" if gaps else "whole", gaps=gaps))
    view.session = replace(View.session, session_id=str(uuid.UUID(int=1)), **usage)
    view.end_manifest = lambda: OutsideReport("s", "", "", (), 999_999, coverage=view.coverage)

    assert SCHEMAS.output.is_valid(dict(end_session.run(None, view).output))
