"""Protected names: the control plane, files that steer agents, and files that hold secrets.

All checks compare skeletons, so that another spelling of a name (case, Unicode form, trailing dots) is protected too.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from kaiza.domain.paths.confusables import skeleton
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.repository_names import REPOSITORY_DIRECTORIES, is_in_repository

CONTROL_PLANE_AT_ROOT = frozenset({"plans", "audit", ".kaiza", "kaiza.toml"})
LOG_DIRECTORY = "audit"
"""At the root. No search returns what is in it."""
LOG_NAME = "audit-log.jsonl"
LOG_PATH = f"{LOG_DIRECTORY}/{LOG_NAME}"
CONTROL_PLANE_ANYWHERE = REPOSITORY_DIRECTORIES | frozenset({".gitmodules", ".gitattributes", ".husky"})
STEERING_NAMES = frozenset(
    {
        # agents: instructions, settings, tools and hooks of their own
        *(".agents", ".aider.conf.yml", ".amazonq", ".augment", ".augment-guidelines", ".claude"),
        *(".clinerules", ".codex", ".continue", ".cursor", ".cursorrules", ".factory", ".gemini"),
        *(".goosehints", ".junie", ".kilocode", ".kilocodemodes", ".kilocoderules", ".kiro", ".mcp.json"),
        *(".opencode", ".openhands", ".qwen", ".roo", ".roomodes", ".roorules", ".rules", ".trae", ".windsurf"),
        *(".windsurfrules", "agents.md", "agents.override.md", "claude.local.md", "claude.md", "crush.json"),
        *("crush.md", "gemini.md", "opencode.json", "opencode.jsonc", "qwen.md", "warp.md"),
        # editors: what they run or obey when the directory is opened
        *(".devcontainer", ".devcontainer.json", ".dir-locals.el", ".exrc", ".gitpod.yml", ".idea"),
        *(".nvim.lua", ".replit", ".vscode", ".zed"),
        # automation: what runs on a push, a commit, an install or a change of directory
        *(".appveyor.yml", ".buildkite", ".circleci", ".cirrus.yml", ".drone.yml", ".envrc", ".gitlab-ci.yml"),
        *(".lefthook", ".lefthook-local", ".overcommit.yml", ".pnpmfile.cjs", ".pre-commit-config.yaml"),
        *(".travis.yml", ".woodpecker", ".woodpecker.yml", ".yarnrc", ".yarnrc.yml", "appveyor.yml"),
        *("azure-pipelines.yml", "bitbucket-pipelines.yml", "jenkinsfile"),
        *(
            f"{dot}lefthook{local}.{form}"
            for dot in ("", ".")
            for local in ("", "-local")
            for form in ("yml", "yaml", "toml", "json", "jsonc")
        ),
    }
)
STEERING_PREFIXES = (".clinerules-", ".kilocoderules-", ".roorules-")
"""Rules for one mode of an agent; the rest of the name is the mode."""
STEERING_SUFFIXES = (".code-workspace",)
BARE_REPOSITORY_NAME = "HEAD"
"""Without this file git takes no directory for a repository. In one that an agent made, git would run what its `config`
names. Compared exactly: directories of components are often called `Head`."""
STEERING_BELOW_GITHUB = frozenset(
    {
        "actions",
        "agents",
        "chatmodes",
        "copilot",
        "copilot-instructions.md",
        "hooks",
        "instructions",
        "mcp.json",
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
UNREADABLE_NAMES = frozenset(
    {
        ".kaiza",
        # version control: a URL or a header may hold a password
        *(".git-credentials", ".gitconfig", ".gitmodules", ".hgrc", ".hgsub", ".lfsconfig"),
        # registries, machines and databases
        *(".boto", ".databrickscfg", ".dockercfg", ".dockerconfigjson", ".env", ".gnupg", ".htpasswd"),
        *(".my.cnf", ".mylogin.cnf", ".netrc", ".npmrc", ".pgpass", ".pypirc", ".s3cfg", ".sentryclirc"),
        *(".ssh", ".terraformrc", ".vault-token", ".vault_pass", "_netrc"),
        *("application_default_credentials.json", "credentials.json", "credentials.tfrc.json", "kubeconfig"),
        *("rclone.conf", "secring.gpg"),
    }
)
UNREADABLE_PREFIXES = (".env.", ".env-", ".env_")
UNREADABLE_SUFFIXES = (
    ".env",
    ".jks",
    ".kdbx",
    ".key",
    ".keystore",
    ".keytab",
    ".p12",
    ".p8",
    ".pem",
    ".pfx",
    ".pkcs12",
    ".ppk",
    ".publishsettings",
    ".tfstate",
)
_SECRET_NAME = re.compile(
    r"\Aid_(?:dsa|ecdsa|ed25519|rsa|xmss)(?:[-_][^.]*)?\Z"  # also id_ed25519_sk and id_rsa_work; not id_rsa.pub
    # Keys and clients that cloud consoles give out as JSON: service-account.json, serviceAccountKey.json, ...
    r"|(?:service[-_.]?account|firebase-adminsdk|google[-_]?credentials|(?:\A|[-_.])sa[-_]?key).*\.json\Z"
    r"|\A(?:gcp|gcloud|google)\b.*[-_.]key.*\.json\Z"
    r"|\A(?:client[-_]?secrets?|keyfile).*\.json\Z"
)
UNREADABLE_BELOW: Mapping[str, frozenset[str]] = {
    ".aws": frozenset({"credentials"}),
    ".azure": frozenset({"accesstokens.json", "msal_token_cache.json", "service_principal_entries.json"}),
    ".cargo": frozenset({"credentials", "credentials.toml"}),
    ".composer": frozenset({"auth.json"}),
    ".config": frozenset({"credentials", "hosts.yml", "hub"}),  # of git, gh and hub, each in its directory
    ".docker": frozenset({"config.json"}),
    ".gem": frozenset({"credentials"}),
    ".git": frozenset({"config", "config.worktree"}),
    ".gradle": frozenset({"gradle.properties"}),
    ".m2": frozenset({"settings.xml", "settings-security.xml"}),
    "gcloud": frozenset({"access_tokens.db", "credentials.db", "legacy_credentials"}),
}
# One file for each cluster: config-prod, config.staging.yaml. A ConfigMap in a manifest is none.
_KUBE_DIRECTORY = ".kube"
_KUBE_CONFIG = re.compile(r"configs?(?:[-_.](?!maps?\b).*)?\Z")
READABLE_ENV = frozenset({".env.example", ".env.sample", ".env.template", ".env.test"})

# What editors, backups, mail and package managers add to a name: id_rsa~, #id_rsa#, id_rsa.bak, id_rsa.txt, ...
_BACKUP = re.compile(
    r"\A\.?#"
    r"|(?:~|\.~[0-9]+~|#|[._-](?:bak|bck|bkp|backup|old|orig|prev|previous|save|saved|copy|tmp|temp|rej)[0-9]*"
    r"|\.(?:sw[a-p]|rpmsave|rpmorig|rpmnew|dpkg-old|dpkg-dist|dpkg-new|txt|[0-9]+)"
    r"| (?:- )?copy(?: ?[0-9]+)?| ?\([0-9]+\))\Z"
)
# Browsers and file managers number a copy before its extension: credentials (1).json.
_NUMBERED = re.compile(r"(?: (?:- )?copy(?: ?[0-9]+)?| ?\([0-9]+\))(?=\.[^.]+\Z)")


class PathPattern(Protocol):
    """A compiled `deny_read` pattern."""

    def matches(self, parts: Sequence[str], /) -> bool:
        """Whether the whole path matches."""
        ...


def is_in_log_directory(path: RelPath) -> bool:
    """Whether a path is the log's directory or in it."""
    return path.parts[:1] == (LOG_DIRECTORY,)


def is_control_plane(path: RelPath) -> bool:
    """Whether the path is control plane: plans, audit log, settings, git's own files. No plan unlocks these."""
    names = [name for _, name in _iter_skeletons(path)]
    return bool(names) and (names[0] in CONTROL_PLANE_AT_ROOT or not CONTROL_PLANE_ANYWHERE.isdisjoint(names))


def find_steering_part(path: RelPath) -> RelPath | None:
    """Find the outermost part of the path that steers agents, editors or automation. A plan may unlock it by name."""
    parent = ""
    for depth, name in _iter_skeletons(path):
        is_affixed = name.startswith(STEERING_PREFIXES) or name.endswith(STEERING_SUFFIXES)
        if is_affixed or name in STEERING_NAMES or name in STEERING_BELOW.get(parent, ()):
            return RelPath(path.parts[:depth])
        parent = name
    return path if path.parts[-1:] == (BARE_REPOSITORY_NAME,) else None


def is_unreadable(path: RelPath) -> bool:
    """Whether content and hash must not be read, whatever the settings say."""
    return is_secret(path) or is_in_repository(path)


def is_secret(path: RelPath, deny: Sequence[PathPattern] = (), allow: Container[str] = ()) -> bool:
    """Whether a path is a secret. `allow` exempts literal paths, but never `.kaiza`.

    What version control keeps is no secret: programs that run in the sandbox of checks may need it.
    """
    if any(skeleton(name) == ".kaiza" for name in path.parts):
        return True
    if str(path) in allow:
        return False
    if any(_is_secret(name) for name in path.parts) or _has_secret_part(path):
        return True
    if not deny:
        return False
    # A pattern that matches a directory denies everything below it.
    prefixes = [path.parts[:depth] for depth in range(1, len(path.parts) + 1)]
    return any(pattern.matches(prefix) for pattern in deny for prefix in prefixes)


def _iter_skeletons(path: RelPath) -> Iterator[tuple[int, str]]:
    """Yield the skeleton of each part with its depth."""
    for depth, part in enumerate(path.parts, 1):
        # Folding can produce a slash, for example from U+FF0F.
        for name in skeleton(part).split("/"):
            yield depth, name


@lru_cache(maxsize=8192)
def _is_secret(name: str) -> bool:
    return name not in READABLE_ENV and any(
        original in UNREADABLE_NAMES
        or original.startswith(UNREADABLE_PREFIXES)
        or original.endswith(UNREADABLE_SUFFIXES)
        or _SECRET_NAME.search(original) is not None
        for original in _original_names(skeleton(name))
    )


def _has_secret_part(path: RelPath) -> bool:
    """Whether a name is secret because of a directory above it, as `config` below `.git`."""
    secret_names: frozenset[str] = frozenset()
    is_in_kube = False
    for _, name in _iter_skeletons(path):
        if secret_names and not secret_names.isdisjoint(_original_names(name)):
            return True
        if is_in_kube and any(map(_KUBE_CONFIG.match, _original_names(name))):
            return True
        secret_names |= UNREADABLE_BELOW.get(name, frozenset())
        is_in_kube = is_in_kube or name == _KUBE_DIRECTORY
    return False


def _original_names(name: str) -> tuple[str, ...]:
    """The name, and the names it may be a backup of; `id_rsa.bak~` is a backup of a backup."""
    names = [name]
    while (shorter := _NUMBERED.sub("", _BACKUP.sub("", names[-1])).rstrip(". ")) and shorter != names[-1]:
        names.append(shorter)
    return (*names, names[-1].removeprefix("."))  # the swap file of id_rsa is .id_rsa.swp
