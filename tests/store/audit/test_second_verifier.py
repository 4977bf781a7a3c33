"""`tools/verify_audit_log.py`, which shares no code with Kaiza, and Kaiza's own verification: the same verdicts."""

import importlib.util
import json
import subprocess
import sys
import tempfile
from dataclasses import astuple
from pathlib import Path

import audit_vectors
import pytest
from audit_vectors import DIRECTORY, chained, plain, sign
from hypothesis import example, given, settings
from hypothesis import strategies as st
from logs import LONG, log_path, write_checkpoint, write_log

from kaiza.domain.audit.record import LogHead
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.verification.verify import verdict_output, verify_log

TOOL = Path(__file__).parents[3] / "tools" / "verify_audit_log.py"
VECTORS = sorted({path.name.rsplit(".", 1)[0] for path in DIRECTORY.glob("*.*.*")})


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("verify_audit_log", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kaizas_verdict(root, saved, anchor):
    write_checkpoint(root, LogHead(*anchor) if anchor else None)
    found = verify_log(str(root), head=saved)
    return {**verdict_output(found), "anchored": found.anchored}


def state_of(root):
    from kaiza.store.disk import state_dir

    return str(state_dir.path_of(str(root), create=True))


def name_of(verdict):
    fault = verdict.get("first_fault")
    return verdict["verdict"] + (f"-{fault['why']}-{fault['seq']}" if fault else "")


def read_beside(name, suffix):
    path = DIRECTORY / f"{name}{suffix}"
    if not path.exists():
        return None
    seq, entry_hash, *size = path.read_text().strip().split(":")
    return (int(seq), entry_hash, *map(int, size))


@pytest.mark.parametrize("name", VECTORS)
def test_both_verifiers_give_each_vector_the_verdict_in_its_name(tool, tmp_path, name):
    (tmp_path / "audit").mkdir()
    if (DIRECTORY / f"{name}.jsonl").exists():
        write_log(tmp_path, (DIRECTORY / f"{name}.jsonl").read_bytes())
    saved, anchor = read_beside(name, ".head"), read_beside(name, ".anchor")
    ours = kaizas_verdict(tmp_path, saved, anchor)
    kept = tool.read_anchor(state_of(tmp_path))

    assert name_of(ours) == name.split(".")[0]
    assert tool.verify(str(log_path(tmp_path)), saved, kept) == ours
    assert kept == anchor


def test_the_vectors_are_those_that_the_script_writes(tmp_path):
    audit_vectors.write_all(tmp_path)

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        path.name: path.read_bytes() for path in DIRECTORY.glob("*.*.*")
    }
    assert len(VECTORS) >= 90
    assert {name.split(".")[0].split("-")[0] for name in VECTORS} == {
        "intact", "torn_tail", "broken", "cut_off", "replaced", "missing",
    }  # fmt: skip


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**54), 2**54) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
RAW = st.binary(max_size=30) | st.sampled_from(
    [
        b"\n",
        b"\x00" * 20,
        b"\x00" * 600,
        b"\xef\xbb\xbf",
        b"\r\n",
        b'"',
        b"}",
        b"\\ud800",
        b"{}\n",
        b" ",
        b"1e9",
        b"NaN",
    ]
)
EDITS = st.one_of(
    st.tuples(st.just("splice"), st.integers(0, 3000), st.integers(0, 700), RAW),
    st.tuples(
        st.sampled_from(["drop", "double", "swap", "cut", "append"]), st.integers(0, 3000), st.integers(0, 9), RAW
    ),
    st.tuples(st.just("sign"), st.integers(0, 5), st.just(0), JSON.map(lambda value: json.dumps(value).encode())),
)


def mutate(lines, edits):
    """The bytes of a log after some edits; `sign` puts odd JSON into a record whose hash and link are right."""
    lines = list(lines)
    for kind, at, other, raw in edits:
        content, count = b"".join(lines), max(len(lines), 1)
        if kind == "splice":
            lines = [content[:at] + raw + content[at + other :]]
        elif kind == "cut":
            lines = [content[:at]]
        elif kind == "append":
            lines.append(raw)
        elif kind == "drop" and lines:
            del lines[at % count]
        elif kind == "double" and lines:
            lines.insert(other % count, lines[at % count])
        elif kind == "swap" and lines:
            lines[at % count], lines[other % count] = lines[other % count], lines[at % count]
        elif kind == "sign":
            lines = resign(at, raw)
        lines = b"".join(lines).splitlines(keepends=True) if kind in {"splice", "cut"} else lines
    return b"".join(lines)


def resign(number, raw):
    bodies = [{} for _ in range(5)]
    bodies[number % 5] = b'{"odd":%b,"prev_hash":"LINK","seq":SEQ}' % raw.replace(b"LINK", b"").replace(b"SEQ", b"")
    return chained(*bodies)


@settings(max_examples=5000 if LONG else 150)
@example([("append", 0, 0, b"\x00" * 600)], None, None)
@example([("cut", 700, 0, b"")], 2, 3)
@example([("sign", 4, 0, b"NaN")], None, 4)
@given(st.lists(EDITS, max_size=4), st.none() | st.integers(1, 8), st.none() | st.integers(1, 5))
def test_both_verifiers_agree_on_whatever_becomes_of_a_log(tool, edits, saved_seq, anchor_seq):
    lines = plain(5)
    with tempfile.TemporaryDirectory() as directory:
        write_log(directory, mutate(lines, edits))
        saved = audit_vectors.point(plain(8), saved_seq)[:2] if saved_seq else None
        anchor = audit_vectors.point(lines, anchor_seq) if anchor_seq else None
        ours = kaizas_verdict(directory, saved, anchor)

        assert tool.verify(str(log_path(directory)), saved, anchor) == ours


@pytest.mark.parametrize("length", [(2 << 20) - 1, 2 << 20, (2 << 20) + 1, (3 << 20) - 50, 3 << 20, 5 << 20])
@pytest.mark.parametrize("before", [0, 1, 3000])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_is_valid_up_to_two_mebibytes_wherever_it_begins(tool, tmp_path, length, before, end):
    lines = chained(*[{}] * before)
    link = json.loads(lines[-1])["entry_hash"] if lines else audit_vectors.GENESIS
    body = b'{"odd":"%b","prev_hash":"' + link.encode() + b'","seq":%d}' % (before + 1)
    empty = len(sign(body % b"")[0])
    line = sign(body % (b"x" * (length - empty)))[0]
    write_log(tmp_path, b"".join([*lines, line[:-1] + end]))
    ours = kaizas_verdict(tmp_path, None, None)
    may_be_torn = length - 1 < 2 << 20
    expected = ("intact" if length <= 2 << 20 else "broken") if end else "torn_tail" if may_be_torn else "broken"

    assert len(line) == length
    assert ours["verdict"] == expected
    assert tool.verify(str(log_path(tmp_path))) == ours


def run(*words):
    return subprocess.run([sys.executable, "-I", TOOL, *words], capture_output=True, check=False, timeout=60)


def test_the_program_prints_the_verdict_and_exits_like_kaiza_audit_verify(tmp_path):
    intact, broken = DIRECTORY / "intact.four-records.jsonl", DIRECTORY / "broken-edited-3.a-changed-byte.jsonl"
    saved = (DIRECTORY / "intact.up-to-a-head.head").read_text().strip()
    results = {
        "intact": run(intact), "saved": run(intact, "--head", saved), "later": run(intact, "--head", f"9:{'0' * 64}"),
        "broken": run(broken), "usage": run(intact, "--head", ""), "none": run(tmp_path / "no" / "log"),
        "directory": run(tmp_path), "state": run(intact, "--state", str(tmp_path)),
    }  # fmt: skip
    statuses = {name: result.returncode for name, result in results.items()}
    (tmp_path / "link").symlink_to(intact)

    assert statuses == {
        "intact": 0, "saved": 0, "later": 1, "broken": 1, "usage": 2, "none": 3, "directory": 3, "state": 0,
    }  # fmt: skip
    assert json.loads(results["broken"].stdout)["first_fault"] == {"seq": 3, "why": "edited"}
    assert [json.loads(results[name].stdout)["anchored"] for name in ("intact", "saved")] == [False, True]
    assert run(tmp_path / "link").returncode == 3


def test_the_verifier_is_one_file_of_the_standard_library_under_170_lines():
    text = TOOL.read_text()
    imported = {line.split()[1].split(".")[0] for line in text.splitlines() if line.startswith(("import ", "from "))}

    assert len(text.splitlines()) < 170
    assert imported <= sys.stdlib_module_names


def test_of_several_checkpoints_the_newest_sound_one_counts(tool, tmp_path):
    write_log(tmp_path, b"".join(plain(4)))
    points = [LogHead(*audit_vectors.point(plain(4), count)) for count in (1, 2, 3)]
    state = Path(state_of(tmp_path))
    checkpoint = Checkpoint(state)
    for point in points:
        checkpoint.write(checkpoint.prepare(point, 0))
    checkpoint.close()
    newest = tool.read_anchor(str(state))
    name = state / "anchor"
    content = bytearray(name.read_bytes())
    content[20] ^= 1  # the third write went to the first slot
    name.write_bytes(content)
    torn = tool.read_anchor(str(state))

    assert newest == astuple(points[2])
    assert torn == astuple(points[1]) == astuple(Checkpoint(state).read().head)
    (state / "anchor-2").write_bytes(b"\0" * 4)
    assert tool.read_anchor(str(state)) == astuple(points[1])
