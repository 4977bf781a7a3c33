"""A disk that is really full: a change is made whole or refused, and nothing of it is left lying."""

import os
import subprocess

from boundary.test_recovery import PATCH, files, lay_out

from kaiza.app import App
from kaiza.store.audit.verification.verify import verify_log

LINES = 3000
LONG_FILE = "".join(f"+{number:07}\n" for number in range(LINES))
CHANGE = PATCH.replace("@@ -0,0 +1 @@\n+new\n", f"@@ -0,0 +1,{LINES} @@\n{LONG_FILE}")


def fill(disk, room):
    """Leave so many bytes of the disk free."""
    with (disk / "ballast").open("wb") as ballast:
        free = os.statvfs(disk)
        ballast.write(b"x" * max(0, free.f_bavail * free.f_frsize - room))


def test_a_change_on_a_full_disk_is_complete_or_refused_for_any_free_space(small_disk):
    subprocess.run(["mount", "-o", "remount,size=1m", small_disk], check=True)
    seen = []
    for room in range(0, 96 * 1024, 4096):
        root = small_disk / f"project{room}"
        root.mkdir()
        plan_hash = lay_out(root)
        before = files(root)
        app = App([os.path.realpath(root)])
        app.call("begin_session", {"role": "WINDSURF"})
        fill(small_disk, room)
        outcome = app.call("apply_patch", {"patch": CHANGE, "plan_hash": plan_hash})
        (small_disk / "ballast").unlink()
        after = files(root)
        seen.append(outcome.envelope["error_code"] if outcome.envelope else "ok")
        again = app.call("begin_session", {"role": "WINDSURF"})
        app.close()

        assert set(after) == ({"src/new.py", "src/changed.py"} if seen[-1] == "ok" else set(before))
        assert seen[-1] == "ok" or after == before
        assert files(root) == after
        assert again.envelope is None
        assert [path for path in root.rglob(".kaiza-*") if path.is_file()] == []
        assert verify_log(os.path.realpath(root)).verdict == "intact"
        subprocess.run(["rm", "-rf", root], check=True)

    assert set(seen) == {"ok", "FILE_WRITE_FAILED", "AUDIT_LOG_FAILED"}
