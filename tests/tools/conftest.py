import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.paths.protected_names import is_unreadable
from kaiza.store.config.schema_registry import SchemaRegistry
from kaiza.store.files import tree_walk
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.tools.registry import AGENT_TOOLS

SCHEMAS = SchemaRegistry()


def text_of(output):
    return json.dumps(output, ensure_ascii=False, separators=(",", ":")).encode()


def line_of(output):
    """The answer as it goes over the wire, in the longest possible frame."""
    text = text_of(output).decode()
    result = {
        "content": [{"type": "text", "text": text}],
        "structuredContent": output,
        "isError": False,
        "_meta": {"kaiza/receipt": {"seq": 2**53, "entry_hash": "0" * 64}},
    }
    message = {"jsonrpc": "2.0", "id": "i" * 200, "result": result}
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass
class Reader:
    """Calls the reading tools on a real workspace, and validates every answer against its schema and size.

    It is also their view of the workspace.
    """

    path: Path
    workspace: ConfinedRoot
    caps: Caps = field(default_factory=Caps)
    is_late: bool = False
    diagnostics: list[str] = field(default_factory=list)
    """Those of the last answer."""

    @property
    def root(self):
        return str(self.path)

    def call(self, name, /, **arguments):
        io = SCHEMAS.load_tool_io(name)
        io.input.validate(arguments)
        tool = AGENT_TOOLS[name]
        answer = tool.run(tool.parse(arguments, self.root), self)
        output, self.diagnostics = answer.output, list(answer.diagnostics)
        io.output.validate(output)
        assert len(line_of(output)) < self.caps.response_bytes
        if not {"max_lines", "pageSize"} & arguments.keys():
            assert len(text_of(output)) <= self.caps.answer_bytes
        assert self.root not in output["summary"]
        assert len(output["summary"]) <= 200
        return output

    def code(self, name, /, **arguments):
        with pytest.raises(errors.SystemError) as caught:
            self.call(name, **arguments)
        assert self.root not in json.dumps([caught.value.human_message, caught.value.cause])
        return caught.value.error_code

    def pages(self, name, /, **arguments):
        """All items, page by page."""
        pages = [self.call(name, **arguments)]
        while "nextCursor" in pages[-1]:
            pages.append(self.call(name, cursor=pages[-1]["nextCursor"], **arguments))
        return [page["items"] for page in pages]

    def write(self, path, content=b""):
        target = self.path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        return target

    def _judge(self, real):
        if is_unreadable(real):
            raise errors.SystemError.tool_failure("POLICY_VIOLATION", invariant_id="READ_PROTECTED")

    def open_file(self, path):
        return self.workspace.open_file(path, self._judge)

    def open_directory(self, path):
        return self.workspace.open_directory(path, self._judge)

    def stat(self, path):
        return self.workspace.stat(path, lambda _real: None)

    def walk(self, start, *, include_ignored, over, since=""):
        return tree_walk.TreeWalk(self.workspace, start, include_ignored=include_ignored, over=over, since=since)

    def is_unreadable(self, path):
        return is_unreadable(path)

    def report_progress(self, done, total):
        assert total is None or done <= total

    def is_out_of_time(self):
        return self.is_late


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    return root


@pytest.fixture
def reader(root):
    with ConfinedRoot(str(root)) as workspace:
        yield Reader(root, workspace)
