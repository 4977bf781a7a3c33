"""What a review must say of a session, worked out from the log and from looks at the tree, without Kaiza's code."""

import hashlib
import stat
from types import SimpleNamespace

from trees import differences

CHANGE_TOOLS = {"write_file", "edit_file", "apply_patch", "move_file", "delete_file", "undo_changes"}
FOLDED_OVER = 1 << 20


def recount(log, session_id, looks, plans):
    """The expected parts of `kaiza review --json`.

    `looks` has the tree at the begin, as the agent left it, and now, and what changed between two calls; `plans` has
    the limits of each plan.
    """
    own = [record for record in log if record["session_id"] == session_id]
    calls = [record for record in own if record["kind"] == "call"]
    made = [record for record in calls if record["outcome"] == "ok" and record["changes"]]
    files = _follow_files(made)
    refused = [record for record in calls if record["outcome"] == "error"]
    expected = SimpleNamespace(
        files={file.path: _describe_file(file, looks) for file in files},
        lines={file.path: _lines_of(file, looks) for file in files},
        refusals=[_describe_refusal(record, calls) for record in refused],
        ungoverned=_add_earlier(differences(looks.left, looks.now), looks.between),
        limits={plan_id: _use_limits(log, plan_id, named) for plan_id, named in plans.items()},
        written={file.path for file in files},
    )
    undos = [change for record in made if record["tool_name"] == "undo_changes" for change in record["changes"]]
    changes = [change for record in made for change in record["changes"]]
    expected.counts = {
        "calls": len(calls),
        "changes": len(changes) - len(undos),
        "refusals": len(refused),
        "lines_added": sum(len(added) for added, _ in expected.lines.values()),
        "lines_removed": sum(len(removed) for _, removed in expected.lines.values()),
        "files": len(files),
        "undos": len(undos),
        "locks": sum(refusal["is_locking"] for refusal in expected.refusals),
        "ungoverned": len(expected.ungoverned),
        "records": len(own),
    }
    expected.findings = _list_findings(expected, plans)
    return expected


def _add_earlier(changes, earlier):
    """Each path once: what happened last."""
    later = {path for path, _, _ in changes}
    return changes | {change for change in earlier if change[0] not in later}


def _follow_files(made):
    """Each file that the calls changed, under its last name."""
    by_path = {}
    for record in made:
        for change in record["changes"]:
            file = by_path.pop(change["source"] or change["path"], None) or SimpleNamespace(
                first=change["source"] or change["path"], seqs=[]
            )
            file.path, file.after = change["path"], change["after_hash"]
            file.seqs.append(record["seq"])
            by_path[file.path] = file
    return list(by_path.values())


def _describe_file(file, looks):
    """Operation, state, hashes and calls, as the tree has them. A path with something else than a file is unknown."""
    before, left, now = _see(looks.begin, file.first), _see(looks.left, file.path), _see(looks.now, file.path)
    if now and not now.is_file:
        state = "unknown"
    elif _same(before, now) and (file.first == file.path or now is None):
        state = "put_back"
    else:
        state = "as_left" if _same(left, now) else "changed_since"
    shown = left if state == "unknown" else now
    if state == "put_back" or (before is None and shown is None):
        operation = "none"
    elif before is None or shown is None:
        operation = "create" if before is None else "delete"
    elif file.first != file.path:
        operation = "move"
    else:
        operation = "mode" if before.content == shown.content else "modify"
    return {
        "source": file.first if file.first != file.path else None,
        "operation": operation,
        "state": state,
        "before_hash": before and before.hash,
        "now_hash": None if state == "unknown" or now is None else now.hash,
        "calls": file.seqs,
    }


def _see(look, path):
    """The entry of a path; None if there is none."""
    if path not in look:
        return None
    kind, mode, content, _inode = look[path]
    is_file = stat.S_ISREG(kind)
    digest = hashlib.sha256(content).hexdigest() if is_file else None
    return SimpleNamespace(is_file=is_file, mode=mode, content=content, hash=digest)


def _same(one, other):
    if one is None or other is None:
        return one is other
    return (one.content, one.mode) == (other.content, other.mode)


def _lines_of(file, looks):
    """Lines that the calls added and removed and that still differ; each line of these files is there once."""
    entries = _see(looks.begin, file.first), _see(looks.left, file.path), _see(looks.now, file.path)
    seen = [_split(entry) for entry in entries]
    if None in seen:
        return set(), set()
    before, left, after = seen
    return (after & left) - before - looks.between_lines, before - left - after


def _split(entry):
    """The lines of a file; None where a review shows none."""
    if entry is None:
        return set()
    if not entry.is_file or b"\0" in entry.content or len(entry.content) > FOLDED_OVER:
        return None
    return set(entry.content.decode().splitlines())


def _describe_refusal(record, calls):
    locks = record["error_code"] in ("PLAN_SCOPE_VIOLATION", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE")
    locks = locks or record["invariant_id"] == "CONTROL_PLANE_PROTECTED"
    is_locking = locks and record["tool_name"] in CHANGE_TOOLS and record["invariant_id"] != "PLAN_LIMIT_REACHED"
    later = (call["seq"] for call in calls if call["tool_name"] == "write_report" and call["seq"] > record["seq"])
    return {
        "seq": record["seq"],
        "request_id": record["request_id"],
        "tool_name": record["tool_name"],
        "error_code": record["error_code"],
        "is_locking": is_locking,
        "report": next(later, None) if is_locking else None,
    }


def _use_limits(log, plan_id, named):
    intents = [record for record in log if record["kind"] == "intent" and record["plan_id"] == plan_id]
    # An undo is exempt from limits.
    changes = [change for record in intents if record["tool_name"] != "undo_changes" for change in record["changes"]]
    refused = [record for record in log if record["kind"] == "call" and record["plan_id"] == plan_id]
    used = {
        "files": len({path for change in changes for path in (change["path"], change["source"]) if path}),
        "lines": sum(change["lines_added"] + change["lines_removed"] for change in changes),
        "operations": len(changes),
        "refusals": sum(_describe_refusal(record, ())["is_locking"] for record in refused if record["error_code"]),
    }
    return {name: used[name] for name in named}


def _list_findings(expected, plans):
    over = {change for change in expected.ungoverned if change[0] in expected.written or change[2] in expected.written}
    inside = {change for change in expected.ungoverned if is_in_scope(*change)}
    found = ["ungoverned_governed"] * bool(over | inside) + ["ungoverned"] * bool(expected.ungoverned - over - inside)
    found += ["locking_refusal"] * any(refusal["is_locking"] for refusal in expected.refusals)
    found += ["edited_approval"] * len(plans)
    near = [
        plan_id
        for plan_id, allowed in plans.items()
        if any(used > 0.8 * allowed[name] for name, used in expected.limits[plan_id].items())
    ]
    return (found + ["limit_nearly_used"] * len(near))[:5]


def is_in_scope(path, change, source):
    """Whether the plan would allow the change: it may create, modify and delete in `src`, but not in `src/keys`."""
    return path.startswith("src/") or (change not in ("created", "deleted") and path.startswith("docs/"))
