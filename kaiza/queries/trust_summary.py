"""What approves plans in a workspace besides a person at its terminal: trusted refs and signers, and from where."""

from typing import Any

from kaiza.domain import errors
from kaiza.render.terminal import escape, format_count
from kaiza.store.disk import state_dir
from kaiza.store.trust.merged_plans import check_ref
from kaiza.store.trust.signers import SignerList, read_signers
from kaiza.store.trust.trust_file import find_project, list_trusted_refs, read_trust


def summarize_trust(root: str) -> dict[str, Any]:
    """What `kaiza trust --json` prints, less the setting. Starts git where a ref is trusted."""
    state_path = state_dir.path_of(root)
    signers, own = read_signers(state_path), read_trust(state_path)
    problems = [*signers.problems, *([own.problem] if own.problem else [])]
    try:
        refs, project = list_trusted_refs(root, state_path), find_project(state_path)
    except errors.SystemError as error:
        refs, project = [], None
        problems.append(error.human_message)
    merged = [{"ref": ref.name, "source": ref.source, "problem": check_ref(root, ref.name)} for ref in refs]
    if signers.signers and project is None:
        problems.append("no project is named that signatures are for; kaiza trust signer add asks for it")
    return {
        "merged": merged,
        "project": {"name": project[0], "source": project[1]} if project else None,
        "signers": [
            {
                "principal": signer.principal,
                "key_type": signer.key_type,
                "fingerprint": signer.fingerprint,
                "options": signer.options,
                "source": str(signers.path),
            }
            for signer in signers.signers
        ],
        "problems": problems,
    }


def read_signer_lines(root: str) -> SignerList:
    """The trusted keys as lines of `allowed_signers`, and the lines that do not count."""
    return read_signers(state_dir.path_of(root))


def describe_trust(summary: dict[str, Any]) -> str:
    """What is trusted, in one line."""
    parts = [f"plans merged into {escape(entry['ref'])}" for entry in summary["merged"]]
    if summary["signers"]:
        parts.append(f"signatures of {format_count(len(summary['signers']), 'key')}")
    return " and ".join(parts) or "no merge and no signature"


def list_problems(summary: dict[str, Any]) -> list[str]:
    """Why something that is trusted does not count now."""
    return [*(entry["problem"] for entry in summary["merged"] if entry["problem"]), *summary["problems"]]
