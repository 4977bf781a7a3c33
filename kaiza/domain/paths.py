"""A path is workspace-relative and already judged by its spelling; that a RelPath exists is the proof."""

import re
import unicodedata
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from kaiza.domain import errors

MAX_COMPONENT = 255
MAX_PATH = 4095

CONTROL_PLANE_AT_ROOT = frozenset({"plans", "audit", ".kaiza", "kaiza.toml"})
CONTROL_PLANE_ANYWHERE = frozenset({".git", ".gitmodules", ".gitattributes", ".husky"})
STEERING = frozenset(
    {
        # agents: instructions, settings, tools and hooks of their own
        ".agents",
        ".aider.conf.yml",
        ".amazonq",
        ".augment",
        ".augment-guidelines",
        ".claude",
        ".clinerules",
        ".codex",
        ".continue",
        ".cursor",
        ".cursorrules",
        ".factory",
        ".gemini",
        ".goosehints",
        ".junie",
        ".kilocode",
        ".kilocodemodes",
        ".kilocoderules",
        ".kiro",
        ".mcp.json",
        ".opencode",
        ".openhands",
        ".qwen",
        ".roo",
        ".roomodes",
        ".roorules",
        ".rules",
        ".trae",
        ".windsurf",
        ".windsurfrules",
        "agents.md",
        "agents.override.md",
        "claude.local.md",
        "claude.md",
        "crush.json",
        "crush.md",
        "gemini.md",
        "opencode.json",
        "opencode.jsonc",
        "qwen.md",
        "warp.md",
        # editors: what they run or obey when the directory is opened
        ".devcontainer",
        ".devcontainer.json",
        ".dir-locals.el",
        ".exrc",
        ".gitpod.yml",
        ".idea",
        ".nvim.lua",
        ".replit",
        ".vscode",
        ".zed",
        # automation: what runs on a push, a commit, an install or a change of directory
        ".appveyor.yml",
        ".buildkite",
        ".circleci",
        ".cirrus.yml",
        ".drone.yml",
        ".envrc",
        ".gitlab-ci.yml",
        ".lefthook",
        ".lefthook-local",
        ".overcommit.yml",
        ".pnpmfile.cjs",
        ".pre-commit-config.yaml",
        ".travis.yml",
        ".woodpecker",
        ".woodpecker.yml",
        ".yarnrc",
        ".yarnrc.yml",
        "appveyor.yml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "jenkinsfile",
        *(
            f"{dot}lefthook{local}.{form}"
            for dot in ("", ".")
            for local in ("", "-local")
            for form in ("yml", "yaml", "toml", "json", "jsonc")
        ),
    }
)
STEERING_PREFIXES = (".clinerules-", ".kilocoderules-", ".roorules-")
"""Rules for one mode of an agent, which the rest of the name says."""
STEERING_SUFFIXES = (".code-workspace",)
STEERING_BELOW_GITHUB = frozenset(
    {
        "actions",
        "agents",
        "chatmodes",
        "copilot-instructions.md",
        "hooks",
        "instructions",
        "prompts",
        "skills",
        "workflows",
    }
)
STEERING_BELOW: Mapping[str, frozenset[str]] = {
    ".github": STEERING_BELOW_GITHUB,
    ".gitea": frozenset({"workflows"}),
    ".forgejo": frozenset({"workflows"}),
    ".config": frozenset({"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", "lefthook.jsonc"}),
    ".yarn": frozenset({"plugins", "releases"}),
}
UNREADABLE = frozenset(
    {
        ".kaiza",
        ".env",
        ".git-credentials",
        ".htpasswd",
        ".netrc",
        ".npmrc",
        ".pgpass",
        ".pypirc",
        ".vault-token",
        "id_dsa",
        "id_ecdsa",
        "id_ecdsa_sk",
        "id_ed25519",
        "id_ed25519_sk",
        "id_rsa",
        "id_xmss",
    }
)
UNREADABLE_PREFIXES = (".env.", ".env-", ".env_")
UNREADABLE_SUFFIXES = (".pem", ".key", ".p12", ".pfx", ".keystore", ".env", ".tfstate")
UNREADABLE_BELOW: Mapping[str, frozenset[str]] = {
    ".aws": frozenset({"credentials"}),
    ".docker": frozenset({"config.json"}),
    ".git": frozenset({"config", "config.worktree"}),
    ".kube": frozenset({"config"}),
}
READABLE_ENV = frozenset({".env.example", ".env.sample", ".env.template", ".env.test"})

_BACKUP = re.compile(
    r"\A\.?#"
    r"|(?:~|\.~[0-9]+~|#|[._-](?:bak|bck|bkp|backup|old|orig|prev|previous|save|saved|copy|tmp|temp|rej)[0-9]*"
    r"|\.(?:sw[a-p]|rpmsave|rpmorig|rpmnew|dpkg-old|dpkg-dist|dpkg-new|[0-9]+)"
    r"| (?:- )?copy(?: ?[0-9]+)?| ?\([0-9]+\))\Z"
)
_NO_NAME = frozenset({"", ".", ".."})
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BAD_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
_ESCAPE = re.compile(b"%([0-9A-Fa-f]{2})")
_ASCII_ENDS = ". \t\n\r\v\f\x1c\x1d\x1e\x1f"
_LOOSE_END = re.compile(f"[{re.escape(_ASCII_ENDS)}](?:/|\\Z)")
_FIRST_JAMO_VOWEL, _LAST_JAMO = "\u1160", "\u11ff"
_URI_SAFE = re.compile(r"[A-Za-z0-9_.~/-]*")
_UNSAFE_BYTE = re.compile(rb"[^A-Za-z0-9_.~/-]")
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


class Pattern(Protocol):
    """What a `deny_read` glob must be able to say."""

    def matches(self, parts: Sequence[str], /) -> bool:
        """Whether the whole path matches."""
        ...


@dataclass(frozen=True, slots=True, order=True)
class RelPath:
    """A path below the workspace's root, as its names; no name at all is the root itself."""

    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            if part in _NO_NAME or "/" in part or "\0" in part:
                raise ValueError("not a name")

    def __str__(self) -> str:
        return "/".join(self.parts) or "."

    def __truediv__(self, name: str) -> "RelPath":
        return RelPath((*self.parts, name))

    @classmethod
    def of_bytes(cls, path: bytes) -> "RelPath":
        """Take a path as the disk spells it; bytes that are not UTF-8 become lone surrogates."""
        return cls(tuple(path.decode(errors="surrogateescape").split("/")) if path not in {b"", b"."} else ())

    def as_bytes(self) -> bytes:
        """Spell the path as the disk does; the root is a dot."""
        return str(self).encode(errors="surrogateescape")

    @property
    def name(self) -> str:
        """The last name; empty for the root."""
        return self.parts[-1] if self.parts else ""

    @property
    def parent(self) -> "RelPath":
        """The directory it stands in; the root's is the root."""
        return RelPath(self.parts[:-1])


ROOT = RelPath(())


def parse(text: str, root: str | None = None) -> RelPath:
    """Read the path that a caller named, exactly as spelled; an absolute one only below `root` as it is known."""
    if not text:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE", human_message="The path is empty. Use . for the workspace itself."
        )
    if "\0" in text or _LONE_SURROGATE.search(text):
        raise _malformed("The path holds a character that no file name can have. Name the file as it was listed.")
    if len(text.encode()) > MAX_PATH:
        raise _malformed(f"The path is longer than {MAX_PATH} bytes. Use a shorter one.")
    if ".." in text.split("/"):
        raise errors.SystemError.tool_failure(
            "PATH_TRAVERSAL_BLOCKED",
            human_message="The path has a .. in it. Name the file from the workspace down.",
        )
    parts = tuple(part for part in _below(text, root).split("/") if part not in _NO_NAME)
    if any(len(part.encode()) > MAX_COMPONENT for part in parts):
        raise _malformed(f"A name in the path is longer than {MAX_COMPONENT} bytes. Use a shorter one.")
    return RelPath(parts)


def parse_uri(uri: str, root: str) -> RelPath:
    """Read the path that a file: URI names; it must lie below `root`."""
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "file":
        raise _not_a_uri("This is not a file: URI. Use the uri that another tool gave.")
    if rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        if authority not in {"", "localhost"}:
            raise _not_a_uri("The URI names another machine. Use a file: URI of this one.")
        rest = slash + path
    if not rest.startswith("/"):
        raise _not_a_uri("The URI has no absolute path. Use the uri that another tool gave.")
    if "?" in rest or "#" in rest or _BAD_ESCAPE.search(rest):
        raise _not_a_uri("The URI has a query, a fragment or a broken escape. Use the uri that another tool gave.")
    return parse("/".join(_unescape(part) for part in rest.split("/")), root)


def to_uri(root: str, path: RelPath) -> str:
    """Write the file: URI of a path below `root`; every byte that is not plain is escaped."""
    text = "/".join((root.rstrip("/"), *path.parts)) or "/"
    if not _URI_SAFE.fullmatch(text):
        escaped = _UNSAFE_BYTE.sub(lambda byte: b"%%%02X" % ord(byte[0]), text.encode(errors="surrogateescape"))
        text = escaped.decode()
    return f"file://{text}"


@lru_cache(maxsize=8192)
def skeleton(name: str) -> str:
    """Reduce a name to what a file system or a reader could take it for: look-alikes share one skeleton."""
    if name.isascii():
        bare = name.lower().rstrip(_ASCII_ENDS)
        return ".git" if bare == "git~1" else bare
    folded = trim_end(_folded_once(name))
    return folded if folded == name else skeleton(folded)


def trim_end(text: str) -> str:
    """Leave out the dots and blanks at the end, as some file systems do."""
    while text and (text[-1] == "." or text[-1].isspace()):
        text = text[:-1]
    return text


@lru_cache(maxsize=4096)
def fold(path: str) -> str:
    """Spell a path, its names joined by slashes, as denials compare it: paths that could be one file share one fold.

    Each name is its skeleton, decomposed, so that a pattern's `e*` also begins an é; a name without one stays as it is.
    """
    if path.isascii() and path.islower() and not _LOOSE_END.search(path):
        return path
    return unicodedata.normalize("NFKD", "/".join(skeleton(name) or name for name in path.split("/")))


def fold_part(text: str) -> str:
    """Spell a part of a name as `fold` spells the whole; how it ends is left as it is."""
    folded = _folded_once(text)
    return unicodedata.normalize("NFKD", text) if folded == text else fold_part(folded)


def is_mark(character: str) -> bool:
    """Whether a character of a decomposed text belongs to the one before it."""
    return unicodedata.category(character)[0] == "M" or _FIRST_JAMO_VOWEL <= character <= _LAST_JAMO


def is_control_plane(path: RelPath) -> bool:
    """Whether the path belongs to what governs the agent; no plan unlocks it."""
    names = [name for _, name in _skeletons(path)]
    return bool(names) and (names[0] in CONTROL_PLANE_AT_ROOT or not CONTROL_PLANE_ANYWHERE.isdisjoint(names))


def steering(path: RelPath) -> RelPath | None:
    """Find the outermost part of the path that steers agents, editors or automation; a plan may unlock it by name."""
    before = ""
    for depth, name in _skeletons(path):
        if _steers(name) or name in STEERING_BELOW.get(before, ()):
            return RelPath(path.parts[:depth])
        before = name
    return None


def is_unreadable(path: RelPath, deny: Sequence[Pattern] = (), allow: Container[str] = ()) -> bool:
    """Whether content and hash stay hidden; `allow` frees single literal paths, but never Kaiza's own directory."""
    if any(skeleton(name) == ".kaiza" for name in path.parts):
        return True
    if str(path) in allow:
        return False
    if any(_is_secret(name) for name in path.parts) or _holds_secrets(path):
        return True
    if not deny:
        return False
    prefixes = [path.parts[:depth] for depth in range(1, len(path.parts) + 1)]
    return any(pattern.matches(prefix) for pattern in deny for prefix in prefixes)


def _below(text: str, root: str | None) -> str:
    if not text.startswith("/"):
        return text
    if root is not None:
        stem = root.rstrip("/")
        if text == root or text.startswith(stem + "/"):
            return text[len(stem) :]
    raise errors.SystemError.tool_failure(
        "OUTSIDE_WORKSPACE",
        human_message="The path is absolute and not below the workspace. Name the file from the workspace down.",
    )


def _unescape(part: str) -> str:
    raw = _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), part.encode(errors="surrogatepass"))
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise _malformed("The URI escapes bytes that are not UTF-8. Name the file as it was listed.") from None
    if "/" in name:
        raise _malformed("The URI escapes a slash. Name the file as it was listed.")
    return name


def _skeletons(path: RelPath) -> Iterator[tuple[int, str]]:
    for depth, part in enumerate(path.parts, 1):
        for name in skeleton(part).split("/"):
            yield depth, name


def _folded_once(text: str) -> str:
    return _IGNORABLE.sub("", unicodedata.normalize("NFKC", text)).casefold()


def _steers(name: str) -> bool:
    return name in STEERING or name.startswith(STEERING_PREFIXES) or name.endswith(STEERING_SUFFIXES)


@lru_cache(maxsize=8192)
def _is_secret(name: str) -> bool:
    return name not in READABLE_ENV and any(map(_names_a_secret, _originals(skeleton(name))))


def _names_a_secret(bare: str) -> bool:
    return bare in UNREADABLE or bare.startswith(UNREADABLE_PREFIXES) or bare.endswith(UNREADABLE_SUFFIXES)


def _holds_secrets(path: RelPath) -> bool:
    """Whether a name that is plain elsewhere is that of secrets below the directory it is in."""
    hidden: frozenset[str] = frozenset()
    for _, name in _skeletons(path):
        if hidden and not hidden.isdisjoint(_originals(name)):
            return True
        hidden |= UNREADABLE_BELOW.get(name, frozenset())
    return False


def _originals(bare: str) -> tuple[str, ...]:
    """The name, and what it was before backups and editors added to it; they may have done so several times."""
    names = [bare]
    while (shorter := _BACKUP.sub("", names[-1]).rstrip(". ")) and shorter != names[-1]:
        names.append(shorter)
    return (*names, names[-1].removeprefix("."))  # the swap file of id_rsa is .id_rsa.swp


def _malformed(sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("INVALID_PATH", human_message=sentence)


def _not_a_uri(sentence: str) -> errors.SystemError:
    return errors.SystemError.tool_failure("INVALID_INPUT_FORMAT", human_message=sentence)
