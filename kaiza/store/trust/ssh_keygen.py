"""Runs ssh-keygen to sign texts and to verify signatures; the only module that starts it."""

import base64
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kaiza.store.git import trusted_path

_VERIFY_SECONDS = 10
_SIGN_SECONDS = 120
"""Time for a passphrase, or a touch of the key."""
_BEGIN, _END = b"-----BEGIN SSH SIGNATURE-----", b"\n-----END SSH SIGNATURE-----"
_FIELDS_START = len(b"SSHSIG") + 4
"""Before the fields are a magic word and a version."""
_TOUCHED = 1
"""The flag of a hardware key that was touched for a signature."""


class SshKeygenError(Exception):
    """Why ssh-keygen gave no answer, or none that can be used."""


def sign_text(root: str, key: Path, namespace: str, text: bytes) -> bytes:
    """The signature of a text by a private key, or by the agent's key to a public one. May ask at the terminal."""
    result = _run(root, ["sign", "-n", namespace, "-f", str(key)], text, _SIGN_SECONDS, stderr=None)
    if result.returncode != 0 or not result.stdout:
        raise SshKeygenError(f"ssh-keygen did not sign with {key}")
    return result.stdout


def find_signer(root: str, allowed_signers: bytes, namespace: str, signature: bytes, text: bytes) -> str:
    """The principal whose key made a valid signature of the text; SshKeygenError if there is none."""
    import tempfile  # noqa: PLC0415  a session without signed plans does not pay for it

    with tempfile.TemporaryDirectory(prefix="kaiza-") as directory:
        # Copies: what is verified is what was read, whatever happens to the files.
        signers_path, signature_path = Path(directory, "allowed_signers"), Path(directory, "signature")
        signers_path.write_bytes(allowed_signers)
        signature_path.write_bytes(signature)
        files = ["-f", str(signers_path), "-s", str(signature_path)]
        found = _run(root, ["find-principals", *files], b"", _VERIFY_SECONDS)
        principals = found.stdout.decode("utf-8", "replace").split("\n") if found.returncode == 0 else []
        for principal in filter(None, principals):
            options = ["verify", "-n", namespace, "-I", principal, *files]
            if _run(root, options, text, _VERIFY_SECONDS).returncode == 0:
                _require_touch(signature)
                return principal
    if not any(principals):
        raise SshKeygenError("the signature is not by a trusted key, or is no signature")
    raise SshKeygenError("the signature is not one of this plan in this project, or the key is not valid now")


def _require_touch(signature: bytes) -> None:
    """SshKeygenError if a valid signature is by a hardware key that was not touched for it."""
    # sshd checks this, but `ssh-keygen -Y verify` does not: a program can ask most keys to sign without it.
    encoded = signature.removeprefix(_BEGIN).partition(_END)[0]
    try:
        fields, _ = _split_fields(base64.b64decode(b"".join(encoded.split()), validate=True)[_FIELDS_START:], 5)
        # After type and signature only a hardware key has more: flags, and a counter.
        _, flags = _split_fields(fields[-1], 2)
    except ValueError as error:
        raise SshKeygenError("the signature cannot be read") from error
    if flags and not flags[0] & _TOUCHED:
        raise SshKeygenError("the hardware key was not touched for the signature")


def _split_fields(content: bytes, count: int) -> tuple[list[bytes], bytes]:
    """Fields that each follow their length, and what comes after them. ValueError if one is cut off."""
    fields = []
    for _ in range(count):
        end = 4 + int.from_bytes(content[:4])
        if len(content) < end:
            raise ValueError("cut off")
        fields.append(content[4:end])
        content = content[end:]
    return fields, content


def _run(
    root: str, options: Sequence[str], text: bytes, seconds: float, stderr: int | None = subprocess.DEVNULL
) -> "subprocess.CompletedProcess[bytes]":
    path = os.pathsep.join(trusted_path(root))
    program = shutil.which("ssh-keygen", path=path)
    if program is None:
        raise SshKeygenError("ssh-keygen is not installed")
    try:
        return subprocess.run(  # noqa: S603  fixed options, and no shell
            [program, "-Y", *options],
            input=text,
            stdout=subprocess.PIPE,
            stderr=stderr,
            check=False,
            cwd="/",
            env={**os.environ, "PATH": path},
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SshKeygenError("ssh-keygen could not be started, or did not answer in time") from error
