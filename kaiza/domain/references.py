"""References in the text of files, by links, imports and paths in configuration, and the files that they may lead to.

The files are untrusted. Each is read in linear time, line by line or by patterns with limited backtracking. None is
executed, or parsed by a parser that a crafted file could slow down.
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple
from urllib.parse import unquote

import orjson

from kaiza.domain.paths.rel_path import MAX_COMPONENT, MAX_PATH, RelPath

ReferenceKind = Literal[
    "link", "python_import", "script_import", "python_script", "package_main", "package_bin", "workflow_path"
]
_PYTHON_SUFFIXES = (".py", "", ".pyi", ".pyx", ".so", ".pyd", ".c")
_SCRIPT_SUFFIXES = ("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".node")
_COMPONENT_SUFFIXES = (".vue", ".svelte")
_COMPILED_FROM = {".js": (".ts", ".tsx", ".d.ts"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""A TypeScript module imports another by the name of the file that it is compiled to."""


class Reference(NamedTuple):
    """A target as it is written, and its line, counted from 1."""

    line: int
    target: str
    kind: ReferenceKind


def find_candidates(source: RelPath, reference: Reference) -> list[RelPath]:
    """Paths of which one must exist, likeliest first; none if the target is outside the workspace or not a path."""
    target, directory = reference.target, source.parent
    if reference.kind == "link":
        return _resolve_all(directory, [unquote(target, errors="surrogateescape")])
    if reference.kind == "python_import":
        name = target.lstrip(".")
        above = "../" * (len(target) - len(name) - 1)
        return _resolve_all(directory, [f"{above}{name.replace('.', '/')}{suffix}" for suffix in _PYTHON_SUFFIXES])
    if reference.kind == "python_script":
        module = target.partition(":")[0].replace(".", "/")
        return _resolve_all(directory, [f"{base}{module}{suffix}" for base in ("", "src/") for suffix in (".py", "")])
    if reference.kind == "workflow_path":
        return _resolve_all(directory.parent.parent, [target])
    return _resolve_all(directory, _script_files(target.partition("?")[0]))


def _script_files(target: str) -> list[str]:
    files = [target + suffix for suffix in (*_SCRIPT_SUFFIXES, *_COMPONENT_SUFFIXES)]
    for compiled, sources in _COMPILED_FROM.items():
        if target.endswith(compiled):
            files += [target.removesuffix(compiled) + suffix for suffix in sources]
    return files


def _resolve_all(directory: RelPath, targets: list[str]) -> list[RelPath]:
    return [path for path in (_resolve(directory, target) for target in targets) if path is not None]


def _resolve(directory: RelPath, target: str) -> RelPath | None:
    """The path that a relative target names; None if it leaves the workspace or cannot be a path."""
    parts = list(directory.parts)
    for part in target.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    text = "/".join(parts)
    if "\0" in text or len(_encode(text)) > MAX_PATH or any(len(_encode(part)) > MAX_COMPONENT for part in parts):
        return None
    return RelPath(tuple(parts))


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\n]*)")
_CODE_MARK = re.compile(r"(`+)")
_DESTINATION = re.compile(r"[ \t]*(?:<([^<>]{0,1024})>|([^\s()<>]{0,1024}(?:\([^\s()<>]{0,1024}\)[^\s()<>]{0,1024})?))")
_DEFINITION = re.compile(r" {0,3}\[[^\]^][^\]]*\]:[ \t]*<?([^\s<>]{1,1024})")
_TAG = re.compile(r"<!--|<([A-Za-z][A-Za-z0-9-]*+)([^<>]*+)>")
_ATTRIBUTE = re.compile(r"""(?<![\w-])(?:href|src)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'=<>`]++))""", re.IGNORECASE)
_CODE_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
_MAX_VALUE = 4096  # no path is longer, and `html.unescape` fails on a number of more digits than 4300
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def find_markdown_links(text: str) -> Iterator[Reference]:
    """Links, images, definitions of links, and HTML tags; not in code."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not mark[2].strip() else fence
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        else:
            yield from _make_links(number, _line_targets(_remove_code_spans(line)))


def find_html_links(text: str) -> Iterator[Reference]:
    """Values of `href` and `src`. A page with `<base>` has none: they mean something else there."""
    number, counted, found = 1, 0, []
    for offset, name, target in _tag_targets(text):
        if name == "base":
            return
        number, counted = number + text.count("\n", counted, offset), offset
        found.append((number, target))
    for line, target in found:
        yield from _make_links(line, iter([target]))


def _line_targets(line: str) -> Iterator[str]:
    position = line.find("](")
    while position >= 0:
        destination = _DESTINATION.match(line, position + 2)
        position = line.find("](", destination.end() if destination else position + 2)
        if destination:
            yield destination[1] or destination[2] or ""
    definition = _DEFINITION.match(line)
    if definition:
        yield definition[1]
    if "<" in line:
        yield from (target for _, _, target in _tag_targets(line))


def _remove_code_spans(line: str) -> str:
    """Remove code spans from a line. A span begins and ends with the same number of backticks."""
    if "`" not in line:
        return line
    pieces = _CODE_MARK.split(line)
    last = {mark: index for index, mark in enumerate(pieces) if index % 2}
    kept, index = [], 0
    while index < len(pieces):
        piece = pieces[index]
        if index % 2 and last[piece] > index:
            index = next(end for end in range(index + 2, len(pieces), 2) if pieces[end] == piece)
        else:
            kept.append(piece)
        index += 1
    return "".join(kept)


def _tag_targets(text: str) -> Iterator[tuple[int, str, str]]:
    """Offset, name of the tag, and value, of each link; comments, scripts and styles are skipped."""
    position: int | None = 0
    while position is not None and (tag := _TAG.search(text, position)):
        position = tag.end()
        if tag[1] is None:
            end = text.find("-->", position)
            position = end if end >= 0 else None
            continue
        name = tag[1].lower()
        for attribute in _ATTRIBUTE.finditer(tag[2]):
            value = next(group for group in attribute.groups() if group is not None)
            if len(value) <= _MAX_VALUE:
                yield tag.start(2) + attribute.start(), name, html.unescape(value)
        if name in _CODE_ENDS:
            closing = _CODE_ENDS[name].search(text, position)
            position = closing.end() if closing else None


def _make_links(line: int, targets: Iterator[str]) -> Iterator[Reference]:
    for target in targets:
        path = target.strip().partition("#")[0].partition("?")[0]
        # Neither a URL, nor a path of the site, nor a template's placeholder.
        is_elsewhere = path.startswith(("/", "\\")) or "{" in path or "<" in path or _SCHEME.match(path) is not None
        if path and not is_elsewhere:
            yield Reference(line, path, "link")


# Every alternative of these patterns is possessive and ends at the latest where the text does, so that no character
# is read twice.
_PYTHON_TEXT = re.compile(
    r'#[^\n]*+|"""(?:[^"\\]|\\[\s\S]|"(?!""))*+(?:""")?'
    r"|'''(?:[^'\\]|\\[\s\S]|'(?!''))*+(?:''')?"
    r'|"(?:[^"\\\n]|\\[\s\S])*+"?'
    r"|'(?:[^'\\\n]|\\[\s\S])*+'?"
)
"""Comments and strings."""
_PYTHON_IMPORT = re.compile(r"^[ \t]*+from[ \t]*+(\.++)[ \t]*+([A-Za-z_][\w.]*+)[ \t]++import\b", re.MULTILINE)
_SCRIPT_TOKEN = re.compile(
    r"//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|`(?:[^`\\]|\\[\s\S])*+`?"
    r"""|(?P<string>"(?:[^"\\\n]|\\[\s\S])*+"?|'(?:[^'\\\n]|\\[\s\S])*+'?)"""
    r"|\b(?P<word>from|import|require)\b"
)
_MAX_GAP = 64
"""Characters between a keyword and its string."""


def find_python_imports(text: str) -> Iterator[Reference]:
    """Modules of `from .module import name`. `from . import name` is left out: the name may not be a module."""
    code = _PYTHON_TEXT.sub(lambda found: "\n" * found[0].count("\n"), text)
    number, counted = 1, 0
    for found in _PYTHON_IMPORT.finditer(code):
        number, counted = number + code.count("\n", counted, found.start(1)), found.start(1)
        yield Reference(number, found[1] + found[2], "python_import")


def find_script_imports(text: str) -> Iterator[Reference]:
    """Targets of `from`, `import` and `require` that begin with a dot; not in comments, strings and templates."""
    number, counted, word_end = 1, 0, -1
    for token in _SCRIPT_TOKEN.finditer(text):
        if token.lastgroup == "word":
            word_end = token.end()
        elif token.lastgroup == "string":
            target = token["string"][1:-1]
            is_near = word_end >= 0 and token.start() - word_end <= _MAX_GAP
            if is_near and target.startswith(("./", "../")) and text[word_end : token.start()].strip() in {"", "("}:
                number, counted = number + text.count("\n", counted, token.start()), token.start()
                yield Reference(number, target, "script_import")
            word_end = -1


_SCRIPT_TABLES = frozenset({"project.scripts", "project.gui-scripts", "tool.poetry.scripts"})
# Not read with tomllib: the time that it takes for a long dotted key is quadratic.
_TABLE = re.compile(r"[ \t]*\[([^\[\]]*+)\]")
_SCRIPT = re.compile(r"""[ \t]*[\w."'-]++[ \t]*=[ \t]*(["'])([A-Za-z_][\w.]*+(?::[\w.]*+)?)""")
_USES = re.compile(r"""[ \t]*(?:-[ \t]+)?uses:[ \t]*["']?(\./[^\s"'#@]*)""")
# No match begins inside another: the characters before `./` are those that a match can have.
_RUN_SCRIPT = re.compile(r"(?<![\w./$}-])\./[\w./-]*\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|ps1)(?![\w./-])")
_MAX_BINS = 200


def find_project_scripts(text: str) -> Iterator[Reference]:
    """Modules of the console scripts."""
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        header = _TABLE.match(line)
        if header:
            table = re.sub(r"[\s\"']", "", header[1])
        elif table in _SCRIPT_TABLES and (script := _SCRIPT.match(line)):
            yield Reference(number, script[2], "python_script")


def find_package_files(text: str) -> Iterator[Reference]:
    """Values of `main` and `bin`; ValueError if the text is not JSON."""
    document = orjson.loads(text.encode(errors="surrogateescape"))
    if not isinstance(document, dict):
        return
    named = document.get("bin")
    bins = list(named.values())[:_MAX_BINS] if isinstance(named, dict) else [named]
    yield from _find_values(text, "main", [document.get("main")], "package_main")
    yield from _find_values(text, "bin", bins, "package_bin")


def find_workflow_paths(text: str) -> Iterator[Reference]:
    """Local actions and workflows, and scripts that a command names by `./`, where it runs in the repository's root."""
    runs_elsewhere = "working-directory:" in text
    for number, line in enumerate(text.split("\n"), 1):
        uses = _USES.match(line)
        if uses and "$" not in uses[1]:
            yield Reference(number, uses[1], "workflow_path")
        elif not (runs_elsewhere or uses or "cd " in line or line.lstrip().startswith("#")):
            yield from (Reference(number, script[0], "workflow_path") for script in _RUN_SCRIPT.finditer(line))


def _find_values(text: str, key: str, values: list[object], kind: ReferenceKind) -> Iterator[Reference]:
    for value in values:
        if isinstance(value, str) and value:
            offset = text.find(f'"{value}"', max(0, text.find(f'"{key}"')))
            yield Reference(text.count("\n", 0, max(0, offset)) + 1, value, kind)


Finder = Callable[[str], Iterator[Reference]]
CONFIGURED_KINDS: frozenset[ReferenceKind] = frozenset(
    {"python_script", "package_main", "package_bin", "workflow_path"}
)
"""Kinds of references from configuration to files that it runs."""
_BY_SUFFIX: Mapping[str, Finder] = {
    **dict.fromkeys((".md", ".markdown"), find_markdown_links),
    **dict.fromkeys((".html", ".htm"), find_html_links),
    **dict.fromkeys((".py", ".pyi"), find_python_imports),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts"), find_script_imports),
}
_BY_NAME: Mapping[str, Finder] = {"pyproject.toml": find_project_scripts, "package.json": find_package_files}
_WORKFLOWS = (".github", "workflows")


def choose_finder(path: RelPath) -> Finder | None:
    """The function that finds a file's references; None if it has none."""
    suffix = path.name[path.name.rfind(".") :].lower() if "." in path.name else ""
    if suffix in {".yml", ".yaml"} and path.parts[-3:-1] == _WORKFLOWS:
        return find_workflow_paths
    return _BY_NAME.get(path.name) or _BY_SUFFIX.get(suffix)
