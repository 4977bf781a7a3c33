import pytest

from kaiza.policy.content.stubs import find_stubs

MARK = "TO" + "DO"
BODY, CATCH, NOTE = "stub-empty-body", "stub-empty-catch", "stub-todo"


def find(name, text, added=None):
    return [(finding.rule, finding.line) for finding in find_stubs(name, text.encode(), added)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"x = 1  # {MARK}: more\n", [("stub-todo", 0)]),
        ("# FIXME\n", [("stub-todo", 0)]),
        ("raise NotImplementedError\n", [("stub-not-implemented", 0)]),
        ("raise NotImplementedError('later')\n", [("stub-not-implemented", 0)]),
        ("raise builtins.NotImplementedError()\n", [("stub-not-implemented", 0)]),
        ("try:\n    a()\nexcept:\n    pass\n", [("stub-empty-except", 2)]),
        ("try:\n    a()\nexcept OSError as e:\n    ...\n", [("stub-empty-except", 2)]),
        ("try:\n    a()\nexcept* OSError:\n    'ignored'  # fine\n", [("stub-empty-except", 2)]),
        ("def f():\n    pass\n", [("stub-empty-body", 0)]),
        ("async def f(): ...\n", [("stub-empty-body", 0)]),
        ("class A:\n    def f(self):\n        '''Promise.'''\n", [("stub-empty-body", 1)]),
        ("@decorated\ndef f():\n    '''Promise.'''\n    pass\n", [("stub-empty-body", 1)]),
        (f"x = '''it's \\''''''  # {MARK}\n", [("stub-todo", 0)]),
        (f"x = 'a\\\n# {MARK}' # {MARK}\n", [("stub-todo", 1)]),
        (f"x = (r'\\\\' + rb\"'''\", # {MARK} {MARK}\n)", [("stub-todo", 0), ("stub-todo", 0)]),
    ],
)
def test_unfinished_python_is_found(text, expected):
    assert find("a.py", text) == expected


@pytest.mark.parametrize(
    "text",
    [
        f"x = '{MARK}'\n",
        f'"""{MARK} in prose."""\n',
        f"{MARK}S = 1\n",
        f"# {MARK.lower()}list\n",
        "x = NotImplementedError\n",
        "try:\n    a()\nexcept NotImplementedError:\n    b()\n",
        "return_value = NotImplemented\n",
        "try:\n    a()\nexcept OSError:\n    log()\n",
        "class E(Exception):\n    pass\n",
        "while True:\n    pass\n",
        "class P(Protocol):\n    def f(self) -> int:\n        ...\n",
        "class P(typing.Protocol[T]):\n    def f(self): ...\n",
        "@abstractmethod\ndef f(): ...\n",
        "@typing.overload\ndef f(): ...\n",
        "def f():\n    '''Promise.'''\n    return 1\n",
        "x = '\\d'\n",
        f"# done\rx = '{MARK}'\n",
    ],
)
def test_finished_python_strings_and_prose_are_ignored(text):
    assert find("a.py", text) == []


def test_empty_bodies_are_allowed_in_pyi_files():
    assert find("a.pyi", "def f() -> int: ...\n") == []


def test_python_that_does_not_parse_is_scanned_line_by_line():
    text = f"def f(:\n  # {MARK}\n  raise NotImplementedError\n  except X: pass\n"

    assert [rule for rule, _ in find("a.py", text)] == ["stub-todo", "stub-not-implemented", "stub-empty-except"]


def test_a_todo_is_found_in_invalid_utf8_and_after_a_lone_cr():
    notes = list(find_stubs("a.py", b"\xef\xbb\xbf# \xff TO" + b"DO\rx = 1 # FIXME\n"))

    assert [(note.line, note.column) for note in notes] == [(0, 4), (0, 17)]


@pytest.mark.parametrize("text", ["(" * 100_000, "x = " + "-" * 100_000 + "1", "\0", "\ufeff\ufeff"])
def test_hostile_python_does_not_fail(text):
    assert find("a.py", text) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.js", f"a() // {MARK}\n", [NOTE]),
        ("a.js", "function f() {}\n", [BODY]),
        ("a.mjs", "class A { f() { /* later */ } }\n", [BODY]),
        ("a.js", "try { a() } catch (e) {}\n", [CATCH]),
        ("a.jsx", "function A() { try { b() } catch { } return <p/> }\n", [CATCH]),
        ("a.ts", "async function f(): Promise<void> {}\n", [BODY]),
        ("a.tsx", "function f(): void {}\nconst a = <b>{/* FIXME */}</b>\n", [BODY, NOTE]),
        ("a.go", "package a\nfunc f() {}\nfunc (a A) g() {\n// FIXME\n}\n", [BODY, BODY, NOTE]),
        ("A.java", "class A { void f() {} void g() { try { a(); } catch (E e) {} } }", [BODY, CATCH]),
        ("A.java", f"/* a\n * {MARK} */ class A {{}}", [NOTE]),
        ("a.rs", f"fn f() {{}}\n/// {MARK}\n", [BODY, NOTE]),
        ("a.c", "int f() {}\n", [BODY]),
        ("a.cpp", "void A::f() {}\nvoid g() { try { a(); } catch (...) {} }\n", [BODY, CATCH]),
        ("A.cs", "class A { void F() {} void G() { try { H(); } catch (E) { } } }", [BODY, CATCH]),
    ],
)  # fmt: skip
def test_unfinished_code_in_other_languages_is_found(name, text, expected):
    assert [rule for rule, _ in find(name, text)] == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.js", f"const a = '{MARK}' + `{MARK}`; function f() {{ return 1 }}\n"),
        ("a.js", "on(() => {})\nclass A { constructor() {} }\n"),
        ("a.ts", "class A { constructor(private x: X) {} }\ndeclare function f(): void;\n"),
        ("a.go", f'package a\nvar a = "{MARK}"\n'),
        ("A.java", "class A { A() {} abstract void f(); }"),
        ("a.c", "int f();\n"),
        ("a.cpp", "A::A() : b(1) {}\nA::~A() {}\nvoid f() { for (;;) {} }\n"),
        ("README.md", f"{MARK}: NotImplementedError\n"),
        ("Makefile", f"# {MARK}\n"),
        ("a.txt", f"{MARK}\n"),
    ],
)
def test_finished_code_strings_and_prose_in_other_languages_are_ignored(name, text):
    assert find(name, text) == []


def test_only_stubs_in_added_lines_are_found():
    python = f"# {MARK}\ndef f():\n    pass\n\ntry:\n    a()\nexcept E:\n    pass\n"
    script = f"// {MARK}\nfunction f() {{\n}}\n"

    assert find("a.py", python, {3, 4, 5}) == []
    assert find("a.py", python, {2}) == [("stub-empty-body", 1)]
    assert find("a.py", python, {7}) == [("stub-empty-except", 6)]
    assert find("a.js", script, {3}) == []
    assert find("a.js", script, {0}) == [("stub-todo", 0)]
    assert find("a.js", script, {2}) == [("stub-empty-body", 1)]


def test_a_stub_position_is_in_characters():
    first = next(find_stubs("a.js", f"é() // ü {MARK}\n".encode()))

    assert (first.line, first.column) == (0, 9)


def test_deep_or_malformed_code_does_not_fail():
    for name in ("a.js", "a.ts", "a.go", "a.java", "a.rs", "a.c", "a.cpp", "a.cs"):
        assert find(name, "{" * 20_000) == []
        assert isinstance(find(name, "\0\ud7ff}}}) catch function ("), list)


def test_large_files_are_scanned_line_by_line():
    filler = "a()\n" * 700_000

    assert find("a.js", f"{filler}// {MARK}\n") == [("stub-todo", 700_000)]
    assert find("a.py", f"{filler}# {MARK}\n") == [("stub-todo", 700_000)]


LONG = 400_000


@pytest.mark.parametrize(
    "text",
    [
        "x = (" + "#" * LONG,
        "x = (\n" + "except" + " :" * LONG,
        "x = (\n" + "except" + ": pass" * LONG + " x",
        "x = (\n" + " " * LONG + "raise" + " " * LONG,
        "x = " + "{" * 2_000 + "'\\" * LONG,
        "x = " + "{" * 2_000 + "\\\" ''" * LONG,
        "x = " + "{" * 2_000 + '\\""" "' * (LONG // 2),
        "x = f'" + "{a}" * LONG + "'",
        "x = [" + "ü," * (LONG // 4) + f"] # {MARK}S",
    ],
)
def test_long_lines_of_python_take_linear_time(text):
    assert find("a.py", text) == []


def test_many_todos_in_one_line_of_python_take_linear_time():
    assert len(find("a.py", f"# {MARK}é\r" * 100_000)) == 0
    assert len(find("a.py", f"# é {MARK}\r" * 100_000)) == 100_000


@pytest.mark.parametrize(
    ("name", "one", "rule"),
    [
        ("a.js", "function f(){}", BODY),
        ("a.ts", "try{}catch{}", CATCH),
        ("a.go", f"/* {MARK} */", NOTE),
        ("a.c", "int f(){}", BODY),
    ],
)
def test_many_stubs_in_one_line_take_linear_time(name, one, rule):
    assert find(name, one * 100_000) == [(rule, 0)] * 100_000


def test_one_long_line_of_a_large_file_takes_linear_time():
    assert find("a.js", "/" * 3_000_000) == []
    assert find("a.js", "/" * 3_000_000 + MARK) == [(NOTE, 0)]
    assert find("a.js", "*" * 3_000_000 + MARK + "s") == []


class _RecordingContainer:
    def __init__(self):
        self.lines = []

    def __contains__(self, line):
        self.lines.append(line)
        return False


def test_each_line_is_checked_once_for_deeply_nested_findings():
    depth = 1_000
    nested = "class A { f(a =\n" * depth + "1" + ") {} }\n" * depth
    added_lines = _RecordingContainer()

    assert len(find("a.js", nested)) == depth
    assert find("a.js", nested, added_lines) == []
    assert len(added_lines.lines) <= 2 * depth + 1


def test_added_lines_are_not_computed_without_findings():
    added_lines = _RecordingContainer()

    assert find("a.py", "def f():\n    return 1  # done\n", added_lines) == []
    assert find("a.js", "try { a() } catch (e) { b() } // done\n", added_lines) == []
    assert added_lines.lines == []
