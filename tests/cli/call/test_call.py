"""`kaiza call`: one call as a client makes it, over stdio in a real server, and over HTTP against a hostile one."""

import gzip
import json
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from agents import plan, sha
from scenes import records

from kaiza.app import App
from kaiza.server import mcp_client


@pytest.fixture
def project(workspace):
    (workspace / "a.txt").write_text("hello\nworld\n")
    return workspace


def calls(root):
    return [(record["tool_name"], record["error_code"]) for record in records(root) if record["kind"] == "call"]


def test_a_tool_is_called_in_a_session_of_its_own_which_is_ended(project, kaiza):
    result = kaiza("call", "read_file", "path=a.txt")

    assert result.status == 0
    assert "path: a.txt\n" in result.out
    assert "  │ hello\n  │ world\n" in result.out
    assert calls(project) == [("begin_session", None), ("read_file", None), ("end_session", None)]
    assert records(project)[0]["session_id"] in result.err
    assert records(project)[1]["client"].startswith("kaiza ")
    assert not (project / ".kaiza" / "runs").exists()
    assert records(project)[1]["role"] == "WINDSURF"


def test_a_tool_that_needs_no_session_is_called_without_one(project, kaiza):
    result = kaiza("call", "server_info")

    assert (result.status, result.err) == (0, "")
    assert calls(project) == [("server_info", None)]


def test_a_session_is_begun_by_one_call_and_used_by_the_next(project, kaiza):
    begun = json.loads(kaiza("call", "begin_session", "role=WINDSURF", "--raw").out)["structuredContent"]
    result = kaiza("call", "read_file", "path=a.txt", f"session_id={begun['session_id']}")

    assert (result.status, result.err) == (0, "")
    assert calls(project) == [("begin_session", None), ("read_file", None)]


def test_the_role_of_the_session_is_the_one_named_or_executor(project, kaiza):
    kaiza("call", "list_plans", "--role", "planner")
    kaiza("call", "save_plan", "plan_id=PLAN-1", "content=nothing")
    roles = {record["tool_name"]: record["role"] for record in records(project)}

    assert (roles["list_plans"], roles["save_plan"]) == ("ANTIGRAVITY", "WINDSURF")


@pytest.mark.parametrize(
    "words", [["server_info", "--role", "WINDSURF"], ["read_file", "session_id=x", "--role", "WINDSURF"]]
)
def test_a_role_for_a_call_that_begins_no_session_is_a_usage_error(project, kaiza, words):
    assert kaiza("call", *words).status == 2
    assert calls(project) == []


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["read_file", "path=../../etc/passwd"], ["PATH_TRAVERSAL_BLOCKED"]),
        (["read_files", "colour=red"], ["paths", "colour"]),
        (["context_resolve", "cache=none", "query=x", "budget=10"], ["cache_missing"]),
    ],
)
def test_a_refused_call_exits_with_1_and_shows_its_code_and_faults(project, kaiza, words, shown):
    result = kaiza("call", *words)

    assert (result.status, result.out) == (1, "")
    assert all(word in result.err for word in shown)


def test_notes_on_a_result_are_shown_on_standard_error(project, kaiza):
    (project / ".gitignore").write_text("build\n")
    (project / "build").mkdir()
    result = kaiza("call", "project.references.missing")

    assert result.status == 0
    assert "Ignored by .gitignore: 1 directories." in result.err
    assert "brokenReferences: []" in result.out


def test_a_refused_session_exits_with_1(project, kaiza, tmp_path):
    (tmp_path / "plain").mkdir()
    result = kaiza("call", "read_file", "path=a.txt", "--workspace", str(tmp_path / "plain"))

    assert result.status == 1
    assert "SESSION_INITIALIZATION_FAILED" in result.err
    assert list((tmp_path / "plain").iterdir()) == []


def test_raw_prints_the_result_as_the_server_sent_it(project, kaiza):
    good = json.loads(kaiza("call", "read_file", "path=a.txt", "--raw").out)
    refused = kaiza("call", "read_file", "path=none", "--raw")

    assert good["structuredContent"]["content"] == "hello\nworld\n"
    assert good["_meta"]["kaiza/receipt"]["seq"] == 2
    assert json.loads(json.loads(refused.out)["content"][0]["text"])["error_code"] == "FILE_NOT_FOUND"
    assert refused.status == 1


def test_values_are_text_for_strings_and_json_for_everything_else(project, kaiza):
    words = ["path=a.txt", "start_line=1", "max_lines=1"]
    (project / "1").write_text("a file named 1\n")

    assert "  │ world\n" in kaiza("call", "read_file", *words).out
    assert "a file named 1" in kaiza("call", "read_file", "path=1").out
    assert "INVALID" in kaiza("call", "read_file", "path=a.txt", 'start_line="1"').err
    assert kaiza("call", "read_files", 'paths=["a.txt"]').status == 0


@pytest.mark.parametrize("words", [["path"], ["=a"], ["path=a", "path=b"], ["path=a", "start_line=one"]])
def test_words_that_are_no_arguments_are_a_usage_error_and_nothing_is_called(project, kaiza, words):
    result = kaiza("call", "read_file", *words)

    assert (result.status, result.out) == (2, "")
    assert calls(project) == []


def test_arguments_come_from_a_file_and_words_replace_its_members(project, kaiza, tmp_path):
    (tmp_path / "given.json").write_text('{"path": "none", "start_line": 1}')
    result = kaiza("call", "read_file", "path=a.txt", "--json", str(tmp_path / "given.json"))

    assert result.status == 0
    assert "  │ world\n" in result.out
    assert "hello" not in result.out


@pytest.mark.parametrize("content", [None, "{", "[]", '"path"', '{"path": NaN}'])
def test_a_file_without_a_json_object_is_a_usage_error(project, kaiza, tmp_path, content):
    if content is not None:
        (tmp_path / "given.json").write_text(content)

    assert kaiza("call", "read_file", "--json", str(tmp_path / "given.json")).status == 2
    assert calls(project) == []


def test_an_unknown_tool_is_a_usage_error_that_suggests_names(project, kaiza):
    result = kaiza("call", "reed_file", "path=a.txt")

    assert (result.status, result.out) == (2, "")
    assert "read_file" in result.err
    assert calls(project) == []


def test_a_file_is_changed_under_an_approved_plan_only(project, kaiza):
    plan_hash = plan(project, scope='{modify: ["a.txt"]}')
    before = sha((project / "a.txt").read_bytes())
    words = ["call", "write_file", "path=a.txt", "content=new", f"expected_hash={before}"]

    assert kaiza(*words, "plan_hash=" + "0" * 64).status == 1
    assert (project / "a.txt").read_text() == "hello\nworld\n"
    assert kaiza(*words, f"plan_hash={plan_hash}").status == 0
    assert (project / "a.txt").read_text() == "new"


def test_a_workspace_that_cannot_be_served_exits_with_3_and_says_why(project, kaiza):
    result = kaiza("call", "server_info", "--workspace", str(project / "absent"))

    assert (result.status, result.out) == (3, "")
    assert "--workspace" in result.err
    assert "{" not in result.err


def test_a_server_that_answers_that_it_could_not_start_exits_with_3_and_says_why(project, kaiza):
    app = App([str(project)], deterministic=True)
    app.call("server_info", {})
    app.close()
    results = [kaiza("call", "server_info"), kaiza("call", "list_plans")]

    assert [(each.status, each.out) for each in results] == [(3, "")] * 2
    assert all("--deterministic" in each.err for each in results)


def test_a_package_of_the_workspace_named_kaiza_is_not_started(project, tmp_path):
    (project / "kaiza").mkdir()
    (project / "kaiza" / "__init__.py").write_text(f"open({str(tmp_path / 'trap')!r}, 'w')\n")
    (project / "kaiza" / "__main__.py").write_text("")
    command = [sys.executable, "-P", "-m", "kaiza", "call", "server_info"]
    result = subprocess.run(command, cwd=project, capture_output=True, check=False, timeout=60)

    assert result.returncode == 0
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("value", ["$(touch trap)", "`touch trap`", "; touch trap", "| touch trap", "'\"$IFS"])
def test_values_never_reach_a_shell(project, kaiza, value):
    kaiza("call", "read_file", f"path={value}")

    assert not (project / "trap").exists()
    assert records(project)[1]["arguments"]["path"] == value


@contextmanager
def serving(answer):
    """A server on loopback that answers each POST with a status, a content type, a body and headers; its requests."""
    seen = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.append((self.path, dict(self.headers), body))
            status, kind, text, *headers = answer(body)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            for header in headers:
                self.send_header(*header)
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(text)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def result_of(result):
    """Answers with this result; a request for the tools, which the client makes to check it, with none."""

    def answer(body):
        listed = {"tools": [], "ttlMs": 0, "cacheScope": "private"}
        members = listed if body["method"] == "tools/list" else result
        reply = {"jsonrpc": "2.0", "id": body["id"], "result": {"resultType": "complete", **members}}
        return 200, "application/json", json.dumps(reply).encode()

    return answer


def test_over_http_the_token_travels_in_the_header_and_past_every_proxy(workspace, kaiza, monkeypatch):
    monkeypatch.setenv("KAIZA_TOKEN", "kz_secret")
    with serving(result_of({"content": [], "structuredContent": {"summary": "fine"}})) as (url, seen):
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
        result = kaiza("call", "server_info", "--url", url)

    assert (result.status, result.out) == (0, "fine\n")
    assert {path for path, _, _ in seen} == {"/mcp"}
    assert {headers["Authorization"] for _, headers, _ in seen} == {"Bearer kz_secret"}


def test_over_http_a_tool_is_called_with_a_token_and_refused_without(project, kaiza, monkeypatch, open_http):
    token = kaiza("token", "new", "ann").out.strip()
    serve = ["serve", "--workspace", str(project), "--http", "127.0.0.1:0"]
    door = open_http([sys.executable, "-m", "kaiza", *serve])
    words = ["call", "read_file", "path=a.txt", "--url", door.url]
    refused = kaiza(*words)
    monkeypatch.setenv("KAIZA_TOKEN", token)
    read = kaiza(*words, "--workspace", str(project))

    assert (refused.status, refused.out) == (1, "")
    assert "kaiza token new" in refused.err
    assert read.status == 0
    assert "  │ hello\n" in read.out
    assert calls(project) == [("begin_session", None), ("read_file", None), ("end_session", None)]


HOSTILE = "\x1b]0;owned\x07\x1b[2J\r\u202eok"


@pytest.mark.parametrize(
    "result",
    [
        {"content": [], "structuredContent": {"summary": HOSTILE, HOSTILE: [HOSTILE, {HOSTILE: f"a\n{HOSTILE}"}]}},
        {"content": [{"type": "text", "text": f"{HOSTILE}\n{HOSTILE}"}]},
        {"content": [], "structuredContent": {"n": 1}, "_meta": {"kaiza/diagnostics": [HOSTILE, {HOSTILE: 1}]}},
        {"content": [{"type": "text", "text": HOSTILE}], "isError": True},
        {"content": [{"type": "text", "text": json.dumps({"error_code": HOSTILE, "human_message": HOSTILE})}],
         "isError": True},
        {"content": [{"type": "text", "text": json.dumps({"error": {"code": HOSTILE, "message": HOSTILE}})}],
         "isError": True},
    ],
)  # fmt: skip
def test_what_a_server_answers_is_escaped(workspace, kaiza, result):
    with serving(result_of(result)) as (url, _):
        shown = kaiza("call", "server_info", "--url", url)

    assert shown.status == (1 if result.get("isError") else 0)
    assert "owned" in shown.out + shown.err
    assert (shown.out + shown.err).replace("\n", "").isprintable()


def test_an_answer_nested_very_deeply_is_cut(workspace, kaiza):
    cause = json.loads('{"a":' * 700 + "1" + "}" * 700)
    text = json.dumps({"error_code": "X", "human_message": "No.", "cause": cause})
    with serving(result_of({"content": [{"type": "text", "text": text}], "isError": True})) as (url, _):
        result = kaiza("call", "server_info", "--url", url)

    assert (result.status, result.out) == (1, "")
    assert result.err.endswith("a: ...\n")


def test_nothing_is_printed_of_what_the_sdk_logs(project, process):
    result = process("call", "project_info")

    assert result.returncode == 0
    assert [line.split()[0] for line in result.stderr.splitlines()] == [b"Session"]


def test_a_refused_connection_shows_the_servers_sentence_and_exits_with_1(workspace, kaiza):
    with serving(lambda _: (401, "text/plain", b"Set KAIZA_TOKEN.\x1b[2J")) as (url, _):
        result = kaiza("call", "server_info", "--url", url)

    assert result.status == 1
    assert "Set KAIZA_TOKEN." in result.err
    assert result.err.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "answer",
    [
        (500, "text/plain", b"broken"),
        (200, "application/json", b"not json"),
        (200, "text/html", b"<p>hello"),
        (200, "application/json", b'{"jsonrpc":"2.0","id":1,"result":{"content":5,"resultType":"complete"}}'),
        (200, "application/json", b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}'),
        (307, "text/plain", b""),
    ],
)
def test_an_answer_that_is_not_kaizas_exits_with_3_and_no_traceback(workspace, kaiza, answer):
    with serving(lambda _: answer) as (url, _):
        result = kaiza("call", "server_info", "--url", url)

    assert (result.status, result.out) == (3, "")
    assert len(result.err.splitlines()) == 1
    assert len(result.err) < 300


@pytest.mark.parametrize(
    "enlarge",
    [lambda text: (text + b" " * (17 << 20),), lambda text: (gzip.compress(text), ("Content-Encoding", "gzip"))],
    ids=["long", "compressed"],
)
@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_could_fill_the_memory_is_not_read_to_its_end(workspace, kaiza, enlarge, status):
    result = result_of({"content": [], "structuredContent": {"summary": "x"}})

    def answer(body):
        _, kind, text = result(body)
        return status, kind, *enlarge(text)

    with serving(answer) as (url, _):
        refused = kaiza("call", "server_info", "--url", url)

    assert (refused.status, refused.out) == (3, "")
    assert "The answer is" in refused.err


def test_progress_of_a_call_reaches_its_caller(workspace):
    def event(value):
        return b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", **value}).encode() + b"\n\n"

    def answer(body):
        if body["method"] == "tools/list":
            return result_of({})(body)
        token = body["params"]["_meta"]["progressToken"]
        reports = [{"progressToken": token, "progress": done, "total": 30} for done in (10, 20)]
        notes = [event({"method": "notifications/progress", "params": report}) for report in reports]
        result = {"content": [], "structuredContent": {"n": 1}, "resultType": "complete"}
        return 200, "text/event-stream", b"".join([*notes, event({"id": body["id"], "result": result})])

    reports = []
    with serving(answer) as (url, _), mcp_client.connect_url(f"{url}/mcp", None, use_proxy=False) as client:
        result = client.call_tool("find_files", {}, lambda *report: reports.append(report))

    assert result.body == {"n": 1}
    assert reports == [(10, 30), (20, 30)]


def test_an_interrupted_call_ends_with_130_and_no_traceback(workspace, screen):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        command = screen("call", "server_info", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with silent.accept()[0] as connection:
            connection.recv(1000)
            command.type("\x03")

            assert command.end() == 130
    assert "Traceback" not in command.shown


def test_a_server_that_begins_no_session_exits_with_3(workspace, kaiza):
    with serving(result_of({"content": [], "structuredContent": {"session_id": 5}})) as (url, _):
        result = kaiza("call", "read_file", "path=a.txt", "--url", url)

    assert result.status == 3
    assert len(result.err.splitlines()) == 1
    assert len(result.err) < 300


def test_call_exits_with_3_if_no_server_listens(workspace, kaiza):
    with serving(result_of({})) as (url, _):
        pass
    result = kaiza("call", "server_info", "--url", url)

    assert (result.status, result.out) == (3, "")
    assert "kaiza serve --http" in result.err
