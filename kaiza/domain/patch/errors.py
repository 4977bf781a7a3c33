"""Every reason to call a patch malformed, one sentence each; causes hold line numbers, never content."""

from typing import Literal

from kaiza.domain import errors

InvalidReason = Literal[
    "empty",
    "cut_last_line",
    "not_a_patch",
    "header",
    "header_twice",
    "line_ending",
    "names",
    "prefix",
    "quoting",
    "mode",
    "binary",
    "copy",
    "hunk_header",
    "number",
    "counts",
    "hunk_line",
    "marker",
    "order",
    "position",
    "changes_nothing",
    "create",
    "delete",
    "path_twice",
    "root",
    "second_opinion",
]

_SENTENCES: dict[InvalidReason, str] = {
    "empty": "The patch is empty. Send a unified diff.",
    "cut_last_line": "The patch's last line has no line feed, so it may be cut off. Send the patch whole.",
    "not_a_patch": "The patch holds a line that belongs to no file's patch. Send nothing but the unified diff.",
    "header": "A file's header in the patch is incomplete or unknown. Make the patch with git diff or diff -u.",
    "header_twice": "A line of a file's header stands there twice. Make the patch with git diff or diff -u.",
    "line_ending": "The patch's own lines end in CR LF. Send it with LF; lines of a CRLF file keep their CR.",
    "names": "The names in a file's header do not agree. Name the same file in each of its lines.",
    "prefix": "A name in the patch lacks its a/ or b/. Make the patch with these prefixes.",
    "quoting": "A quoted name in the patch is malformed. Quote it as git diff does.",
    "mode": "The patch names a mode other than 100644 and 100755, or changes none. Leave modes and links alone.",
    "binary": "The patch is binary. Write the file with write_file.",
    "copy": "The patch copies a file. Create the new file instead.",
    "hunk_header": "A hunk's header is malformed. It reads @@ -start,count +start,count @@.",
    "number": "A number in a hunk's header is too large. Make the patch with git diff or diff -u.",
    "counts": "A hunk has other lines than its header counts. Make the patch with git diff or diff -u.",
    "hunk_line": "A hunk's line begins with none of blank, + and -. Make the patch with git diff or diff -u.",
    "marker": "A no-newline marker stands where no file can end. Make the patch with git diff or diff -u.",
    "order": "The hunks of a file overlap or are out of order. Put them in the order of the file.",
    "position": "A hunk's place does not follow from the hunks before it. Make the patch with git diff or diff -u.",
    "changes_nothing": "A part of the patch changes nothing. Leave it out.",
    "create": "A new file's patch must consist of added lines only. Take /dev/null and -0,0 as its old side.",
    "delete": "A deleted file's patch must consist of removed lines only. Take /dev/null and +0,0 as its new side.",
    "path_twice": "The patch names one path twice. Send one entry for each file.",
    "root": "The patch names the workspace itself. Name a file.",
    "second_opinion": "Two readers disagree on what the patch says. Make it with git diff or diff -u.",
}


def invalid_patch(line: int, why: InvalidReason) -> errors.SystemError:
    """Say which line of the patch is malformed, from 0, and why."""
    return errors.SystemError.tool_failure(
        "PATCH_INVALID", human_message=_SENTENCES[why], cause={"line": line, "why": why}
    )


def cap_exceeded(cap: str, limit: int, found: int) -> errors.SystemError:
    """Say which bound the patch is over."""
    return errors.SystemError.tool_failure(
        "CAP_EXCEEDED",
        human_message=f"The patch has more than {limit} {cap}. Send it in parts.",
        cause={"cap": f"patch_{cap}", "limit": limit, "found": found},
    )
