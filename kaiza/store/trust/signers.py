"""Trusted signers of plans: the lines of `allowed_signers` in the state directory or in `/etc/kaiza`."""

import base64
import binascii
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kaiza.store.config import trusted_config
from kaiza.store.disk import small_files, state_dir
from kaiza.store.trust.trust_file import SIGNERS_NAME, is_of_another_workspace

MAX_BYTES = 64 * 1024
_LINE = re.compile(
    r'(?P<principal>[^\s"#]\S*)[ \t]+(?:(?P<options>(?:[^\s"]|"[^"]*")+)[ \t]+)?'
    r"(?P<key_type>(?:ssh|sk-ssh|ecdsa|sk-ecdsa)-[a-z0-9@.-]+)[ \t]+(?P<key>[A-Za-z0-9+/=]+)(?:[ \t].*)?"
)
_OPTION = re.compile(r'([A-Za-z-]+)="([^"]*)"')
_DATED = {"valid-after", "valid-before"}
_PATTERN_CHARACTERS = frozenset('*?!,"')


@dataclass(frozen=True, slots=True)
class Signer:
    """One trusted key, and the principal it belongs to."""

    principal: str
    options: str
    key_type: str
    key: str

    @property
    def line(self) -> str:
        """The line of `allowed_signers`."""
        return f"{self.principal} {self.options} {self.key_type} {self.key}"

    @property
    def fingerprint(self) -> str:
        """The key's fingerprint, as ssh-keygen prints it."""
        digest = sha256(base64.b64decode(self.key)).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


@dataclass(frozen=True, slots=True)
class SignerList:
    """The trusted signers of a workspace, where they are listed, and the lines that do not count."""

    path: Path
    signers: Sequence[Signer] = ()
    problems: Sequence[str] = ()

    @property
    def content(self) -> bytes:
        """The file for ssh-keygen, of the lines that count."""
        return "".join(f"{signer.line}\n" for signer in self.signers).encode()


def read_signers(state_path: Path) -> SignerList:
    """The machine's signers; those of the workspace only where the machine has no list."""
    # An account that may write its own list could otherwise add itself to the machine's.
    machine = machine_path()
    if os.path.lexists(machine):
        return _read_list(machine)
    own = state_path / SIGNERS_NAME
    return SignerList(own) if is_of_another_workspace(state_path) else _read_list(own)


def machine_path() -> Path:
    """The machine's list, which takes the place of every workspace's own."""
    return trusted_config.MACHINE_DIRECTORY / SIGNERS_NAME


def parse_signers(text: str) -> list[Signer]:
    """The signers in lines of `allowed_signers`; ValueError with the first line that cannot count."""
    return [parse_signer(line) for line in _meaningful_lines(text)]


def parse_signer(line: str) -> Signer:
    """The signer in a line; ValueError where it is not one that may be trusted."""
    match = _LINE.fullmatch(line.strip())
    if match is None:
        raise ValueError('not a line such as: ann@example.org namespaces="kaiza-plan" ssh-ed25519 AAAA…')
    principal, options = match["principal"], match["options"] or ""
    if not _PATTERN_CHARACTERS.isdisjoint(principal):
        raise ValueError(f"{principal} is a pattern; write one name")
    _check_options(principal, options)
    try:
        base64.b64decode(match["key"], validate=True)
    except binascii.Error:
        raise ValueError(f"the key of {principal} is damaged") from None
    return Signer(principal, options, match["key_type"], match["key"])


def save_signers(root: str, signers: Iterable[Signer]) -> None:
    """Replace the workspace's list; durable when this returns."""
    content = "".join(f"{signer.line}\n" for signer in signers).encode()
    small_files.replace(state_dir.path_of(root, create=True) / SIGNERS_NAME, content, durable=True)


def _check_options(principal: str, options: str) -> None:
    """ValueError unless the key is limited to Kaiza's signatures, and no authority over other keys."""
    found = dict(_OPTION.findall(options.lower()))
    if ",".join(f'{name}="{value}"' for name, value in found.items()) != options.lower():
        raise ValueError(f'{principal} has options that are not name="value", or one of them twice')
    if not found.keys() <= {"namespaces", *_DATED}:
        raise ValueError(f"{principal} has other options than namespaces, valid-after and valid-before")
    namespaces = found.get("namespaces", "").split(",")
    if not all(namespace.startswith("kaiza-") for namespace in namespaces):
        raise ValueError(f'{principal} lacks namespaces="kaiza-plan", so any signature by the key would count')


def _read_list(path: Path) -> SignerList:
    try:
        text = small_files.read(path, MAX_BYTES).decode()
    except FileNotFoundError:
        return SignerList(path)
    except (OSError, ValueError):
        return SignerList(path, problems=[f"{path} cannot be read"])
    signers, problems = [], []
    for line in _meaningful_lines(text):
        try:
            signers.append(parse_signer(line))
        except ValueError as problem:
            problems.append(f"{path}: {problem}")
    return SignerList(path, signers, problems)


def _meaningful_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
