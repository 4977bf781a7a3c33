"""References in the text of files, and where they may lead."""

import orjson
import pytest

from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.references import (
    Reference,
    choose_finder,
    find_candidates,
    find_html_links,
    find_markdown_links,
    find_package_files,
    find_project_scripts,
    find_python_imports,
    find_script_imports,
    find_workflow_paths,
)

HOSTILE_BYTES = 128 * 1024
HOSTILE_UNITS = [
    *(
        "[",
        "](",
        "](<",
        "](a(",
        "[a",
        "`",
        "`` ` ",
        "~",
        "<a ",
        "<a href=",
        "<!--",
        "<script>",
        "href=",
        "=",
        "\n",
        " ",
    ),
    *("'", '"', "'''", '"""', "\\", "/*", "from ", "from .", "import '", "require(", "./a", "./", "-./", "uses: ./"),
    "{",
]
FINDERS = [
    find_markdown_links,
    find_html_links,
    find_python_imports,
    find_script_imports,
    find_project_scripts,
    find_package_files,
    find_workflow_paths,
]


def pairs(found):
    return [(reference.line, reference.target) for reference in found]


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("[a](b.md) ![i](c.png)", ["b.md", "c.png"]),
        ("[a](b.md#part) [b](c.md?x) [c](#part)", ["b.md", "c.md"]),
        ('[a](b.md "title") [b](<c d.md>) [c](e_(1).md)', ["b.md", "c d.md", "e_(1).md"]),
        ("[id]: b.md\n[^note]: text", ["b.md"]),
        ('<img src="b.png"> <a href=c.html>', ["b.png", "c.html"]),
        ("`[a](b.md)` ``[a](`c.md)`` [a](d.md)", ["d.md"]),
        ("```\n[a](b.md)\n```\n[a](c.md)", ["c.md"]),
        ("~~~~\n[a](b.md)\n~~~\n[a](c.md)\n~~~~\n[a](d.md)", ["d.md"]),
        ("```x``` [a](b.md)", ["b.md"]),
        ("[a](https://x.org) [b](mailto:a@b.c) [c](//host/x) [d](/root.md) [e](file:///etc/passwd)", []),
        ("[a](C:\\x) [b](\\\\host\\x) [c]({{ url }}) [d]()", []),
        ("[a](../../up.md) [b](%2e%2e/x.md)", ["../../up.md", "%2e%2e/x.md"]),
        ("a `tick and [a](b.md)", ["b.md"]),
    ],
)
def test_relative_links_of_markdown_are_found(text, targets):
    assert [target for _, target in pairs(find_markdown_links(text))] == targets


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<a href="b.html">\n<img\n src="c.png">', [(1, "b.html"), (3, "c.png")]),
        ("<a HREF='a&amp;b.html'>", [(1, "a&b.html")]),
        ('<!-- <a href="b.html"> --><a href="c.html">', [(1, "c.html")]),
        ('<script src="x.js">"<img src=b.png>"</SCRIPT>\n<a href=c>', [(1, "x.js"), (2, "c")]),
        ('<style>a{b:"<a href=b>"}</style>', []),
        ('<a data-href="b" xsrc="c">', []),
        ('<base href="x/"><a href="b.html">', []),
        ('<a href="{{ url }}"><a href="#top"><a href="//cdn/x.js"><a href="data:,x">', []),
        ('<!-- <a href="b.html">', []),
    ],
)
def test_relative_links_of_html_are_found(text, found):
    assert pairs(find_html_links(text)) == found


@pytest.mark.parametrize("find_links", [find_markdown_links, find_html_links])
def test_a_link_that_is_a_number_of_very_many_digits_hides_no_other_link(find_links):
    text = f"<a href='&#{'9' * 5000};'></a>\n<a href='b.md'></a>"

    assert pairs(find_links(text)) == [(2, "b.md")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from .a import b\nfrom ..c.d import (\n e)\n", [(1, ".a"), (2, "..c.d")]),
        ("  from .a import b", [(1, ".a")]),
        ("from . import a\nfrom a.b import c\nimport a", []),
        ("# from .a import b\n'''\nfrom .b import c\n'''\nfrom .d import e", [(5, ".d")]),
        ('"""doc \\""" \nfrom .b import c\n"""\nfrom .d import e', [(4, ".d")]),
        ("x = \"'''\"\nfrom .a import b", [(2, ".a")]),
        ('"""\nfrom .a import b', []),
    ],
)
def test_relative_imports_of_python_are_found(text, found):
    assert pairs(find_python_imports(text)) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a from './a'\nexport * from \"../b\"", [(1, "./a"), (2, "../b")]),
        ("import './a'; const b = require('./b'); await import( './c' )", [(1, "./a"), (1, "./b"), (1, "./c")]),
        ("import {\n a,\n} from './a.js'", [(3, "./a.js")]),
        ("import a from 'a'; import b from '@/b'; f('./c')", []),
        ("// import a from './a'\n/* from './b'\n */ import './c'", [(3, "./c")]),
        ("const a = \"import b from './b'\"; const c = `from './d'`", []),
        ("const from = 1; f('./a')", []),
    ],
)
def test_relative_imports_of_scripts_are_found(text, found):
    assert pairs(find_script_imports(text)) == found


def test_scripts_of_pyproject_are_found():
    text = '[project]\nname = "a:b"\n[project.scripts]\none = "a.b:main"\ntwo = \'c\'\n[other]\nx = "y:z"\n'
    poetry = '[tool.poetry.scripts]\n"x" = "d:e"'

    assert pairs(find_project_scripts(text)) == [(4, "a.b:main"), (5, "c")]
    assert pairs(find_project_scripts(poetry)) == [(2, "d:e")]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"main": "a.js",\n"bin": "b.js"}', [(1, "a.js"), (2, "b.js")]),
        ('{"bin": {"x": "a.js",\n"y": "b.js", "z": 5}}', [(1, "a.js"), (2, "b.js")]),
        ('{"main": ["a"], "bin": null}', []),
        ("[1]", []),
    ],
)
def test_main_and_bin_of_a_package_are_found(text, found):
    assert pairs(find_package_files(text)) == found


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"main": "\udcff"}', "NaN"])
def test_a_package_that_is_not_json_is_a_value_error(text):
    with pytest.raises(orjson.JSONDecodeError):
        list(find_package_files(text))


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("- uses: ./.github/actions/a\n  uses: actions/checkout@v4", ["./.github/actions/a"]),
        ("run: ./scripts/a.sh --x && ./b.py", ["./scripts/a.sh", "./b.py"]),
        ("run: cd x && ./a.sh\n# ./b.sh\nrun: ./c ${{ x }}/./d.sh", []),
        ("working-directory: x\nrun: ./a.sh\nuses: ./b", ["./b"]),
        ("uses: ./${{ matrix.x }}", []),
    ],
)
def test_local_paths_of_workflows_are_found(text, targets):
    assert [target for _, target in pairs(find_workflow_paths(text))] == targets


def candidates(source, target, kind):
    return [str(path) for path in find_candidates(RelPath(tuple(source.split("/"))), Reference(1, target, kind))]


@pytest.mark.parametrize(
    ("source", "target", "kind", "expected"),
    [
        ("docs/a.md", "../b%20c.md", "link", "b c.md"),
        ("docs/a.md", "./x//y/", "link", "docs/x/y"),
        ("a.md", ".", "link", "."),
        ("p/q/a.py", ".b", "python_import", "p/q/b.py"),
        ("p/q/a.py", "..b.c", "python_import", "p/b/c"),
        ("src/a.ts", "./b", "script_import", "src/b.tsx"),
        ("src/a.ts", "../b.js", "script_import", "b.ts"),
        ("src/a.ts", "./b.svg?raw", "script_import", "src/b.svg"),
        ("pyproject.toml", "a.b:main", "python_script", "src/a/b.py"),
        ("w/package.json", "lib", "package_main", "w/lib.js"),
        ("w/.github/workflows/a.yml", "./b", "workflow_path", "w/b"),
    ],
)
def test_a_target_is_resolved_as_its_reader_would(source, target, kind, expected):
    assert expected in candidates(source, target, kind)


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        ("docs/a.md", "../../etc/passwd", "link"),
        ("docs/a.md", "x/../../../docs/a.md", "link"),
        ("docs/a.md", "%2e%2e/%2e%2e/etc", "link"),
        ("docs/a.md", "a%00b", "link"),
        ("docs/a.md", "x" * 256, "link"),
        ("docs/a.md", "xx/" * 2000, "link"),
        ("a.py", "..b", "python_import"),
        ("a.ts", "../b", "script_import"),
        ("package.json", "../b.js", "package_main"),
    ],
)
def test_a_target_outside_the_workspace_has_no_candidates(source, target, kind):
    assert candidates(source, target, kind) == []


@pytest.mark.parametrize(
    ("path", "has_finder"),
    [
        ("a.md", True),
        ("A.HTML", True),
        ("x/package.json", True),
        (".github/workflows/a.yml", True),
        ("other/a.yml", False),
        (".github/a.yml", False),
        ("md", False),
        ("data.json", False),
    ],
)
def test_files_are_chosen_by_name(path, has_finder):
    assert (choose_finder(RelPath(tuple(path.split("/")))) is not None) is has_finder


@pytest.mark.parametrize("finder", FINDERS, ids=lambda finder: finder.__name__)
@pytest.mark.parametrize("unit", HOSTILE_UNITS)
def test_a_hostile_text_takes_linear_time(finder, unit):
    text = unit * (HOSTILE_BYTES // len(unit))
    try:
        found = sum(1 for _ in finder(text))
    except ValueError:
        found = 0

    # Quadratic time would be minutes here: no clock is needed to notice it.
    assert found <= HOSTILE_BYTES // 2
