"""Signatures of plans: `plans/<id>.md.sig`, made and verified with ssh-keygen.

What is signed is a text of four lines: the format, the project, the plan's id, and the SHA-256 of the plan's bytes.
"""

import errno
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kaiza.domain import errors
from kaiza.domain.plans.parser import StoredPlan
from kaiza.store.disk import small_files
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.trust import ssh_keygen
from kaiza.store.trust.signers import SignerList, read_signers
from kaiza.store.trust.ssh_keygen import SshKeygenError
from kaiza.store.trust.timed_cache import TimedCache
from kaiza.store.trust.trust_file import find_project

NAMESPACE = "kaiza-plan"
MAX_SIGNATURE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class SignatureStatus:
    """The signer of a plan, or why there is none; both None if there is no signature file."""

    signer: str | None = None
    problem: str | None = None


_statuses: TimedCache[tuple[object, ...], SignatureStatus] = TimedCache()


def verify_signature(root: str, state_path: Path, stored: StoredPlan) -> SignatureStatus:
    """Verify a plan's signature. Starts ssh-keygen, so it is not called under the log's lock."""
    try:
        signature, plan = read_signature(root, stored.plan_id), stored.parsed.plan
        if signature is None:
            return SignatureStatus()
        if plan is None or plan.expires is None:
            raise SshKeygenError("a signed plan needs expires, and this one has none")  # noqa: TRY301  one answer
        text = compose_text(require_project(state_path), plan.plan_id, plan.plan_hash)
        signers = _require_signers(state_path)
    except SshKeygenError as problem:
        return SignatureStatus(problem=str(problem))

    def verify() -> SignatureStatus:
        try:
            return SignatureStatus(signer=ssh_keygen.find_signer(root, signers.content, NAMESPACE, signature, text))
        except SshKeygenError as problem:
            return SignatureStatus(problem=str(problem))

    return _statuses.get((root, text, sha256(signature).digest(), signers.content), verify)


def compose_text(project: str, plan_id: str, plan_hash: str) -> bytes:
    """The text that is signed."""
    return f"{NAMESPACE} 1\n{project}\n{plan_id}\n{plan_hash}\n".encode()


def is_project_name(name: str) -> bool:
    """Whether a name can be a line of the text that is signed."""
    return name == name.strip() and 0 < len(name) <= 100 and name.isprintable()  # noqa: PLR2004


def require_project(state_path: Path) -> str:
    """The project's name; SshKeygenError if it is not set."""
    try:
        found = find_project(state_path)
    except errors.SystemError as error:
        raise SshKeygenError(error.human_message) from error
    if found is None or not is_project_name(found[0]):
        raise SshKeygenError("no project is named that signatures are for; kaiza trust signer add asks for it")
    return found[0]


def sign_plan(root: str, state_path: Path, plan_id: str, content: bytes, key: Path) -> tuple[bytes, str]:
    """Sign a plan's bytes; the signature, and the trusted signer that made it. SshKeygenError if there is none."""
    text = compose_text(require_project(state_path), plan_id, sha256(content).hexdigest())
    signers = _require_signers(state_path)
    signature = ssh_keygen.sign_text(root, key, NAMESPACE, text)
    # A signature that would not count is not worth a file.
    return signature, ssh_keygen.find_signer(root, signers.content, NAMESPACE, signature, text)


def read_signature(root: str, plan_id: str) -> bytes | None:
    """The content of a plan's signature file; None if there is none. SshKeygenError if it is no plain small file."""
    try:
        directory = small_files.open_directory(f"{root}/plans")
    except OSError:
        return None
    try:
        return small_files.read(_file_name(plan_id), MAX_SIGNATURE_BYTES, directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise SshKeygenError("the signature is larger than 64 KiB") from error
        raise SshKeygenError("the signature is not a plain file, or cannot be read") from error
    finally:
        os.close(directory)


def write_signature(root: str, plan_id: str, signature: bytes) -> None:
    """Write a plan's signature file, durable when this returns; a reader sees the old one or the new one."""
    directory = small_files.open_directory(f"{root}/plans")
    try:
        small_files.replace(_file_name(plan_id), signature, directory, mode=0o644, durable=True)
    finally:
        os.close(directory)


def _file_name(plan_id: str) -> str:
    return f"{plan_id}{SUFFIX}.sig"


def _require_signers(state_path: Path) -> SignerList:
    signers = read_signers(state_path)
    if not signers.signers:
        detail = f" ({signers.problems[0]})" if signers.problems else ""
        raise SshKeygenError(f"no signer is trusted here{detail}")
    return signers
