"""Git repositories and SSH keys, as people make them, for tests of what gives authority."""

import os
import subprocess
from pathlib import Path

from kaiza.clock import current_timestamp
from kaiza.domain.caps import Caps
from kaiza.domain.plans.parser import StoredPlan, parse
from kaiza.store import human_decisions
from kaiza.store.trust.signers import parse_signers, save_signers
from kaiza.store.trust.trust_file import WorkspaceTrust, save_trust
from kaiza.store.workspace import Workspace

TRUSTED = "refs/remotes/origin/main"
NAMESPACES = 'namespaces="kaiza-plan"'


def run_git(root, *words, stdin=b""):
    """Run git as a person who never configured it."""
    names = ["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main", "-c", "advice.detachedHead=0"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return (
        subprocess.run(
            ["git", *names, *words],
            cwd=root,
            check=True,
            capture_output=True,
            input=stdin,
            env={**clean, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull},
        )
        .stdout.decode()
        .strip()
    )


def merge(root, ref=TRUSTED):
    """Commit everything, and move a ref there as a fetch would."""
    if not Path(root, ".git").exists():
        run_git(root, "init", "-q")
    run_git(root, "add", "-A", "-f", ".")
    run_git(root, "commit", "-q", "--allow-empty", "-m", "x")
    run_git(root, "update-ref", ref, "HEAD")


def make_key(directory, name="key"):
    """A private key without a passphrase; its path."""
    path = Path(directory, name)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True)
    return path


def signer_line(key, principal="ann@example.org", options=NAMESPACES):
    """The line of `allowed_signers` for a key."""
    return f"{principal} {options} {key.with_suffix('.pub').read_text()}"


def read_stored(root, plan_id="PLAN-1"):
    """A plan's file as the store reads it."""
    content = Path(root, "plans", f"{plan_id}.md").read_bytes()
    return StoredPlan(plan_id, content, parse(content, plan_id))


def trust(root, *refs, project=None, signers=None):
    """Trust refs, and signers by their lines, as `kaiza trust` does after its question: recorded, then saved."""
    real = os.path.realpath(root)
    workspace = Workspace(real, Caps())
    try:
        human_decisions.record_decision(workspace, "trust", "Ann")
    finally:
        workspace.close(current_timestamp())
    save_trust(real, WorkspaceTrust(refs, project))
    if signers is not None:
        save_signers(real, parse_signers(signers))
