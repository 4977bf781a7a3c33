"""Signing an approval: the options `--sign` and `--key` of `kaiza plan approve`."""

import argparse
from dataclasses import dataclass
from pathlib import Path

from kaiza.cli.console import output
from kaiza.domain.plans.plan import Plan
from kaiza.render.terminal import escape
from kaiza.store.disk import state_dir
from kaiza.store.trust.signed_plans import require_project, sign_plan
from kaiza.store.trust.ssh_keygen import SshKeygenError
from kaiza.store.workspace import Workspace

_KEY_NAMES = ("id_ed25519", "id_ed25519_sk")


@dataclass(frozen=True, slots=True)
class SignedApproval:
    """A signature of a plan's bytes, and the trusted signer that made it."""

    signature: bytes
    signer: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--sign` and `--key FILE`."""
    parser.add_argument(
        "--sign", action="store_true", help="sign the approved plan with your SSH key, in plans/ID.md.sig"
    )
    parser.add_argument(
        "--key",
        metavar="FILE",
        help="the key to sign with: private, or public with the private one in an agent (default: "
        "~/.ssh/id_ed25519 or id_ed25519_sk, whichever exists alone)",
    )


def choose_key(args: argparse.Namespace, workspace: Workspace) -> Path | None:
    """The key to sign with; None without `--sign`. A CommandError if there is none, or signing is required."""
    if args.sign:
        try:
            require_project(state_dir.path_of(workspace.root))
        except SshKeygenError as problem:
            raise output.CommandError(f"Nothing was approved: {escape(str(problem))}.", output.FAILURE) from problem
        return find_key(args.key, "Nothing was approved.")
    if args.key is not None:
        raise output.CommandError("--key is the key to sign with. Add --sign.", output.USAGE_ERROR)
    if workspace.settings.required_approval == "signature":
        raise output.CommandError("Only a signature approves plans here. Add --sign.", output.FAILURE)
    return None


def require_expiry(plan: Plan | None) -> None:
    """A CommandError if the plan has no expiry: a signature can be put back at any time."""
    if plan is None or plan.expires is None:
        raise output.CommandError(
            'A signed plan needs a date. Nothing was approved. Add expires: "2030-01-31T18:00:00Z" to its head.',
            output.FAILURE,
        )


def sign_approval(workspace: Workspace, plan_id: str, content: bytes, key: Path) -> SignedApproval:
    """Sign a plan's bytes; ssh-keygen may ask at the terminal. A CommandError if it fails or would not count."""
    try:
        return SignedApproval(*sign_plan(workspace.root, state_dir.path_of(workspace.root), plan_id, content, key))
    except SshKeygenError as problem:
        raise output.CommandError(
            f"Nothing was approved: {escape(str(problem))}. `kaiza trust signer list` lists the keys that count.",
            output.FAILURE,
        ) from problem


def find_key(name: str | None, nothing: str) -> Path:
    """The named key, or the one that there is; a CommandError, which says that nothing was done, if it is not clear."""
    directory = Path("~/.ssh").expanduser()
    found = [Path(name)] if name else [directory / each for each in _KEY_NAMES]
    existing = [key.resolve() for key in found if key.is_file()]
    if len(existing) != 1:
        raise output.CommandError(f"{nothing} Name the key to sign with: --key FILE", output.FAILURE)
    return existing[0]
