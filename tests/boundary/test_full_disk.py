"""A full disk: a change is complete or refused, and leaves no temporary files."""

import os
import subprocess

from boundary.test_recovery import PATCH, files, lay_out

from kaiza.app import App
from kaiza.store.audit.verification.verify import verify_log

LINES = 3000
LONG_FILE = "".join(f"+{number:07}\n" for number in range(LINES))
CHANGE = PATCH.replace("@@ -0,0 +1 @@\n+new\n", f"@@ -0,0 +1,{LINES} @@\n{LONG_FILE}")


def fill(disk, free_bytes):
    """Fill the disk up to this many free bytes."""
    with (disk / "ballast").open("wb") as ballast:
        status = os.statvfs(disk)
        ballast.write(b"x" * max(0, status.f_bavail * status.f_frsize - free_bytes))


def test_a_change_on_a_full_disk_is_complete_or_refused_for_any_free_space(small_disk):
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    codes = []
    for free_bytes in range(0, 96 * 1024, 4096):
        root = small_disk / f"project{free_bytes}"
        root.mkdir()
        plan_hash = lay_out(root)
        before = files(root)
        app = App([os.path.realpath(root)])
        app.call("begin_session", {"role": "WINDSURF"})
        fill(small_disk, free_bytes)
        outcome = app.call("apply_patch", {"patch": CHANGE, "plan_hash": plan_hash})
        (small_disk / "ballast").unlink()
        after = files(root)
        codes.append(outcome.envelope["error_code"] if outcome.envelope else "ok")
        next_session = app.call("begin_session", {"role": "WINDSURF"})
        app.close()

        assert set(after) == ({"src/new.py", "src/changed.py"} if codes[-1] == "ok" else set(before))
        assert codes[-1] == "ok" or after == before
        assert files(root) == after
        assert next_session.envelope is None
        assert [path for path in root.rglob(".kaiza-*") if path.is_file()] == []
        assert verify_log(os.path.realpath(root)).verdict == "intact"
        subprocess.run(["rm", "-rf", root], check=True)

    assert set(codes) == {"ok", "FILE_WRITE_FAILED", "AUDIT_LOG_FAILED"}
