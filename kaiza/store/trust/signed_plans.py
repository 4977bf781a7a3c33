"""Signatures of plans: `plans/<id>.md.sig`, made and verified with ssh-keygen.

What is signed is a text of four lines: the format, the project, the plan's id, and the SHA-256 of the plan's bytes.
"""

import os
import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kaiza.domain import errors
from kaiza.domain.plans.parser import StoredPlan
from kaiza.store.disk.byte_io import READ_NOFOLLOW, write_all
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.trust import ssh_keygen
from kaiza.store.trust.signers import SignerList, read_signers
from kaiza.store.trust.ssh_keygen import SshKeygenError
from kaiza.store.trust.timed_cache import TimedCache
from kaiza.store.trust.trusted_refs import find_project

NAMESPACE = "kaiza-plan"
MAX_SIGNATURE_BYTES = 64 * 1024
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class SignatureStatus:
    """The signer of a plan, or why there is none; both None if there is no signature file."""

    signer: str | None = None
    problem: str | None = None


_statuses: TimedCache[tuple[object, ...], SignatureStatus] = TimedCache()


def verify_signature(root: str, state_path: Path, stored: StoredPlan) -> SignatureStatus:
    """Verify a plan's signature. Starts ssh-keygen, so it is not called under the log's lock."""
    try:
        signature = read_signature(root, stored.plan_id)
        if signature is None:
            return SignatureStatus()
        text, signers = _prepare_verification(state_path, stored)
    except SshKeygenError as problem:
        return SignatureStatus(problem=str(problem))
    key = (root, text, sha256(signature).digest(), signers.content)
    return _statuses.get(key, lambda: _verify(root, signers, signature, text))


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
        directory = os.open(f"{root}/plans", _DIRECTORY_FLAGS)
    except OSError:
        return None
    try:
        with os.fdopen(os.open(_file_name(plan_id), READ_NOFOLLOW, dir_fd=directory), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SshKeygenError("the signature is not a plain file")
            content = file.read(MAX_SIGNATURE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SshKeygenError("the signature is not a plain file, or cannot be read") from error
    finally:
        os.close(directory)
    if len(content) > MAX_SIGNATURE_BYTES:
        raise SshKeygenError("the signature is larger than 64 KiB")
    return content


def write_signature(root: str, plan_id: str, signature: bytes) -> None:
    """Write a plan's signature file; a reader sees the old content or the new one, never a part."""
    directory = os.open(f"{root}/plans", _DIRECTORY_FLAGS)
    temporary = f".{os.urandom(8).hex()}.new"
    try:
        descriptor = os.open(temporary, _CREATE_FLAGS, 0o644, dir_fd=directory)
        try:
            write_all(descriptor, [signature])
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, _file_name(plan_id), src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)
    finally:
        os.close(directory)


def _file_name(plan_id: str) -> str:
    return f"{plan_id}{SUFFIX}.sig"


def _prepare_verification(state_path: Path, stored: StoredPlan) -> tuple[bytes, SignerList]:
    """The text that must be signed, and the signers that may have; SshKeygenError if no signature can count."""
    plan = stored.parsed.plan
    if plan is None or plan.expires is None:
        raise SshKeygenError("a signed plan needs expires, and this one has none")
    return compose_text(require_project(state_path), plan.plan_id, plan.plan_hash), _require_signers(state_path)


def _require_signers(state_path: Path) -> SignerList:
    signers = read_signers(state_path)
    if not signers.signers:
        detail = f" ({signers.problems[0]})" if signers.problems else ""
        raise SshKeygenError(f"no signer is trusted here{detail}")
    return signers


def _verify(root: str, signers: SignerList, signature: bytes, text: bytes) -> SignatureStatus:
    try:
        return SignatureStatus(signer=ssh_keygen.find_signer(root, signers.content, NAMESPACE, signature, text))
    except SshKeygenError as problem:
        return SignatureStatus(problem=str(problem))
