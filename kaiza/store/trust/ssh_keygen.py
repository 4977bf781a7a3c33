"""Runs ssh-keygen to sign texts and to verify signatures; the only module that starts it."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from kaiza.store.git import trusted_path

_VERIFY_SECONDS = 10
_SIGN_SECONDS = 120
"""Time for a passphrase, or a touch of the key."""


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
                return principal
    if not any(principals):
        raise SshKeygenError("the signature is not by a trusted key, or is no signature")
    raise SshKeygenError("the signature is not one of this plan in this project, or the key is not valid now")


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
