"""Logs with a known verdict, in `tests/vectors/audit/`; `python tests/audit_vectors.py` writes them anew.

A file's name is its verdict: `VERDICT.what-it-is.jsonl`, or `VERDICT-FAULT-RECORD.what-it-is.jsonl` where a record is
at fault. A log is compared with a checkpoint in the file of the same name that ends with `.head` (SEQ:HASH, saved by a
person) or `.anchor` (SEQ:HASH:SIZE, kept by Kaiza). Made with the standard library alone, so that no fault of Kaiza's
own encoder can hide in them.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path

DIRECTORY = Path(__file__).parent / "vectors" / "audit"
GENESIS = "0" * 64


def sign(body):
    """The line of a body, given as bytes, and its hash."""
    digest = sha256(body).hexdigest()
    return body[:-1] + b',"entry_hash":"' + digest.encode() + b'"}\n', digest


def canonical(value):
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "surrogatepass")


def body_of(seq, link, **members):
    return canonical({"arguments": {"path": f"src/{seq}.py"}, "kind": "call", **members, "prev_hash": link, "seq": seq})


def chained(*members, link=GENESIS, first=1):
    """Lines of a valid log, one for each dict of members; bytes are a body as they are, with LINK and SEQ filled in."""
    lines = []
    for seq, each in enumerate(members, first):
        raw = each.replace(b"LINK", link.encode()).replace(b"SEQ", b"%d" % seq) if isinstance(each, bytes) else None
        line, link = sign(raw if raw is not None else body_of(seq, link, **each))
        lines.append(line)
    return lines


def plain(count, **more):
    return chained(*[more] * count)


def with_third(raw):
    """A log of four records whose hashes are right, and whose third body is these bytes."""
    return chained({}, {}, raw, {})


def member(value):
    """A body with a member in the middle, as raw JSON."""
    return b'{"kind":"call","odd":' + value + b',"prev_hash":"LINK","seq":SEQ}'


def edited(lines, number, old, new):
    """The log with one line changed and its hash left as it was."""
    assert old in lines[number - 1]
    return [*lines[: number - 1], lines[number - 1].replace(old, new, 1), *lines[number:]]


def resigned(lines, number, **members):
    """The log with one record replaced by another with a right hash; the lines after it are left as they were."""
    link = json.loads(lines[number - 2])["entry_hash"] if number > 1 else GENESIS
    return [*lines[: number - 1], *chained(members, link=link, first=number), *lines[number:]]


def point(lines, count):
    """SEQ, HASH and SIZE after so many records."""
    kept = lines[:count]
    return count, json.loads(kept[-1])["entry_hash"], sum(map(len, kept))


def head(lines, count):
    return {".head": "{}:{}".format(*point(lines, count)).encode()}


def anchor(lines, count):
    return {".anchor": "{}:{}:{}".format(*point(lines, count)).encode()}


def tail_of_zeros(line, offset):
    """The line padded over the next sector of the disk, and that sector never written."""
    padded = line[:-1] + b" " * 1200
    start = 1024 - offset % 512
    return padded[:start] + b"\x00" * (len(padded) - start) + b"\n"


def logs():
    """Name of each vector, its lines, and the files beside it."""
    yield from _intact()
    yield from _torn()
    yield from _changed()
    yield from _against_checkpoints()
    yield from _odd_json()


def _intact():
    four = plain(4)
    yield "intact.empty", [], {}
    yield "intact.one-record", plain(1), {}
    yield "intact.four-records", four, {}
    yield "intact.up-to-a-head", four, head(four, 3)
    yield "intact.up-to-an-anchor", four, anchor(four, 2)
    yield "intact.members-that-kaiza-does-not-write", plain(2, colour="red", nothing=None), {}
    yield "intact.control-characters-escaped", plain(2, odd='\x00\x1f\b\f\n\r\t"\\/\x7f\u2028'), {}
    yield "intact.text-beyond-ascii", plain(2, odd="äöü €𝄞 e\u0301 \ufeff \uffff"), {}
    yield "intact.largest-integers", plain(2, odd=[2**53 - 1, -(2**53) + 1, 0, True, None]), {}
    yield "intact.empty-containers-and-names", plain(2, odd={"": [[], {}]}), {}
    yield "intact.deepest-nesting", with_third(member(b"[" * 253 + b"]" * 253)), {}
    yield "intact.a-line-longer-than-kaiza-writes", plain(1, odd="x" * 300_000), {}


def _torn():
    four = plain(4)
    tail = four[3]
    zeros = (*four[:2], tail_of_zeros(four[2], len(b"".join(four[:2]))))
    yield "torn_tail-torn-4.half-a-line", [*four[:3], tail[: len(tail) // 2]], {}
    yield "torn_tail-torn-4.only-the-newline-missing", [*four[:3], tail[:-1]], {}
    yield "torn_tail-torn-1.half-of-the-first-line", [four[0][:9]], {}
    yield "torn_tail-torn-5.a-sector-of-zeros", [*four, b"\x00" * 511 + b"\n"], {}
    yield "torn_tail-torn-5.zeros-without-a-newline", [*four, b"\x00" * 700], {}
    yield "torn_tail-torn-4.up-to-a-head", [*four[:3], tail[:20]], head(four, 2)
    yield "torn_tail-torn-4.up-to-an-anchor", [*four[:3], tail[:20]], anchor(four, 3)
    yield "cut_off-dropped-4.a-torn-line-that-the-anchor-covers", [*four[:3], tail[:20]], anchor(four, 4)
    yield "broken-edited-3.a-line-with-zeros-that-the-anchor-covers", zeros, anchor(four, 3)
    yield "torn_tail-torn-3.a-line-with-zeros-after-the-anchor", zeros, anchor(four, 2)
    yield "broken-edited-1.a-line-of-seven-zeros", [b"\x00" * 7 + b"\n"], {}
    for zeros_at_the_end, name in ((7, "broken-edited-2.seven"), (8, "torn_tail-torn-2.eight")):
        padding = (512 - zeros_at_the_end - len(plain(1, odd="")[0])) % 512
        first = plain(1, odd="x" * padding)
        yield f"{name}-zeros-up-to-a-sector", [*first, b"\x00" * zeros_at_the_end + b"rest\n"], {}
    yield "broken-inserted-2.zeros-before-the-end", [four[0], b"\x00" * 600 + b"\n", *four[1:3]], {}


def _changed():
    four, six, other = plain(4), plain(6), plain(4, tool_name="another")
    yield "broken-edited-3.a-changed-byte", edited(six, 3, b"src/3.py", b"src/4.py"), {}
    yield "broken-edited-1.a-changed-byte-in-the-first-record", edited(six, 1, b"src/1.py", b"src/4.py"), {}
    yield "broken-edited-6.a-changed-byte-in-the-last-record", edited(six, 6, b"src/6.py", b"src/4.py"), {}
    yield "broken-edited-3.a-changed-hash", edited(six, 3, six[2][-12:-3], b"012345678"), {}
    yield "broken-edited-3.an-upper-case-hash", edited(six, 3, six[2][-67:-3], six[2][-67:-3].upper()), {}
    yield "broken-edited-3.edited-and-hashed-again", resigned(six, 3, tool_name="another"), {}
    yield "broken-edited-1.first-record-edited-and-hashed-again", resigned(six, 1, tool_name="another"), {}
    yield "replaced-edited-4.last-record-edited-and-hashed-again", resigned(four, 4, tool_name="x"), head(four, 4)
    yield "broken-edited-4.goes-on-from-another-log", [*four, *plain(6, tool_name="another")[4:]], {}
    yield "broken-dropped-3.a-dropped-record", [*six[:2], *six[3:]], {}
    yield "broken-dropped-1.the-first-record-dropped", six[1:], {}
    yield "broken-dropped-2.three-records-dropped", [six[0], *six[4:]], {}
    yield "broken-reordered-3.two-records-exchanged", [*six[:2], six[3], six[2], *six[4:]], {}
    yield "broken-reordered-2.a-record-moved-up", [six[0], six[4], *six[1:4], six[5]], {}
    yield "broken-inserted-4.a-duplicated-record", [*six[:3], six[2], *six[3:]], {}
    yield "broken-inserted-3.a-record-copied-up", [*six[:2], six[4], *six[2:]], {}
    yield "broken-inserted-3.a-record-of-another-log", [*six[:2], other[2], *six[2:]], {}
    yield "broken-inserted-3.an-empty-line", [*six[:2], b"\n", *six[2:]], {}
    yield "broken-inserted-3.a-line-that-is-no-record", [*six[:2], b"note to self\n", *six[2:]], {}
    yield "broken-inserted-5.the-whole-log-twice", [*four, *four], {}
    yield "broken-edited-4.an-empty-line-at-the-end", [*four[:3], b"\n"], {}
    yield "broken-inserted-1.an-empty-object", [sign(b"{}")[0]], {}


def _against_checkpoints():
    four, six, other = plain(4), plain(6), plain(4, tool_name="another")
    yield "cut_off-dropped-3.against-a-head", four[:2], head(four, 4)
    yield "cut_off-dropped-1.an-emptied-log-against-a-head", [], head(four, 4)
    yield "cut_off-dropped-3.against-an-anchor", four[:2], anchor(four, 3)
    yield "cut_off-dropped-1.an-emptied-log-against-an-anchor", [], anchor(four, 1)
    yield "replaced-edited-3.another-log-against-a-head", other, head(four, 3)
    yield "replaced-edited-3.another-log-against-an-anchor", other, anchor(four, 3)
    yield "replaced-edited-2.an-anchor-at-another-offset", plain(4, more="x"), {".anchor": anchor(four, 2)[".anchor"]}
    yield "broken-edited-2.edited-before-a-later-head", edited(four, 2, b"call", b"cell"), head(six, 6)
    yield "missing.an-anchor-and-no-log", None, anchor(four, 3)


def _odd_json():
    """Hashes and links are right; the third record is not in the canonical form, or not in the profile."""
    bodies = {
        "a-blank": b'{"kind": "call","prev_hash":"LINK","seq":SEQ}',
        "unsorted-keys": b'{"seq":SEQ,"kind":"call","prev_hash":"LINK"}',
        "duplicate-keys": b'{"kind":"call","kind":"call","prev_hash":"LINK","seq":SEQ}',
        "an-escaped-letter": member(b'"\\u0061"'),
        "an-escaped-slash": member(b'"\\/"'),
        "an-upper-case-escape": member(b'"\\u001F"'),
        "an-escaped-del": member(b'"\\u007f"'),
        "a-raw-control-character": member(b'"\x01"'),
        "a-float": member(b"1.5"),
        "an-integer-as-a-float": member(b"1.0"),
        "an-exponent": member(b"1e3"),
        "minus-zero": member(b"-0"),
        "nan": member(b"NaN"),
        "infinity": member(b"Infinity"),
        "two-to-the-53": member(b"9007199254740992"),
        "minus-two-to-the-53": member(b"-9007199254740992"),
        "two-to-the-64": member(b"18446744073709551616"),
        "five-thousand-digits": member(b"9" * 5000),
        "a-lone-surrogate-escaped": member(b'"\\ud800"'),
        "a-lone-surrogate-as-bytes": member(b'"\xed\xa0\x80"'),
        "bad-utf-8": member(b'"\xff\xfe"'),
        "overlong-utf-8": member(b'"\xc0\xaf"'),
        "beyond-unicode": member(b'"\xf4\x90\x80\x80"'),
        "a-key-beyond-ascii": '{"kind":"call","prev_hash":"LINK","seq":SEQ,"ä":1}'.encode(),
        "nested-too-deep": member(b"[" * 254 + b"]" * 254),
        "nested-a-hundred-thousand-deep": member(b"[" * 100_000 + b"]" * 100_000),
        "objects-nested-too-deep": member(b'{"a":' * 254 + b"1" + b"}" * 254),
        "an-array": b'["LINK",SEQ]',
        "a-string": b'"LINK SEQ}',
        "two-objects": b'{"kind":"call","prev_hash":"LINK","seq":SEQ}{}',
        "a-hash-of-its-own": b'{"entry_hash":"LINK","kind":"call","prev_hash":"LINK","seq":SEQ}',
    }
    for name, body in bodies.items():
        yield f"broken-edited-3.{name}", with_third(body), {}
    numbers = {"a-number-as-text": b'"3"', "no-number": b"null", "true-for-a-number": b"true", "a-negative": b"-3"}
    for name, number in numbers.items():
        yield f"broken-inserted-3.{name}", with_third(b'{"kind":"call","prev_hash":"LINK","seq":%b}' % number), {}
    yield "broken-edited-1.true-for-one", chained(b'{"kind":"call","prev_hash":"LINK","seq":true}'), {}
    # Another link than to the record before it means that that one was edited: its hash is not the one it had.
    for name, link in {"a-link-that-is-no-text": b'"prev_hash":["LINK"],', "no-link": b""}.items():
        yield f"broken-edited-2.{name}", with_third(b'{"kind":"call",%b"seq":SEQ}' % link), {}
    four = plain(4)
    yield "broken-edited-1.a-byte-order-mark", [b"\xef\xbb\xbf" + four[0], *four[1:]], {}
    yield "broken-edited-1.carriage-returns", [line[:-1] + b"\r\n" for line in four], {}
    yield "broken-edited-3.a-trailing-blank", [*four[:2], four[2][:-1] + b" \n", four[3]], {}
    yield "broken-edited-3.two-records-on-one-line", [*four[:2], four[2][:-1] + four[3]], {}


def write_all(directory):
    """Write every vector into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, lines, beside in logs():
        if lines is not None:
            (directory / f"{name}.jsonl").write_bytes(b"".join(lines))
        for suffix, content in beside.items():
            (directory / f"{name}{suffix}").write_bytes(content + b"\n")


if __name__ == "__main__":
    for old in DIRECTORY.glob("*.*"):
        old.unlink()
    write_all(DIRECTORY)
    sys.stdout.write(f"{len(list(DIRECTORY.iterdir()))} files in {DIRECTORY}\n")
