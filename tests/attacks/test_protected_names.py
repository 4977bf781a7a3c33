"""Every steering and secret name, listed independently of the code, in every spelling and through the tools."""

import shutil
import unicodedata

import pytest
from agents import WIDE, plan, sha
from scenes import records

from kaiza.domain.paths import protected_names
from kaiza.domain.paths.rel_path import parse

CONTROL = [
    "plans/PLAN-1.md", "audit/audit-log.jsonl", ".kaiza/journal/x", "kaiza.toml", ".git/hooks/pre-commit",
    ".gitmodules", ".gitattributes", ".husky/pre-commit", ".hg/hgrc", ".jj/repo/config.toml", ".svn/wc.db",
    ".bzr/branch/branch.conf", ".pijul/config", ".sl/config", "_darcs/prefs/defaults",
]  # fmt: skip
ANYWHERE = (".git", ".husky", ".hg", ".jj", ".svn", ".bzr", ".pijul", ".sl", "_darcs")
STEERING = [
    # agents
    ".agents/x", ".aider.conf.yml", ".amazonq/rules/x.md", ".augment-guidelines", ".augment/rules/x.md", ".claude/x",
    ".clinerules", ".clinerules-code", ".clinerules/x.md", ".codex/config.toml", ".continue/config.yaml",
    ".cursor/rules/x", ".cursorrules", ".factory/droids/x.md", ".gemini/settings.json", ".goosehints",
    ".junie/guidelines.md", ".kilocode/rules/x.md", ".kilocodemodes", ".kilocoderules", ".kilocoderules-code",
    ".kiro/x", ".mcp.json", ".opencode/agent/x.md", ".openhands/setup.sh", ".qwen/settings.json", ".roo/rules/x.md",
    ".roomodes", ".roorules", ".roorules-code", ".rules", ".trae/rules/x.md", ".windsurf/x", ".windsurfrules",
    "AGENTS.md", "AGENTS.override.md", "CLAUDE.local.md", "CLAUDE.md", "CRUSH.md", "GEMINI.md", "QWEN.md", "WARP.md",
    "crush.json", "opencode.json", "opencode.jsonc",
    ".github/actions/x/action.yml", ".github/agents/x.md", ".github/chatmodes/x.md",
    ".github/mcp.json", ".github/copilot/settings.json",
    ".github/copilot-instructions.md",
    ".github/hooks/x", ".github/instructions/x.md", ".github/prompts/x.md", ".github/skills/x/SKILL.md",
    # editors
    ".devcontainer.json", ".devcontainer/devcontainer.json", ".dir-locals.el", ".exrc", ".gitpod.yml", ".idea/x",
    ".nvim.lua", ".replit", ".vscode/tasks.json", ".zed/settings.json", "project.code-workspace",
    # automation
    ".appveyor.yml", ".buildkite/pipeline.yml", ".circleci/config.yml", ".cirrus.yml", ".config/lefthook.yml",
    ".drone.yml", ".envrc", ".forgejo/workflows/x.yml", ".gitea/workflows/x.yml", ".github/workflows/x.yml",
    ".gitlab-ci.yml", ".lefthook-local.json", ".lefthook-local.jsonc", ".lefthook-local.toml",
    ".lefthook-local.yaml", ".lefthook-local.yml",
    ".lefthook-local/pre-commit/x.sh", ".lefthook.json", ".lefthook.jsonc", ".lefthook.toml", ".lefthook.yaml",
    ".lefthook.yml",
    ".lefthook/pre-commit/x.sh", ".overcommit.yml", ".pnpmfile.cjs", ".pre-commit-config.yaml", ".travis.yml",
    ".woodpecker.yml", ".woodpecker/x.yml", ".yarn/plugins/x.cjs", ".yarn/releases/yarn.cjs", ".yarnrc", ".yarnrc.yml",
    "Jenkinsfile", "appveyor.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml", "lefthook-local.json",
    "lefthook-local.jsonc", "lefthook-local.toml", "lefthook-local.yaml", "lefthook-local.yml", "lefthook.json",
    "lefthook.jsonc", "lefthook.toml", "lefthook.yaml", "lefthook.yml",
]  # fmt: skip
SECRET = [
    ".aws/credentials", ".aws/credentials.bak", ".docker/config.json", ".env", ".env-prod", ".env.local",
    ".env.production", ".env_prod", ".env~", ".git-credentials", ".git/config", ".git/config.worktree",
    ".git/modules/lib/config", ".gitconfig", ".gitmodules",
    ".hgrc", ".hgsub", ".lfsconfig", ".htpasswd", ".kube/config", ".netrc", ".npmrc", ".pgpass", ".pypirc",
    ".vault-token", "errored.tfstate",
    "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk", "id_rsa", "id_xmss",
    "prod.env", "terraform.tfstate", "terraform.tfstate.1700000000.backup", "terraform.tfstate.backup",
    "terraform.tfstate.d/prod/terraform.tfstate", "x.key", "x.keystore", "x.p12", "x.pem", "x.pfx",
    ".azure/msal_token_cache.json", ".boto", ".cargo/credentials", ".cargo/credentials.toml", ".composer/auth.json",
    ".config/gcloud/access_tokens.db", ".config/gcloud/application_default_credentials.json", ".config/gh/hosts.yml",
    ".config/git/credentials", ".config/hub", ".databrickscfg", ".dockercfg", ".dockerconfigjson", ".gem/credentials",
    ".gnupg/private-keys-v1.d/x", ".gradle/gradle.properties", ".m2/settings.xml", ".my.cnf", ".mylogin.cnf", ".s3cfg",
    ".sentryclirc", ".ssh/deploy", ".terraformrc", ".vault_pass", "_netrc", "gcloud/credentials.db",
    "credentials.json", "credentials.tfrc.json", "kubeconfig", "rclone.conf", "x.jks", "x.kdbx", "x.keytab", "x.p8",
    "x.pkcs12", "x.ppk", "x.publishsettings", "secring.gpg",
    ".kube/config-prod", ".kube/config.staging.yaml", ".kube/configs/prod", ".kube/config (1)",
    # keys that cloud consoles give out
    "service-account.json", "service_account.json", "serviceAccount.json", "serviceAccountKey.json",
    "service-account-prod.json", "prod-service-account.json", "my-service_account-key.json", "gcp-key.json",
    "gcp-prod-key.json", "gcloud-service-key.json", "google-credentials.json", "google_credentials_prod.json",
    "client_secret.json", "client_secret_123.apps.googleusercontent.com.json", "client_secrets.json", "keyfile.json",
    "app-firebase-adminsdk-x1y2z.json", "prod-sa-key.json", "service-account.json.bak", "service-account (1).json",
    # keys with a purpose in their name
    "id_ed25519_github", "id_rsa-work", "id_ecdsa_deploy.bak",
    # backups and editors' copies
    "#id_rsa#", ".#id_rsa", ".env.local.bak", ".id_rsa.swp", ".netrc.swo", ".npmrc.orig", "id_ecdsa-old",
    "id_ed25519.bak", "id_ed25519.bak.1", "id_ed25519.bak~", "id_rsa (2)", "id_rsa copy", "id_rsa.~3~",
    "id_rsa..bak", "id_rsa_backup",
    "prod.env.save", "server.key.old", "server.key.old.old", "x.p12.backup", "x.pem.dpkg-old", "x.pem.rpmsave",
    "x.pem~",
    # what browsers, file managers and mail make of a name
    "credentials (1).json", "credentials copy.json", "credentials - Copy (2).json", "credentials.tfrc(1).json",
    "id_rsa.txt", "id_rsa (1).txt", "key.pem.txt", "prod.env.txt", ".aws/credentials.txt",
]  # fmt: skip
UNPROTECTED = [
    "src/agents.py", "AGENTS", "docs/claude.md.txt", ".github/x.md", ".github/ISSUE_TEMPLATE/x.md", "docs/workflows/a",
    "prompts/x.md", "instructions/x.md", "actions/x.py", "yarn/plugins/x", ".yarn/cache/x", ".config/x.yml", "rules",
    "junie/x", "continue.py", "zed", "opencode.py", "lefthook.md", "lefthook-notes.yml", "workspace", ".gitignore",
    ".clinerule", "roo", "windsurfrules", "jenkins.py", ".editorconfig",
]  # fmt: skip
READABLE = [
    ".env.example", ".env.sample", ".env.template", ".env.test", "a/.env.test", ".envrc", ".envoy", ".environment",
    "environment.py", "env.py", "env", "keys.md", "key.py", "x.key.md", "pem", "tfstate", "terraform.tf", "id_rsa.pub",
    "id_ed25519.pub", "id_rsa.pub.bak", "id_card.md", "credentials", "src/credentials", "config", "src/config.json",
    ".docker/x.json", ".aws/config", ".kube/cache/x", "git/config", "kube/config", "docker/config.json",
    "notes.old", "copy.py", "x~", "backup", "htpasswd", "pgpass.py", "vault-token.md",
    "service_account.py", "docs/service-account.md", "service-account.yaml", "google-fonts.json", "keyboard-keys.json",
    "client.json", "src/client_secret.py", "id_rsa_utils.py", "id_ed25519_github.pub", "gcp.json", "keys.json",
    "hosts.yml", "settings.xml", "auth.json", "gradle.properties", ".gitignore", ".gitkeep", ".hgignore", "src/hg/x",
    "gitmodules", "svn/x", "usa-key-facts.json", "credentials.py", "credentials (1).py", "test_id_rsa.py", "pem.txt",
    "id_rsa.pub.txt", "keys.txt", "env.txt", "config (1).json", "pubring.gpg", ".kube/configmap.yaml",
    ".kube/config-map.yaml", "kube/config-prod", ".kube/configure.sh", "notes (1).txt", "credentials.txt",
]  # fmt: skip


def to_full_width(path):
    return "".join(chr(ord(each) + 0xFEE0) if "!" <= each <= "~" and each != "/" else each for each in path)


def spellings(path):
    """The path, and spellings of it that a file system or a reader could take for the same."""
    first, *rest = path.split("/")
    yield path
    yield path.upper()
    yield path.swapcase()
    yield to_full_width(path)
    yield unicodedata.normalize("NFD", path.replace("k", "\u212a"))
    yield "/".join([f"{first[:2]}\u200b{first[2:]}", *rest])
    yield "/".join([f"{first}\u00ad", *rest])
    for end in (".", " ", "..", ". .", "\u3000", "\t"):
        yield "/".join([f"{first}{end}", *rest])
        yield f"{path}{end}"
    yield f"deep/down/{path}"


@pytest.mark.parametrize("path", CONTROL)
def test_the_control_plane_is_protected_in_every_spelling(path):
    prefixed = [] if path.startswith(ANYWHERE) else [f"deep/down/{path}"]

    assert [
        each for each in spellings(path) if not protected_names.is_control_plane(parse(each)) and each not in prefixed
    ] == []


@pytest.mark.parametrize("path", STEERING)
def test_steering_names_are_protected_in_every_spelling(path):
    assert [each for each in spellings(path) if protected_names.find_steering_part(parse(each)) is None] == []


@pytest.mark.parametrize("path", SECRET)
def test_secret_names_are_unreadable_in_every_spelling(path):
    assert [each for each in spellings(path) if not protected_names.is_unreadable(parse(each))] == []


@pytest.mark.parametrize("path", UNPROTECTED)
def test_names_similar_to_steering_names_are_not_protected(path):
    assert protected_names.find_steering_part(parse(path)) is None
    assert not protected_names.is_control_plane(parse(path))


@pytest.mark.parametrize("path", READABLE)
def test_names_similar_to_secret_names_are_readable(path):
    assert not protected_names.is_unreadable(parse(path))


def test_every_protected_name_is_tested():
    tested = {part for path in [*STEERING, *SECRET] for part in path.lower().split("/")}
    control = {path.partition("/")[0] for path in CONTROL}
    below = {*protected_names.STEERING_BELOW.items(), *protected_names.UNREADABLE_BELOW.items()}
    known = {*protected_names.STEERING_NAMES, *protected_names.UNREADABLE_NAMES} - {".kaiza"}

    assert {*protected_names.CONTROL_PLANE_AT_ROOT, *protected_names.CONTROL_PLANE_ANYWHERE} <= control
    assert known <= tested
    assert all(any(f"{above}/" in path and path.lower().startswith(above) for path in [*STEERING, *SECRET])
               for above, _ in below)  # fmt: skip
    assert all(
        any(part.endswith(end) for part in tested)
        for end in (*protected_names.UNREADABLE_SUFFIXES, *protected_names.STEERING_SUFFIXES)
    )
    assert all(any(part.startswith(begin) for part in tested)
               for begin in (*protected_names.UNREADABLE_PREFIXES, *protected_names.STEERING_PREFIXES))  # fmt: skip


def clear_locks(app):
    """Remove the lock that a refusal leaves, so that the next call is not refused because of it."""
    next(iter(app.services.workspaces.values())).audit_state.locks.clear()


def test_no_plan_for_everything_allows_a_steering_path(begun, workspace):
    approved = plan(workspace, scope=WIDE)
    for path in STEERING:
        envelope = begun.call("write_file", {"path": f"sub/{path}", "content": "x\n", "plan_hash": approved}).envelope
        clear_locks(begun)

        assert (envelope["error_code"], envelope["invariant_id"]) == ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")
    assert not (workspace / "sub").exists()


def test_no_tool_reads_or_changes_a_secret(begun, workspace):
    approved, narrow = plan(workspace, scope=WIDE), plan(workspace, "PLAN-2")
    for path in SECRET:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("hush-hush\n")
        known = {"expected_hash": sha(b"hush-hush\n"), "plan_hash": approved}
        for tool, arguments in (
            ("read_file", {"path": path}),
            ("write_file", {"path": f"new/{path}", "content": "x\n", "plan_hash": narrow}),
            ("write_file", {"path": path, "content": "x\n", **known}),
            ("move_file", {"source": path, "destination": "new", **known}),
        ):
            envelope = begun.call(tool, arguments).envelope
            clear_locks(begun)

            assert (envelope["error_code"], tool, path) == ("POLICY_VIOLATION", tool, path)
        assert (workspace / path).read_text() == "hush-hush\n"
        assert begun.call("search_text", {"query": "hush"}).output["items"] == []
        shutil.rmtree(workspace / ".git", ignore_errors=True)  # as a repository it would be broken
    assert "hush-hush" not in str(records(workspace))


def test_an_agent_makes_no_directory_that_git_takes_for_a_repository(begun, workspace):
    approved = plan(workspace, scope=WIDE)
    for name in ("config", "objects/x", "refs/x"):
        arguments = {"path": f"vendor/{name}", "content": "[core]\n", "plan_hash": approved}
        assert begun.call("write_file", arguments).envelope is None
    head = {"path": "vendor/HEAD", "content": "ref: refs/heads/main\n", "plan_hash": approved}
    envelope = begun.call("write_file", head).envelope

    assert (envelope["error_code"], envelope["invariant_id"]) == ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")
    assert not (workspace / "vendor/HEAD").exists()
    assert protected_names.find_steering_part(parse("src/Head/index.tsx")) is None
