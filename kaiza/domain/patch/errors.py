"""Errors of malformed patches: every reason, with its message. Causes hold line numbers, never content."""

from kaiza.domain import errors

_SENTENCES = {
    "empty": "The patch is empty. Send a unified diff.",
    "cut_last_line": "The patch's last line has no newline, so it may be cut off. Send the complete patch.",
    "not_a_patch": "The patch has a line that is not part of a unified diff. Send only the unified diff.",
    "header": "The header of a file in the patch is incomplete or unknown. Make the patch with git diff or diff -u.",
    "header_twice": "The header of a file has a line twice. Make the patch with git diff or diff -u.",
    "line_ending": "The patch's header lines end in CRLF. Send them with LF; lines of a CRLF file keep their CR.",
    "names": "The names in the header of a file differ. Use the same name in all of its lines.",
    "prefix": "A name in the patch has no a/ or b/ prefix. Make the patch with these prefixes.",
    "quoting": "A quoted name in the patch is malformed. Quote it as git diff does.",
    "mode": "The patch has a mode other than 100644 or 100755, or changes none. Leave modes and links unchanged.",
    "binary": "The patch is binary. Use write_file instead.",
    "copy": "The patch copies a file. Create the new file instead.",
    "hunk_header": "A hunk header is malformed. Write it as @@ -start,count +start,count @@.",
    "number": "A number in a hunk header is too large. Make the patch with git diff or diff -u.",
    "counts": "A hunk has more or fewer lines than its header says. Make the patch with git diff or diff -u.",
    "hunk_line": "A line of a hunk does not begin with a space, + or -. Make the patch with git diff or diff -u.",
    "marker": "A no-newline marker is in a place where no file can end. Make the patch with git diff or diff -u.",
    "order": "The hunks of a file overlap or are out of order. Sort them by line.",
    "position": "The line numbers of a hunk do not fit the hunks before it. Make the patch with git diff or diff -u.",
    "changes_nothing": "A part of the patch changes nothing. Leave it out.",
    "create": "A patch for a new file must have only added lines. Use /dev/null and -0,0 as its old side.",
    "delete": "A patch for a deleted file must have only removed lines. Use /dev/null and +0,0 as its new side.",
    "path_twice": "The patch has the same path twice. Send one entry for each file.",
    "root": "The patch names the workspace directory. Name a file in it.",
    "second_opinion": "Two parsers read the patch differently. Make it with git diff or diff -u.",
}


def invalid_patch(line: int, reason: str) -> errors.SystemError:
    """PATCH_INVALID at a line of the patch, from 0."""
    return errors.SystemError.tool_failure(
        "PATCH_INVALID", human_message=_SENTENCES[reason], cause={"line": line, "why": reason}
    )


def cap_exceeded(cap: str, limit: int, found: int) -> errors.SystemError:
    """CAP_EXCEEDED for a patch with too many files or hunks."""
    return errors.SystemError.tool_failure(
        "CAP_EXCEEDED",
        human_message=f"The patch has more than {limit} {cap}. Send it in parts.",
        cause={"cap": f"patch_{cap}", "limit": limit, "found": found},
    )
