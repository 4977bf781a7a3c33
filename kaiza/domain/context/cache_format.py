"""Format of a context cache, version 1: its manifest, its index and its documents.

A cache's files are untrusted. A parser accepts only what a build writes, except in members that do not affect the
content; it raises CONTEXT_CACHE_INVALID for anything else.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from kaiza.domain import errors
from kaiza.domain.caps import MIB

BUILD_CONFIG = {"version": "1", "hash_algorithm": "sha256"}
MAX_MANIFEST_BYTES = 64 * MIB
MAX_DOCUMENT_BYTES = 2 * MIB
MAX_VALUES = 1_000_000
"""Approximate number of values in a manifest or an index: twice what a build of 100,000 documents writes."""
MANIFEST, INDEX, DOCUMENTS = "manifest.json", "index.json", "documents"
"""The names in a cache's directory."""
DOCUMENT_NAME = re.compile(r"[0-9a-f]{12}\.json")
_VERSION = re.compile(r"sha256:[0-9a-f]{64}")
_PREFIX = "sha256:"
_DIGITS = 12
MAX_ID_BYTES = 4096
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, order=True)
class CacheEntry:
    """One document of a manifest: its id, and the hash of its content."""

    document_id: str
    version: str

    @property
    def file_name(self) -> str:
        """The document's name in `documents/`."""
        return f"{self.version[len(_PREFIX) :][:_DIGITS]}.json"

    @property
    def file(self) -> str:
        """The document's path in the cache."""
        return f"{DOCUMENTS}/{self.file_name}"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest whose `cache_version` is the hash of its entries."""

    cache_version: str
    entries: tuple[CacheEntry, ...]


def hash_content(content: bytes) -> str:
    """The version of a document with this content."""
    return _PREFIX + hashlib.sha256(content).hexdigest()


def hash_entries(entries: Iterable[CacheEntry]) -> str:
    """The `cache_version` of a cache with these documents."""
    digest = hashlib.sha256(orjson.dumps(BUILD_CONFIG))
    for entry in sorted(entries):
        digest.update(f"{entry.document_id}:{entry.version}".encode())
    return _PREFIX + digest.hexdigest()


def is_document_id(text: str) -> bool:
    """Whether a document may have this id: without control characters and lone surrogates, and not too long."""
    if not text or _CONTROL.search(text):
        return False
    encoded = text.encode(errors="replace")
    return len(encoded) <= MAX_ID_BYTES and encoded.decode() == text


def parse_manifest(content: bytes) -> Manifest:
    """Parse `manifest.json`."""
    manifest = _decode_object(content, "manifest")
    rows = manifest.get("documents")
    if manifest.get("build_config") != BUILD_CONFIG or not isinstance(rows, list):
        raise cache_invalid("manifest")
    entries = tuple(map(_parse_row, rows))
    count = manifest.get("document_count")
    # Sorted by id, without a second id or file. Texts compare by code point, which is the order of their UTF-8 bytes.
    ids = [entry.document_id for entry in entries]
    is_ordered = ids == sorted(set(ids)) and len({entry.file for entry in entries}) == len(entries)
    if isinstance(count, bool) or count != len(entries) or not is_ordered:
        raise cache_invalid("manifest")
    if manifest.get("cache_version") != hash_entries(entries):
        raise cache_invalid("cache_version")
    return Manifest(hash_entries(entries), entries)


def require_index(content: bytes, entries: Iterable[CacheEntry]) -> None:
    """CONTEXT_CACHE_INVALID unless this `index.json` is that of the entries."""
    if _decode_object(content, "index") != {entry.document_id: entry.file for entry in entries}:
        raise cache_invalid("index")


def parse_document(content: bytes, entry: CacheEntry) -> str:
    """The content of a document; CONTEXT_CACHE_INVALID unless it is the one that the entry names."""
    try:
        # `orjson`, for speed. It takes the last of duplicate keys, and that value is compared with the entry.
        document = orjson.loads(content)
    except ValueError as error:
        raise cache_invalid("document") from error
    if not isinstance(document, dict) or not isinstance(text := document.get("content"), str):
        raise cache_invalid("document")
    if (document.get("id"), document.get("version")) != (entry.document_id, entry.version):
        raise cache_invalid("document")
    if hash_content(text.encode()) != entry.version:
        raise cache_invalid("hash")
    return text


def is_too_large(content: bytes) -> bool:
    """Whether a manifest or an index has too many bytes or values to be read."""
    # Each value follows one of these. 64 MiB of empty lists would become 2 GiB of objects.
    return len(content) > MAX_MANIFEST_BYTES or sum(map(content.count, (b",", b"[", b"{"))) > MAX_VALUES


def encode_manifest(entries: Sequence[CacheEntry], created_at: str) -> bytes:
    """Encode `manifest.json`; `entries` are sorted."""
    rows = [{"id": entry.document_id, "version": entry.version, "file": entry.file} for entry in entries]
    members = {"cache_version": hash_entries(entries), "build_config": BUILD_CONFIG, "created_at": created_at}
    return _encode_indented({**members, "document_count": len(rows), "documents": rows})


def encode_index(entries: Sequence[CacheEntry]) -> bytes:
    """Encode `index.json`; `entries` are sorted."""
    return _encode_indented({entry.document_id: entry.file for entry in entries})


def encode_document(entry: CacheEntry, source: str, content: str) -> bytes:
    """Encode the file of a document."""
    identity = {"id": entry.document_id, "version": entry.version, "source": source}
    return orjson.dumps({**identity, "content": content, "metadata": {}})


def cache_invalid(why: str) -> errors.SystemError:
    """The error for a cache that differs from what a build writes."""
    return errors.SystemError.tool_failure(
        "CONTEXT_CACHE_INVALID",
        human_message="The context cache is damaged or was changed. Ask a person to build it again.",
        cause={"why": why},
    )


def _parse_row(row: object) -> CacheEntry:
    if not isinstance(row, dict):
        raise cache_invalid("manifest")
    document_id, version = row.get("id"), row.get("version")
    if not isinstance(document_id, str) or not is_document_id(document_id):
        raise cache_invalid("id")
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        raise cache_invalid("version")
    entry = CacheEntry(document_id, version)
    if row.get("file") != entry.file:
        raise cache_invalid("file")
    return entry


def _decode_object(content: bytes, what: str) -> dict[str, Any]:
    if is_too_large(content):
        raise cache_invalid(what)
    try:
        # `json`, not `orjson`, because orjson accepts duplicate keys: two readers could see two manifests.
        value = json.loads(content.decode(), object_pairs_hook=_unique_members)
    except (ValueError, RecursionError) as error:
        raise cache_invalid(what) from error
    if not isinstance(value, dict):
        raise cache_invalid(what)
    return value


def _unique_members(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate key")
    return members


def _encode_indented(value: Mapping[str, Any]) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2)
