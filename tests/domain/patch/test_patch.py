import pytest

from kaiza.domain import errors, patch
from kaiza.domain.paths.rel_path import RelPath


def modify(hunks, name="f"):
    return f"--- a/{name}\n+++ b/{name}\n{hunks}".encode("latin-1")


def git(header, pair="--- a/f\n+++ b/f\n", hunks="@@ -1 +1 @@\n-a\n+b\n", names="a/f b/f"):
    return f"diff --git {names}\n{header}{pair}{hunks}".encode("latin-1")


def parse(text):
    files = patch.parse(text)
    patch.check_with_unidiff(text, files)
    return files


def apply(text, before, mode=None):
    (file,) = parse(text)
    return patch.apply_file_patch(file, before, mode)


def error_of(call, *arguments):
    with pytest.raises(errors.SystemError) as raised:
        call(*arguments)
    return raised.value


APPLICABLE = {
    "a line replaced": (modify("@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"), b"a\nb\nc\nd\n", b"a\nB\nc\nd\n"),
    "lines after the context stay": (modify("@@ -1,2 +1,3 @@\n a\n+x\n b\n"), b"a\nb\nc\n", b"a\nx\nb\nc\n"),
    "two hunks": (
        modify("@@ -1,2 +1,1 @@\n-a\n b\n@@ -4,2 +3,3 @@\n d\n+x\n e\n"),
        b"a\nb\nc\nd\ne\n",
        b"b\nc\nd\nx\ne\n",
    ),
    "two hunks that touch": (
        modify("@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -3,2 +3,2 @@\n c\n-d\n+D\n"),
        b"a\nb\nc\nd\n",
        b"A\nb\nc\nD\n",
    ),
    "an addition at the end": (modify("@@ -2 +2,2 @@\n b\n+c\n"), b"a\nb\n", b"a\nb\nc\n"),
    "an addition at the beginning": (modify("@@ -1 +1,2 @@\n+x\n a\n"), b"a\nb\n", b"x\na\nb\n"),
    "everything removed leaves an empty file": (modify("@@ -1,2 +0,0 @@\n-a\n-b\n"), b"a\nb\n", b""),
    "an empty file filled": (modify("@@ -0,0 +1,2 @@\n+a\n+b\n"), b"", b"a\nb\n"),
    "the whole file replaced": (modify("@@ -1,2 +1 @@\n-a\n-b\n+c\n"), b"a\nb\n", b"c\n"),
    "removed lines anchor a replacement": (modify("@@ -2 +2 @@\n-b\n+B\n"), b"a\nb\nc\n", b"a\nB\nc\n"),
    "removed lines anchor a removal": (modify("@@ -2 +1,0 @@\n-b\n"), b"a\nb\nc\n", b"a\nc\n"),
    "removed lines anchor the first of several": (
        modify("@@ -1 +1 @@\n-a\n+A\n@@ -3 +3 @@\n-c\n+C\n"),
        b"a\nb\nc\nd\n",
        b"A\nb\nC\nd\n",
    ),
    "added lines before removed ones": (modify("@@ -1,2 +1,2 @@\n+A\n-a\n b\n"), b"a\nb\nc\n", b"A\nb\nc\n"),
    "a bare empty line is empty context": (modify("@@ -1,3 +1,3 @@\n a\n\n-c\n+C\n"), b"a\n\nc\n", b"a\n\nC\n"),
    "a section after the second @@": (modify("@@ -1 +1 @@ def f():\n-a\n+b\n"), b"a\n", b"b\n"),
    "CRLF stays": (modify("@@ -1,2 +1,2 @@\n a\r\n-b\r\n+B\r\n"), b"a\r\nb\r\n", b"a\r\nB\r\n"),
    "CRLF becomes LF where the patch says so": (modify("@@ -1 +1 @@\n-a\r\n+a\n"), b"a\r\n", b"a\n"),
    "a lone CR ends no line": (modify("@@ -1 +1 @@\n-a\rb\n+c\n"), b"a\rb\n", b"c\n"),
    "a form feed and a vertical tab end no line": (modify("@@ -1 +1 @@\n-a\x0cb\x0b\n+c\n"), b"a\x0cb\x0b\n", b"c\n"),
    "NEL and Latin-1 end no line": (modify("@@ -1 +1 @@\n-a\x85\xe9\n+\xff\n"), b"a\x85\xe9\n", b"\xff\n"),
    "NUL is a byte": (modify("@@ -1 +1 @@\n-a\0\n+\0\n"), b"a\0\n", b"\0\n"),
    "a BOM is content": (
        modify("@@ -1 +1 @@\n-\xef\xbb\xbfa\n+\xef\xbb\xbfb\n"),
        b"\xef\xbb\xbfa\n",
        b"\xef\xbb\xbfb\n",
    ),
    "no newline on both sides": (
        modify("@@ -1,2 +1,2 @@\n-a\n+A\n b\n\\ No newline at end of file\n"),
        b"a\nb",
        b"A\nb",
    ),
    "no newline on the old side": (
        modify("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        b"a",
        b"a\n",
    ),
    "no newline on the new side": (
        modify("@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n"),
        b"a\n",
        b"a",
    ),
    "no newline on either side, lines added": (
        modify("@@ -1 +1,2 @@\n-a\n\\ No newline at end of file\n+a\n+b\n\\ No newline at end of file\n"),
        b"a",
        b"a\nb",
    ),
    "the marker in another language": (
        modify("@@ -1 +1 @@\n-a\n\\ Kein Zeilenumbruch am Dateiende.\n+a\n"),
        b"a",
        b"a\n",
    ),
    "lines that look like headers": (
        modify("@@ -1,4 +1,4 @@\n --- a/f\n-++ b\n+-- c\n \\ No newline at end of file\n @@ -1 +1 @@\n"),
        b"--- a/f\n++ b\n\\ No newline at end of file\n@@ -1 +1 @@\n",
        b"--- a/f\n-- c\n\\ No newline at end of file\n@@ -1 +1 @@\n",
    ),
    "git's own header": (git("index 0123abc..4567def 100644\n"), b"a\n", b"b\n"),
    "a tab ends a name": (b"--- a/f\t\n+++ b/f\t\n@@ -1 +1 @@\n-a\n+b\n", b"a\n", b"b\n"),
    "a time after a name": (
        b"--- a/f\t2026-01-01 00:00:00.000000000 +0000\n+++ b/f\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n",
        b"a\n",
        b"b\n",
    ),
    "the command that diff -r writes": (
        b"diff -ru a/f b/f\n--- a/f\t2026-01-01\n+++ b/f\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n",
        b"a\n",
        b"b\n",
    ),
    "a new file": (b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", None, b"a\n"),
    "a new file by git": (
        git("new file mode 100644\nindex 0000000..7898192\n", "--- /dev/null\n+++ b/f\n", "@@ -0,0 +1 @@\n+a\n"),
        None,
        b"a\n",
    ),
    "a new file without a newline": (
        b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n",
        None,
        b"a",
    ),
    "a new empty file": (git("new file mode 100644\nindex 0000000..e69de29\n", "", ""), None, b""),
    "a deleted file": (b"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", b"a\nb\n", None),
    "a deleted file by git": (
        git("deleted file mode 100644\nindex 7898192..0000000\n", "--- a/f\n+++ /dev/null\n", "@@ -1 +0,0 @@\n-a\n"),
        b"a\n",
        None,
    ),
    "a deleted empty file": (git("deleted file mode 100644\nindex e69de29..0000000\n", "", ""), b"", None),
    "a moved file": (
        git("similarity index 100%\nrename from f\nrename to g\n", "", "", names="a/f b/g"),
        b"a\0",
        b"a\0",
    ),
    "a moved and changed file": (
        git("similarity index 50%\nrename from f\nrename to g\n", "--- a/f\n+++ b/g\n", names="a/f b/g"),
        b"a\n",
        b"b\n",
    ),
    "only a mode, of a quoted name": (
        git("old mode 100644\nnew mode 100755\n", "", "", '"a/\\303\\251 x" "b/\\303\\251 x"'),
        b"a",
        b"a",
    ),
    "only a mode": (git("old mode 100644\nnew mode 100755\n", "", ""), b"a", b"a"),
}


@pytest.mark.parametrize("case", APPLICABLE)
def test_a_well_formed_patch_is_applied_exactly(case):
    text, before, after = APPLICABLE[case]

    assert apply(text, before) == after


NAMES = {
    "plain": (b"--- a/d/x.txt\n+++ b/d/x.txt\n", "d/x.txt"),
    "blanks": (b"diff --git a/x y b/x y\n--- a/x y\t\n+++ b/x y\t\n", "x y"),
    "octal": (
        b'diff --git "a/\\303\\251 t.txt" "b/\\303\\251 t.txt"\n--- "a/\\303\\251 t.txt"\n+++ "b/\\303\\251 t.txt"\n',
        "é t.txt",
    ),
    "letters": (
        b'--- "a/q\\"\\\\\\t\\n\\a\\b\\v\\f\\r"\n+++ "b/q\\"\\\\\\t\\n\\a\\b\\v\\f\\r"\n',
        'q"\\\t\n\a\b\v\f\r',
    ),
    "quoted with a time": (b'--- "a/x y"\t2026-01-01\n+++ "b/x y"\t2026-01-01\n', "x y"),
    "b/ inside": (b"diff --git a/x b/x b/x b/x\n--- a/x b/x\t\n+++ b/x b/x\t\n", "x b/x"),
    "UTF-8 as it is": ("--- a/é\n+++ b/é\n".encode(), "é"),
    "a dot and a double slash": (b"--- a/./d//x\n+++ b/./d//x\n", "d/x"),
    "a prefix of its own": (b"--- a/b/f\n+++ b/b/f\n", "b/f"),
    "dev/null in the workspace": (b"--- a/dev/null\n+++ b/dev/null\n", "dev/null"),
}


@pytest.mark.parametrize("case", NAMES)
def test_names_are_parsed_as_git_and_diff_write_them(case):
    header, name = NAMES[case]
    (file,) = parse(header + b"@@ -1 +1 @@\n-a\n+b\n")

    assert file.path == RelPath(tuple(name.split("/")))


@pytest.mark.parametrize(
    "names",
    ['a/x b/y b/x b/z b/q"', "a/\xe9 b/plain"],
)
def test_a_rename_needs_no_old_and_new_file_lines(names):
    old, new = ("x b/y", 'x b/z b/q"') if names.startswith("a/x") else ("\xe9", "plain")
    quoted = [f'"{side}{name}"'.replace('q"', 'q\\"').encode() for side, name in (("a/", old), ("b/", new))]
    bare = [b'"' + name[3:] for name in quoted]
    text = b"diff --git %s %s\nrename from %s\nrename to %s\n" % (*quoted, *bare)
    (file,) = parse(text)

    assert (str(file.source), str(file.path), file.operation) == (old, new, "move")


def test_an_entry_has_operation_modes_and_line_counts():
    text = (
        git("old mode 100644\nnew mode 100755\nindex 1..2\n", hunks="@@ -1,2 +1,3 @@\n-a\n+b\n+c\n d\n")
        + git("new file mode 100755\n", "--- /dev/null\n+++ b/n\n", "@@ -0,0 +1 @@\n+a\n", "a/n b/n")
        + git("deleted file mode 100644\n", "--- a/o\n+++ /dev/null\n", "@@ -1 +0,0 @@\n-a\n", "a/o b/o")
        + git("rename from p\nrename to q\n", "", "", "a/p b/q")
    )
    parsed = [
        (str(one.path), one.source and str(one.source), one.operation, one.old_mode, one.new_mode)
        for one in parse(text)
    ]

    assert parsed == [
        ("f", None, "modify", 0o644, 0o755),
        ("n", None, "create", None, 0o755),
        ("o", None, "delete", 0o644, None),
        ("q", "p", "move", None, None),
    ]
    assert [(one.lines_added, one.lines_removed) for one in patch.parse(text)] == [(2, 1), (1, 0), (0, 1), (0, 0)]


MALFORMED = {
    "nothing": (b"", "empty"),
    "one line feed": (b"\n", "not_a_patch"),
    "prose": (b"Please apply this.\n", "not_a_patch"),
    "prose before": (b"Here it is:\n" + modify("@@ -1 +1 @@\n-a\n+b\n"), "not_a_patch"),
    "prose after": (modify("@@ -1 +1 @@\n-a\n+b\n") + b"That was it.\n", "not_a_patch"),
    "a blank line after": (modify("@@ -1 +1 @@\n-a\n+b\n") + b"\n", "not_a_patch"),
    "a mail's signature": (modify("@@ -1 +1 @@\n-a\n+b\n") + b"-- \n2.39.5\n", "not_a_patch"),
    "a Markdown fence": (b"```diff\n" + modify("@@ -1 +1 @@\n-a\n+b\n") + b"```\n", "not_a_patch"),
    "a mail": (b"From 0123 Mon Sep 17 00:00:00 2001\n" + git(""), "not_a_patch"),
    "an ed script": (b"1c\nx\n.\n", "not_a_patch"),
    "a context diff": (b"*** a/f\n--- b/f\n***************\n*** 1 ****\n", "not_a_patch"),
    "a patch of another kind": (b"*** Begin Patch\n*** Update File: f\n", "not_a_patch"),
    "surplus lines after a hunk": (modify("@@ -1 +1 @@\n-a\n+b\n+c\n"), "not_a_patch"),
    "a surplus line that looks like a header": (modify("@@ -1 +1 @@\n-a\n+b\n--- c\n"), "header"),
    "too few lines": (modify("@@ -1,3 +1,3 @@\n a\n-b\n+c\n"), "counts"),
    "too few lines before another file": (modify("@@ -1,9 +1,9 @@\n a\n") + git(""), "hunk_line"),
    "a count of context that is one too small": (modify("@@ -1,2 +1,1 @@\n-a\n b\n c\n"), "not_a_patch"),
    "more old lines than in the header": (modify("@@ -1,1 +1,2 @@\n-a\n-b\n+c\n+d\n"), "counts"),
    "more new lines than in the header": (modify("@@ -1,2 +1,1 @@\n+a\n+b\n-c\n-d\n"), "counts"),
    "context where one side is full": (modify("@@ -1,1 +1,2 @@\n a\n b\n"), "counts"),
    "a cut last line": (modify("@@ -1 +1 @@\n-a\n+b"), "cut_last_line"),
    "a cut marker": (modify("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file"), "cut_last_line"),
    "a hunk without a header": (b"@@ -1 +1 @@\n-a\n+b\n", "header"),
    "a header without a hunk": (b"--- a/f\n+++ b/f\n", "header"),
    "a git header that says nothing": (git("index 1..2 100644\n", "", ""), "changes_nothing"),
    "a bare git header": (git("", "", ""), "changes_nothing"),
    "half a pair": (b"--- a/f\n@@ -1 +1 @@\n-a\n+b\n", "header"),
    "the other half": (b"+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "not_a_patch"),
    "names that do not agree": (b"--- a/f.orig\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "names"),
    "git names one file, --- another": (git("", "--- a/secret\n+++ b/f\n"), "names"),
    "git names one file, the pair another": (git("", "--- a/secret\n+++ b/secret\n"), "names"),
    "git names two files": (git("", names="a/f b/g"), "names"),
    "git names two files, no pair does": (git("old mode 100644\nnew mode 100755\n", "", "", "a/f b/g"), "names"),
    "git names another old file": (git("", names="a/g b/f"), "names"),
    "git names one file, quoted otherwise": (git("old mode 100644\nnew mode 100755\n", "", "", '"a/f" "b/g"'), "names"),
    "git's line has more": (git("", names='"a/f" "b/f" c'), "quoting"),
    "a name has more after its quote": (git('rename from "f" x\nrename to g\n', "", "", "a/f b/g"), "quoting"),
    "a new file without a new side": (git("new file mode 100644\n", "--- a/f\n+++ /dev/null\n"), "names"),
    "a deleted file without an old side": (git("deleted file mode 100644\n", "--- /dev/null\n+++ b/f\n"), "names"),
    "a moved file's other names": (
        git("rename from f\nrename to g\n", "--- a/f\n+++ b/h\n", names="a/f b/g"),
        "names",
    ),
    "a moved file's other first line": (git("rename from f\nrename to g\n", "", "", "a/f b/h"), "names"),
    "a move to itself": (git("rename from f\nrename to f\n", "", ""), "names"),
    "half a move": (git("rename from f\n", "", ""), "header"),
    "the other half of a move": (git("rename to f\n", "", ""), "header"),
    "a new file with an old side": (git("new file mode 100644\n"), "names"),
    "a deleted file with a new side": (git("deleted file mode 100644\n"), "names"),
    "new and deleted": (git("new file mode 100644\ndeleted file mode 100644\n", "", ""), "names"),
    "moved and new": (git("new file mode 100644\nrename from f\nrename to g\n", "", "", "a/f b/g"), "names"),
    "nothing becomes nothing": (b"--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+a\n", "names"),
    "another new file's name": (
        git("new file mode 100644\n", "--- /dev/null\n+++ b/g\n", "@@ -0,0 +1 @@\n+a\n"),
        "names",
    ),
    "no prefixes": (b"--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", "prefix"),
    "swapped prefixes": (b"--- b/f\n+++ a/f\n@@ -1 +1 @@\n-a\n+b\n", "prefix"),
    "an absolute name without prefix": (b"--- /etc/passwd\n+++ /etc/passwd\n@@ -1 +1 @@\n-a\n+b\n", "prefix"),
    "no prefixes in git's line": (git("old mode 100644\nnew mode 100755\n", "", "", "f f"), "prefix"),
    "an empty name": (b"--- a/\n+++ b/\n@@ -1 +1 @@\n-a\n+b\n", "prefix"),
    "the workspace itself": (b"--- a/.\n+++ b/.\n@@ -1 +1 @@\n-a\n+b\n", "root"),
    "an open quote": (b'--- "a/f\n+++ "b/f\n@@ -1 +1 @@\n-a\n+b\n', "quoting"),
    "an unknown escape": (b'--- "a/\\x41"\n+++ "b/\\x41"\n@@ -1 +1 @@\n-a\n+b\n', "quoting"),
    "an escape beyond a byte": (b'--- "a/\\777"\n+++ "b/\\777"\n@@ -1 +1 @@\n-a\n+b\n', "quoting"),
    "something after a quoted name": (b'--- "a/f" x\n+++ "b/f" x\n@@ -1 +1 @@\n-a\n+b\n', "quoting"),
    "a header twice": (git("index 1..2\nindex 1..2\n"), "header_twice"),
    "an unknown header": (git("colour blue\n"), "not_a_patch"),
    "a malformed index": (git("index 1.2\n"), "header"),
    "a malformed similarity": (git("similarity index most\n"), "header"),
    "a combined diff": (b"diff --cc f\nindex 1,2..3\n--- a/f\n+++ b/f\n@@@ -1 -1 +1 @@@\n--a\n++b\n", "header"),
    "diff -r names another file": (b"diff -ru a/f b/g\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "names"),
    "diff -r names nothing": (b"diff -ru a/f b/f\n@@ -1 +1 @@\n-a\n+b\n", "header"),
    "a file on one side only": (b"Only in a: f\n", "not_a_patch"),
    "a link": (git("new file mode 120000\n", "--- /dev/null\n+++ b/f\n", "@@ -0,0 +1 @@\n+x\n"), "mode"),
    "a submodule": (git("new file mode 160000\n", "--- /dev/null\n+++ b/f\n", "@@ -0,0 +1 @@\n+x\n"), "mode"),
    "a link's index": (git("index 1..2 120000\n"), "mode"),
    "a setuid mode": (git("old mode 100644\nnew mode 104755\n", "", ""), "mode"),
    "half a mode": (git("old mode 100644\n"), "mode"),
    "the same mode": (git("old mode 100644\nnew mode 100644\n", "", ""), "mode"),
    "a mode for a new file twice": (
        git("old mode 100644\nnew mode 100755\nnew file mode 100644\n", "", ""),
        "mode",
    ),
    "a copy": (git("similarity index 100%\ncopy from f\ncopy to g\n", "", "", "a/f b/g"), "copy"),
    "a binary patch": (git("index 1..2 100644\nGIT binary patch\nliteral 1\nIc$x\n", "", ""), "binary"),
    "binary files": (git("index 1..2 100644\nBinary files a/f and b/f differ\n", "", ""), "binary"),
    "binary files by diff": (b"Binary files a/f and b/f differ\n", "binary"),
    "CRLF throughout": (modify("@@ -1 +1 @@\n-a\n+b\n").replace(b"\n", b"\r\n"), "line_ending"),
    "CRLF throughout, by git": (git("index 1..2 100644\n").replace(b"\n", b"\r\n"), "line_ending"),
    "CRLF in one header line": (git("index 1..2 100644\r\n"), "line_ending"),
    "CRLF in +++": (b"--- a/f\n+++ b/f\r\n@@ -1 +1 @@\n-a\n+b\n", "line_ending"),
    "words for numbers": (modify("@@ -one +one @@\n-a\n+b\n"), "hunk_header"),
    "a negative number": (modify("@@ --1 +1 @@\n-a\n+b\n"), "hunk_header"),
    "an empty number": (modify("@@ -1, +1 @@\n-a\n+b\n"), "hunk_header"),
    "a leading zero": (modify("@@ -01 +1 @@\n-a\n+b\n"), "hunk_header"),
    "no second @@": (modify("@@ -1 +1\n-a\n+b\n"), "hunk_header"),
    "no numbers at all": (modify("@@ ... @@\n-a\n+b\n"), "hunk_header"),
    "a number of 5,000 digits": (modify(f"@@ -{'9' * 5000} +1 @@\n-a\n+b\n"), "number"),
    "a count of 5,000 digits": (modify(f"@@ -1,{'9' * 5000} +1 @@\n-a\n+b\n"), "number"),
    "a number past 31 bits": (modify("@@ -2147483648 +1 @@\n-a\n+b\n"), "number"),
    "a count beyond the patch": (modify("@@ -1,2147483647 +1 @@\n-a\n+b\n"), "counts"),
    "nothing on either side": (modify("@@ -0,0 +0,0 @@\n"), "changes_nothing"),
    "context only": (modify("@@ -1,2 +1,2 @@\n a\n b\n"), "changes_nothing"),
    "a line replaced by itself": (modify("@@ -1,2 +1,2 @@\n a\n-b\n+b\n"), "changes_nothing"),
    "an insertion without context": (modify("@@ -12,0 +13 @@\n+a\n"), "position"),
    "line zero": (modify("@@ -0,1 +1 @@\n-a\n+b\n"), "position"),
    "line zero on both sides": (modify("@@ -0,1 +0,1 @@\n-a\n+b\n"), "position"),
    "a new side at line zero": (modify("@@ -1 +0,1 @@\n-a\n+b\n"), "position"),
    "a new side elsewhere": (modify("@@ -1 +2 @@\n-a\n+b\n"), "position"),
    "a shift that does not follow": (
        modify("@@ -1 +1,2 @@\n a\n+b\n@@ -5,2 +5 @@\n c\n-d\n"),
        "position",
    ),
    "hunks out of order": (modify("@@ -5 +5 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n"), "order"),
    "hunks that overlap": (modify("@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -2 +2 @@\n-b\n+B\n"), "order"),
    "a line without a sign": (modify("@@ -1,2 +1,2 @@\n a\nb\n"), "hunk_line"),
    "a bare CR as a line": (modify("@@ -1,2 +1,2 @@\n-a\n+b\n\r\n"), "hunk_line"),
    "a marker at the beginning": (modify("@@ -1 +1 @@\n\\ No newline at end of file\n-a\n+b\n"), "marker"),
    "two markers": (
        modify("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n\\ No newline at end of file\n"),
        "not_a_patch",
    ),
    "two markers inside": (
        modify("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n\\ No newline at end of file\n+b\n"),
        "marker",
    ),
    "a marker that is too short": (modify("@@ -1 +1 @@\n-a\n+b\n\\ No\n"), "marker"),
    "a marker in the middle of the old side": (
        modify("@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+c\n"),
        "marker",
    ),
    "a marker in the middle of the new side": (
        modify("@@ -1 +1,2 @@\n-a\n+b\n\\ No newline at end of file\n+c\n"),
        "marker",
    ),
    "context after a marker": (
        modify("@@ -1,2 +1,3 @@\n a\n+x\n\\ No newline at end of file\n b\n"),
        "marker",
    ),
    "a hunk after a marker": (
        modify("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n@@ -3 +3 @@\n-c\n+d\n"),
        "order",
    ),
    "an empty line without its line feed": (modify("@@ -1 +1,2 @@\n a\n+\n\\ No newline at end of file\n"), "marker"),
    "a new file with old lines": (b"--- /dev/null\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n", "create"),
    "a deleted file with new lines": (b"--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "delete"),
    "one path twice": (modify("@@ -1 +1 @@\n-a\n+b\n") * 2, "path_twice"),
    "one path twice, written differently": (
        modify("@@ -1 +1 @@\n-a\n+b\n", "d/f") + modify("@@ -1 +1 @@\n-a\n+b\n", "./d//f"),
        "path_twice",
    ),
    "a swap": (
        git("rename from f\nrename to g\n", "", "", "a/f b/g") + git("rename from g\nrename to f\n", "", "", "a/g b/f"),
        "path_twice",
    ),
    "moved and modified elsewhere": (
        git("rename from f\nrename to g\n", "", "", "a/f b/g") + git(""),
        "path_twice",
    ),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_patch_is_refused_whole(case):
    text, why = MALFORMED[case]
    error = error_of(patch.parse, text)

    assert (error.error_code, error.cause["why"]) == ("PATCH_INVALID", why)
    assert 0 <= error.cause["line"] <= text.count(b"\n")
    assert error.evidence is None


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("../f", "PATH_TRAVERSAL_BLOCKED"),
        ("d/../../f", "PATH_TRAVERSAL_BLOCKED"),
        ("/etc/passwd", "OUTSIDE_WORKSPACE"),
        ("f\0", "INVALID_PATH"),
        ("\xff", "INVALID_PATH"),
        ("x" * 256, "INVALID_PATH"),
        ("d/" * 2100 + "f", "INVALID_PATH"),
    ],
)
@pytest.mark.parametrize("side", ["both", "from", "to"])
def test_an_unsafe_path_in_a_patch_is_refused(name, code, side):
    old, new = (name if side in {"both", one} else "fine" for one in ("from", "to"))
    text = modify("@@ -1 +1 @@\n-a\n+b\n", name)
    if side != "both":
        text = git(f"rename from {old}\nrename to {new}\n", "", "", f"a/{old} b/{new}")

    assert error_of(patch.parse, text).error_code == code


def test_errors_of_form_are_reported_before_errors_of_paths():
    error = error_of(patch.parse, modify("@@ -1 +1 @@\n-a\n+b\n", "../f") + b"prose\n")

    assert error.error_code == "PATCH_INVALID"


MISMATCHES = {
    "another line": (modify("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), b"a\nx\n", "lines", 1),
    "another context": (modify("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), b"x\nb\n", "lines", 0),
    "the right lines elsewhere": (modify("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), b"x\na\nb\n", "lines", 0),
    "a file too short": (modify("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"), b"a\n", "lines", 1),
    "an empty file": (modify("@@ -1 +1 @@\n-a\n+b\n"), b"", "lines", 0),
    "a blank at the end": (modify("@@ -1 +1 @@\n-a\n+b\n"), b"a \n", "lines", 0),
    "CRLF in the file only": (modify("@@ -1 +1 @@\n-a\n+b\n"), b"a\r\n", "line_ending", 0),
    "CRLF in the patch only": (modify("@@ -1 +1 @@\n-a\r\n+b\r\n"), b"a\n", "line_ending", 0),
    "the file ends without a newline": (modify("@@ -1 +1 @@\n-a\n+b\n"), b"a", "line_ending", 0),
    "the patch ends without a newline": (
        modify("@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"),
        b"a\n",
        "line_ending",
        0,
    ),
    "the file has lines after the marker": (
        modify("@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n"),
        b"a\nc\n",
        "end_of_file",
        1,
    ),
    "no trailing context": (modify("@@ -1 +1,2 @@\n a\n+b\n"), b"a\nc\n", "end_of_file", 1),
    "no trailing context after a removal": (modify("@@ -1,2 +1 @@\n a\n-b\n"), b"a\nb\nc\n", "end_of_file", 2),
    "no trailing context after a replacement": (
        modify("@@ -1,2 +1,2 @@\n a\n-b\n+B\n"),
        b"a\nb\nc\n",
        "end_of_file",
        2,
    ),
    "the whole of a file that has more lines": (modify("@@ -1 +1 @@\n-a\n+b\n"), b"a\nc\n", "end_of_file", 1),
    "-0,0 on a file with content": (modify("@@ -0,0 +1 @@\n+a\n"), b"b\n", "end_of_file", 0),
    "the second hunk": (
        modify("@@ -1,2 +1,2 @@\n-a\n+A\n b\n@@ -4,2 +4,2 @@\n-d\n+D\n e\n"),
        b"a\nb\nc\nx\ne\n",
        "lines",
        3,
    ),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_a_patch_that_does_not_fit_is_refused_with_hunk_and_line(case):
    text, before, why, line = MISMATCHES[case]
    (file,) = parse(text)
    error = error_of(patch.apply_file_patch, file, before)

    assert error.error_code == "PATCH_APPLY_FAILED"
    assert (error.cause["path"], error.cause["why"], error.cause["line"]) == ("f", why, line)
    assert error.cause["hunk"] == len(file.hunks)
    assert {"expected", "found"} <= error.evidence.keys()


def test_expected_and_found_lines_are_in_the_evidence_and_never_in_the_cause():
    (file,) = parse(modify("@@ -1,2 +1,2 @@\n a\n-secret\n+b\n"))
    error = error_of(patch.apply_file_patch, file, b"a\n\xffother\n")

    assert error.evidence["expected"] == ["secret\n"]
    assert error.evidence["found"] == ["\\xffother\n"]
    assert "secret" not in repr(error.cause)
    assert "other" not in repr(error.cause)


def test_a_refusal_lists_where_the_lines_are_now():
    (file,) = parse(modify("@@ -1,2 +1,2 @@\n a\n-b\n+c\n"))
    error = error_of(patch.apply_file_patch, file, b"x\na\nb\nxa\nb\na\nb\n")

    assert error.cause["fits_at"] == [1, 5]


@pytest.mark.parametrize(
    ("text", "before", "code"),
    [
        (b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", b"", "FILE_ALREADY_EXISTS"),
        (b"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", None, "FILE_NOT_FOUND"),
        (modify("@@ -1 +1 @@\n-a\n+b\n"), None, "FILE_NOT_FOUND"),
        (modify("@@ -0,0 +1 @@\n+a\n"), None, "FILE_NOT_FOUND"),
        (git("rename from f\nrename to g\n", "", "", "a/f b/g"), None, "FILE_NOT_FOUND"),
    ],
)
def test_a_file_must_exist_or_not_as_the_patch_expects(text, before, code):
    (file,) = parse(text)
    error = error_of(patch.apply_file_patch, file, before)

    assert (error.error_code, error.cause) == (code, {"path": "f"})


@pytest.mark.parametrize("before", [b"a\nb\nc\n", b"a\nb\nc", b"x\na\nb\n"])
def test_a_deletion_that_does_not_list_the_whole_file_is_refused(before):
    (file,) = parse(b"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n")

    assert error_of(patch.apply_file_patch, file, before).error_code == "PATCH_APPLY_FAILED"


def test_deleting_an_empty_file_is_refused_once_it_has_content():
    (file,) = parse(git("deleted file mode 100644\n", "", ""))

    assert error_of(patch.apply_file_patch, file, b"a\n").cause["why"] == "whole_file"


@pytest.mark.parametrize(
    ("header", "fits"),
    [
        ("old mode 100644\nnew mode 100755\n", 0o644),
        ("old mode 100755\nnew mode 100644\n", 0o755),
        ("index 1..2 100644\n", 0o640),
        ("index 1..2 100755\n", 0o700),
    ],
)
def test_the_old_mode_must_agree_with_the_execute_bit_of_the_file(header, fits):
    (file,) = parse(git(header))

    assert patch.apply_file_patch(file, b"a\n", fits) == b"b\n"
    assert error_of(patch.apply_file_patch, file, b"a\n", fits ^ 0o100).cause == {"path": "f", "why": "mode"}


def entries(count):
    return b"".join(modify("@@ -1 +1 @@\n-a\n+b\n", f"f{number}") for number in range(count))


def hunks(count):
    return "".join(f"@@ -{at} +{at} @@\n-a\n+b\n" for at in range(1, count + 1))


def test_a_patch_has_at_most_200_files_and_20_000_hunks():
    assert len(parse(entries(200))) == 200
    assert error_of(patch.parse, entries(201)).error_code == "CAP_EXCEEDED"
    assert apply(modify(hunks(20_000)), b"a\n" * 20_000) == b"b\n" * 20_000
    assert error_of(patch.parse, modify(hunks(20_001))).error_code == "CAP_EXCEEDED"


def test_a_patch_that_unidiff_reads_differently_is_refused():
    text, other = modify("@@ -1 +1 @@\n-a\n+b\n"), modify("@@ -1 +1 @@\n-a\n+b\n", "g")
    more = modify("@@ -1 +1,2 @@\n-a\n+b\n+c\n")

    for reread in (other, more, text + other, git("old mode 100644\nnew mode 100755\n", "", "")):
        assert error_of(patch.check_with_unidiff, reread, patch.parse(text)).error_code == "PATCH_INVALID"


def test_long_lines_and_long_names_take_linear_time():
    long_line = b"x" * 400_000
    text = b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-" + long_line + b"\n+y\n"
    quotes = b'--- "a/' + b"\\\\" * 100_000

    assert apply(text, long_line + b"\n") == b"y\n"
    assert error_of(patch.parse, quotes + b"\n+++ x\n").error_code == "PATCH_INVALID"
