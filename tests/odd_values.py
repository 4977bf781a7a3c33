"""Large and odd values of arguments, for clients of others and for raw lines."""

import json

MIB = 1 << 20


def nested(depth, inner=1):
    """A list nested this deeply."""
    for _ in range(depth):
        inner = [inner]
    return inner


INTEGERS = [0, -1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**30, 10**400]
FLOATS = [1.5, -0.0, 1e308, 5e-324, 1.0]
TEXTS = ["", "\0", "\x7f", "\u2028", "\ufeff", "\U0010ffff", "a" * 5000, 'a\\"b', "}{", "null", "../..", "é" * 300]
LARGE = ["x" * 1_200_000, "\n" * 1_200_000, "é" * (9 * MIB // 2), "x" * (17 * MIB)]
NESTED = [nested(depth) for depth in (50, 96, 97, 98, 99, 100, 101, 150)]
OTHERS = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    {"": {"": ""}},
    [None] * 2000,
    {str(number): number for number in range(2000)},
]
VALUES = [*INTEGERS, *FLOATS, *TEXTS, *NESTED, *OTHERS]

RAW = [
    "1e400",
    "-1e400",
    "NaN",
    "Infinity",
    "9" * 5000,
    r'"\ud800"',
    r'["\udfff\ud800"]',
    r'{"\ud800":"\udc00"}',
    '{"a":1,"a":2}',
    "[" * 5000 + "]" * 5000,
    '{"a":' * 5000 + "1" + "}" * 5000,
    "[" + "[]," * 200_000 + "1]",
    '"\xff"',
    '"\x01"',
    '"' + r"\u0000" * 200_000 + '"',
]
"""Values that no client of an SDK sends, as JSON text."""

RAW_IDS = ["7", "-1", "1.5", "9223372036854775808", "1e400", '"x"', r'"\ud800"', '"' + "i" * 2000 + '"', "0"]


def raw_calls(session):
    """Lines of calls that name a tool, each with the id that its answer must have."""
    for number, value in enumerate(RAW):
        arguments = f'{{"session_id":{json.dumps(session)},"path":{value}}}'
        params = f'{{"name":"read_file","arguments":{arguments}}}'
        yield f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}', str(number)
        yield f'{{"method":"tools/call","params":{params},"jsonrpc":"2.0","id":"{number}"}}', f'"{number}"'
    for request_id in RAW_IDS:
        params = f'{{"tool":"read_file","arguments":{{"session_id":{json.dumps(session)},"path":"a"}}}}'
        yield f'{{"jsonrpc":"2.0","id":{request_id},"method":"tools/call","params":{params}}}', request_id
