"""Check of what approves plans besides a person at the terminal: merges and signatures."""

from collections.abc import Iterator
from pathlib import Path

from kaiza.cli.doctor.check import DoctorCheck, ok, warning
from kaiza.queries.trust_summary import describe_trust, list_problems, summarize_trust
from kaiza.render.terminal import escape


def check_trust(root: Path) -> Iterator[DoctorCheck]:
    """Name what is trusted; a warning if something of it does not count now."""
    summary = summarize_trust(str(root))
    problems = list_problems(summary)
    if problems:
        yield warning("trust", f"does not count now: {escape(problems[0])}", "`kaiza trust` shows what is trusted.")
    else:
        yield ok("trust", describe_trust(summary))
