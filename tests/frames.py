"""Frames for all dialects, valid and hostile, and what every transport has to do with them."""

import json
import os

from hypothesis import strategies as st

LONG = bool(os.environ.get("KAIZA_LONG"))
SESSION = "@SESSION-OF-THE-SERVER@"
"""Stands in a frame for the session that the server has begun."""
TOOLS = [
    "read_file",
    "write_file",
    "list_directory",
    "search_text",
    "server_info",
    "context_resolve",
    "context.inspect_cache",
    "mcp.server.info",
    "nope",
    "é",
    "",
]
MALFORMED = [
    (b"nonsense", -32700, None),
    (b"", -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"', -32700, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\xff"}}', -32700, 1),
    (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700, None),
    (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","name":"fail"}}', -32700, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":NaN}}', -32700, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":-Infinity}}', -32700, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}", -32700, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}}", -32700, 1),
    (b"[" * 10_000, -32700, None),
    (b"7", -32600, None),
    (b"null", -32600, None),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}]', -32600, None),
    (b'{"id":1,"method":"ping"}', -32600, 1),
    (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', -32600, "a"),
    (b'{"jsonrpc":2.0,"id":1.5,"method":"ping"}', -32600, 1.5),
    (b'{"jsonrpc":"2.0","id":1}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":""}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":null}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":"","method":"ping"}', -32600, ""),
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","method":"ping"}', -32600, None),
    (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{}}}', -32600, None),
    (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"nope"}', -32601, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"read_file","params":{"path":"a"}}', -32601, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}', -32601, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"server/discover"}', -32602, 1),
    (b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', -32602, 1),
]
"""Lines that are no request for anything, the code of the answer, and its id."""
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def each_dialect(tool, arguments):
    """A call in the three dialects, without its id."""
    return [
        {"name": tool, "arguments": arguments},
        {"tool": tool, "arguments": arguments},
        {"tool": tool, "input": arguments},
    ]


def frame(number, method, params):
    return encode_line({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def encode_line(value):
    return json.dumps(value).encode("utf-8", errors="surrogatepass").replace(b"\n", b" ")


def replace_byte(line, position, byte):
    position %= len(line) + 1
    return line[:position] + bytes([byte]) + line[position + 1 :]


paths = st.sampled_from(["src/a.py", "src", "..", "/etc/passwd", ".env", "plans/PLAN-1.md", "no\\such", "\ud800", ""])
arguments = values | st.fixed_dictionaries(
    {"session_id": st.just(SESSION)},
    optional={
        "path": paths | values,
        "content": st.text(max_size=5),
        "plan_hash": st.just("0" * 64) | values,
        "query": st.text(max_size=3),
        "pageSize": st.integers(-1, 201) | values,
        "cursor": st.text(max_size=9),
        "x": values,
    },
)
sound = st.sampled_from(
    [
        ("server_info", {}),
        ("session_status", {}),
        ("list_plans", {}),
        ("read_file", {"path": "src/a.py"}),
        ("list_directory", {"path": "src"}),
        ("search_text", {"query": "needle"}),
        ("context_list_caches", {}),
    ]
).map(lambda call: (call[0], {**call[1], "session_id": SESSION}))
hostile = st.tuples(st.sampled_from(TOOLS) | values, arguments)
calls = hostile.flatmap(lambda call: st.sampled_from(each_dialect(*call)))
sound_calls = st.builds(
    lambda number, call, index: frame(number, "tools/call", each_dialect(*call)[index]),
    st.integers(0, 9) | st.text("abc", min_size=1, max_size=3),
    sound,
    st.integers(0, 2),
)
hostile_calls = st.builds(lambda params: frame("hostile", "tools/call", params), calls)
odd_calls = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(TOOLS),
        "tool": st.sampled_from(TOOLS),
        "arguments": arguments,
        "input": arguments,
    },
)
lists = st.fixed_dictionaries(
    {}, optional={"category": st.sampled_from(["files", "no", 5]), "tier": st.sampled_from(["core", []])}
)
requests = (
    st.tuples(st.just("tools/call"), calls | odd_calls | values)
    | st.tuples(st.just("tools/list"), lists | values)
    | st.tuples(
        st.just("tools/describe"), st.fixed_dictionaries({}, optional={"tool": st.sampled_from(TOOLS) | values})
    )
    | st.tuples(st.sampled_from(["server/info", "ping", "nope", "notifications/initialized", ""]) | values, values)
)
messages = st.builds(
    lambda number, request, more: {"jsonrpc": "2.0", "id": number, "method": request[0], "params": request[1], **more},
    st.integers() | st.text(max_size=3) | values,
    requests,
    st.fixed_dictionaries({}, optional={"jsonrpc": values, "extra": values, "id": values}),
)
without_member = st.builds(
    lambda message, name: {key: value for key, value in message.items() if key != name},
    messages,
    st.sampled_from(["jsonrpc", "id", "method", "params"]),
)
whole_frames = (messages | messages | without_member | values).map(encode_line)
frames = (
    sound_calls
    | hostile_calls
    | whole_frames
    | st.builds(
        replace_byte, whole_frames, st.integers(0, 1000), st.integers(0, 255).filter(lambda byte: byte not in (10, 13))
    )
    | st.binary(min_size=1, max_size=60).map(lambda content: content.translate(None, b"\r\n"))
    # `initialize` changes the rest of a connection on stdio, and a line of blanks is skipped there.
).filter(lambda content: content.strip() and b"initialize" not in content)


def expects_an_answer(line):
    """Every line does, except a valid notification."""
    try:
        value = json.loads(line, object_pairs_hook=refuse_duplicates, parse_constant=refuse_constant, parse_int=float)
        line.decode()
    except (ValueError, RecursionError):
        return True
    return not (
        isinstance(value, dict)
        and value.get("jsonrpc") == "2.0"
        and "id" not in value
        and isinstance(value.get("method"), str)
        and value["method"].startswith("notifications/")
        and isinstance(value.get("params", {}), dict)
    )


def refuse_duplicates(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError
    return dict(pairs)


def refuse_constant(_name):
    raise ValueError
