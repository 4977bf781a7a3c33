"""`kaiza attest`: an in-toto Statement about what a session or a plan changed, signed if asked for."""

import argparse
import os
from pathlib import Path
from typing import Any

from kaiza.cli.audit.verify import verify_with_progress
from kaiza.cli.console import arguments, audit_reader, output
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.cli.console.open_workspace import PLAN_ADVICE, open_workspace, parse_plan_prefix
from kaiza.cli.plan.approve import find_key
from kaiza.domain.refusal import RefusedError
from kaiza.queries.attestation import build_statement, collect_records, sign_statement
from kaiza.queries.review_records import find_interrupted
from kaiza.queries.workspaces import Workspace, require_adopted
from kaiza.render.json_values import encode_document
from kaiza.render.terminal import escape

_NOTHING = "Nothing was attested."


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Print an in-toto Statement about what a session, or all sessions under a plan, changed: the files that are "
        "left with their SHA-256, the git commit if it has exactly these files, the plans by their hash, and the "
        "records by the first, the last and their number. Verifies the whole log first.\n"
        "Exit status: 0 attested, 1 the log is not intact, a crash interrupted a change that is not settled, nothing "
        "was changed, or no such session or plan, 3 could not determine or not sign.",
        "kaiza attest --session 3f2b\nkaiza attest --plan PLAN-0007 --sign --output changes.json",
        run=_run_attest,
    )
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--session", metavar="ID", help="this session; its first characters are enough")
    target.add_argument(
        "--plan",
        metavar="ID",
        type=parse_plan_prefix,
        help="every session under this plan; its first characters are enough",
    )
    parser.add_argument("--output", metavar="FILE", help="a new file (default: standard output)")
    parser.add_argument("--sign", action="store_true", help="sign it with your SSH key, in FILE.sig; needs --output")
    parser.add_argument(
        "--key", metavar="FILE", help="the key to sign with (default: as for `kaiza plan approve --sign`)"
    )
    arguments.add_workspace(parser)


def _run_attest(args: argparse.Namespace) -> int:
    if args.sign and args.output is None:
        args.parser.error("--sign writes a signature beside the statement. Add --output FILE")
    if args.key is not None and not args.sign:
        args.parser.error("--key is the key to sign with. Add --sign")
    key = find_key(args.key, _NOTHING) if args.sign else None
    with open_workspace(args) as workspace:
        require_adopted(workspace)
        # Nothing is believed of a log that is not intact.
        verdict = verify_with_progress(workspace.root)["verdict"]
        if verdict != "intact":
            raise RefusedError(f"The audit log is not intact ({verdict}). {_NOTHING} Run `kaiza audit verify`.")
        statement = _build_statement(args, workspace)
        content = encode_document(statement) + b"\n"
        signature = None if key is None else sign_statement(workspace.root, key, content)
    if args.output is None:
        output.write_json_bytes(content)
    else:
        _write_files(Path(args.output), content, signature)
    return output.SUCCESS


def _build_statement(args: argparse.Namespace, workspace: Workspace) -> dict[str, Any]:
    member = "session_id" if args.session is not None else "plan_id"
    named = (record.members.get(member) for record in audit_reader.read_forward(workspace.root))
    known = {name for name in named if isinstance(name, str)}
    if args.session is not None:
        value = audit_reader.resolve_session(known, args.session)
    else:
        value = resolve_id(known, args.plan, "plan", PLAN_ADVICE)
    attested = collect_records(audit_reader.read_forward(workspace.root), member, value)
    interrupted = find_interrupted(workspace, attested.announced)
    if interrupted:
        first = interrupted[0]
        raise RefusedError(
            f"A crash interrupted {escape(first.tool_name)} (record #{first.seq}), and what it changed is not settled. "
            f"{_NOTHING} The next call of an agent in this workspace completes it or takes it back."
        )
    statement = build_statement(attested, workspace.audit_state, workspace.root)
    if not statement["subject"]:
        raise RefusedError(
            f"No file is left that was changed, so there is nothing to attest. {_NOTHING} `kaiza session show` and "
            "`kaiza audit show` list what happened."
        )
    return statement


def _write_files(target: Path, content: bytes, signature: bytes | None) -> None:
    """Write the statement and its signature; neither if one of the files exists."""
    files = {target: content} if signature is None else {Path(f"{target}.sig"): signature, target: content}
    for path in files:
        if os.path.lexists(path):
            raise RefusedError(f"{escape(str(path))} exists already. {_NOTHING} Name another file with --output.")
    for path, each in files.items():
        with path.open("xb") as file:
            file.write(each)
    output.print_error("\n".join(f"Wrote {escape(str(path))}" for path in sorted(files)))
