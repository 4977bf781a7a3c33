"""Trust keys: the plans that they sign for a project are then approved in this workspace."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kaiza.domain import errors
from kaiza.domain.refusal import RefusedError
from kaiza.queries.workspaces import require_sound_log
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust.signed_plans import is_project_name
from kaiza.store.trust.signers import Signer, machine_path, parse_signers, read_signers, save_signers
from kaiza.store.trust.trust_file import find_project, read_trust, save_trust
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """The keys that would be trusted, and the project that their signatures are for."""

    signers: Sequence[Signer]
    project: str
    is_project_named: bool
    """False if `project` is only a suggestion: a person has to name it, and `propose` is called again with that."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The principals and fingerprints of the keys, as they are recorded, and the project."""

    keys: list[dict[str, str]]
    project: str


def propose(workspace: Workspace, lines: str, project: str | None) -> Proposal:
    """The keys in lines of `allowed_signers`. Refused if one cannot count, or the project is another one.

    Refused as well if the log is not sound, or the machine has a list: only that one counts then.
    """
    require_sound_log(workspace)
    require_own_list()
    try:
        signers = parse_signers(lines)
    except ValueError as problem:
        raise RefusedError(f"Nothing was changed: {escape(str(problem))}.") from problem
    if not signers:
        raise RefusedError("Nothing was changed: the file has no signers.")
    try:
        found = find_project(state_dir.path_of(workspace.root))
    except errors.SystemError as error:
        raise RefusedError(error.human_message) from error
    # All signatures here are for one project: it is part of what is signed.
    if found is not None and project not in (None, found[0]):
        raise RefusedError(
            f"Signatures here are for the project {escape(found[0])}. Nothing was changed. Leave out --project."
        )
    known = found[0] if found else project
    if known is None:
        return Proposal(signers, Path(workspace.root).name, is_project_named=False)
    if not is_project_name(known):
        raise RefusedError("A project's name has 1 to 100 visible characters. Nothing was changed.")
    return Proposal(signers, known, is_project_named=True)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the keys, then write them: none is trusted without its record."""
    signers, project = proposal.signers, proposal.project

    def require_still_sound() -> None:
        # Damage may have been found while the person was asked.
        require_sound_log(workspace)

    keys = [{"principal": signer.principal, "fingerprint": signer.fingerprint} for signer in signers]
    detail = {"change": "add", "project": project, "keys": keys}
    human_decisions.record_decision(workspace, "signer", person, require_still_sound, detail=detail)

    state_path = state_dir.path_of(workspace.root)
    added = {(signer.principal, signer.key) for signer in signers}
    kept = [each for each in read_signers(state_path).signers if (each.principal, each.key) not in added]
    trust = read_trust(state_path)
    # A project that a configuration file names is not repeated. Saved even so: that forgets the signers of another
    # workspace that was at this path.
    own_project = project if find_project(state_path) is None else trust.project
    save_trust(workspace.root, replace(trust, project=own_project))
    save_signers(workspace.root, [*kept, *signers])
    return Decision(keys, project)


def require_own_list() -> None:
    """Refused where the machine lists the signers: what a workspace lists does not count there."""
    path = machine_path()
    if os.path.lexists(path):
        raise RefusedError(f"{path} lists the signers of this machine, and only those count. Ask its administrator.")
