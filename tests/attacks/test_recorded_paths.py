"""Records name every requested file: no other argument can push a path out of the record."""

import json

import pytest
from scenes import records

from kaiza.cli import dispatch
from kaiza.domain.audit import record, redaction

LONG = ["x" * 250 + "/" + "y" * 250 + f"/{number}" for number in range(49)]


def last_arguments(workspace):
    return records(workspace)[-1]["arguments"]


@pytest.fixture
def real(workspace):
    (workspace / "src").mkdir()
    (workspace / "src" / "a").write_text("mine\n")


def find_records(begun, path):
    return begun.call("read_audit_log", {"path": path, "tool_name": "read_files"}).output["items"]


@pytest.mark.parametrize("absent", [LONG, ["z/" + "\x01" * 250 + "/" * 5 + "w" * 200 + f"/{n}" for n in range(49)],
                                    [("v" * 200 + "/") * 20 + str(n) for n in range(49)]])  # fmt: skip
@pytest.mark.parametrize("at", [0, 25, 49])
def test_a_path_among_many_long_ones_is_found_in_the_log(begun, workspace, real, capsys, absent, at):
    requested = [*absent[:at], "src/a", *absent[at:]]
    outcome = begun.call("read_files", {"paths": requested})
    recorded = last_arguments(workspace)["paths"]

    assert outcome.envelope is None
    assert recorded[at] == "src/a"
    assert len(recorded) == 50
    assert all(isinstance(one, str) or set(one) == {"sha256", "length"} for one in recorded)
    assert len(find_records(begun, "src/a")) == 1
    assert dispatch.main(["audit", "show", "--workspace", str(workspace), "--path", "src/a", "--json"]) == 0
    assert "read_files" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("requested", "recorded"),
    [
        ("./src//a", "src/a"),
        ("./" * 1900 + "src/a", "src/a"),
        ("src/./a/", "src/a"),
        (".", "."),
        ("./.", "."),
        ("//etc//passwd", "/etc/passwd"),
        ("/", "/"),
        ("src/../src/a", "src/../src/a"),
        ("../x", "../x"),
        ("", ""),
    ],
)
def test_paths_are_recorded_normalised_but_attempts_to_leave_stay_visible(begun, workspace, real, requested, recorded):
    begun.call("read_file", {"path": requested})
    begun.call("read_files", {"paths": [requested, "b"]})
    one, several = (each["arguments"] for each in records(workspace)[-2:])

    assert (one["path"], several["paths"]) == (recorded, [recorded, "b"])


def test_both_ends_of_a_move_are_recorded_normalised(begun, workspace):
    begun.call("move_file", {"source": "./a//b", "destination": "c/./d", "expected_hash": "0" * 64})

    assert (last_arguments(workspace)["source"], last_arguments(workspace)["destination"]) == ("a/b", "c/d")


def fits(arguments):
    body = record.new_body("call", request_id="r", timestamp="2026-11-18T09:00:00.000Z", arguments=arguments)
    return (
        len(record.serialize_and_hash(body, 10**12, record.GENESIS)[0])
        < record.MAX_RECORD_BYTES // 2 + record.MAX_RECORD_BYTES // 4
    )


@pytest.mark.parametrize("letter", ["\x01", "\x7f", "\udc80", "\U0001f600", "x"])
def test_fifty_long_paths_fit_into_a_record_and_short_ones_are_kept(letter):
    paths = [letter * (4000 // len(letter.encode(errors="surrogatepass"))) for _ in range(49)]
    arguments = {"paths": [*paths, "src/a"], "path": "b", "pattern": "\U0001f600" * 4000, "content": "x" * 10**6}
    arguments |= {f"unknown{number}": "y" * 4000 for number in range(100)}
    recorded = redaction.redact_arguments(arguments)

    assert fits(recorded)
    assert (recorded["paths"][-1], recorded["path"]) == ("src/a", "b")
    assert [one for one in recorded["paths"][:-1] if one not in (paths[0], redaction._digest(paths[0]))] == []


def test_large_other_arguments_never_displace_all_paths():
    heavy = dict.fromkeys(["pattern", "glob", "uri", "client", "role", "status", "encoding"], "\U0001f600" * 4000)
    recorded = redaction.redact_arguments({**heavy, "paths": ["x" * 4000, "y" * 4000, "z" * 4000, *["v" * 4090] * 40]})

    assert fits(recorded)
    assert recorded["pattern"] == heavy["pattern"]
    assert [one[:1] for one in recorded["paths"][:3]] == ["x", "y", "z"]


@pytest.mark.parametrize("odd", [{"a": "b"}, 7, None, [["x" * 4096] * 200] * 200, [{"k": "x" * 4096}] * 200, 1.5])
def test_path_arguments_of_the_wrong_type_are_bounded(odd):
    recorded = redaction.redact_arguments({"path": odd, "paths": odd, "source": odd, "destination": odd})

    assert fits(json.loads(json.dumps(recorded)))
