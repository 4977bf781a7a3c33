"""Context caches in the format of the reference, written without Kaiza's own code."""

import hashlib
import json
from pathlib import Path

MINIMAL = {"hello.md": "Hello world", "goodbye.md": "Goodbye world"}
REALISTIC = {
    "deployment.md": "Deployment deployment deployment guide.",
    "security.md": "Security hardening guide.",
    "empty.md": "",
}
TIED = {"b.md": "deployment bravo", "a.md": "deployment alpha"}


def version_of(text):
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def file_of(text):
    return f"documents/{version_of(text)[7:19]}.json"


def cache_version_of(documents):
    """The hash of the build configuration and of each id with its version."""
    text = '{"version":"1","hash_algorithm":"sha256"}'
    text += "".join(f"{name}:{version_of(documents[name])}" for name in sorted(documents))
    return version_of(text)


def manifest_of(documents, **members):
    return {
        "cache_version": cache_version_of(documents),
        "build_config": {"version": "1", "hash_algorithm": "sha256"},
        "created_at": "2026-01-01T00:00:00Z",
        "document_count": len(documents),
        "documents": [
            {"id": name, "version": version_of(documents[name]), "file": file_of(documents[name])}
            for name in sorted(documents)
        ],
        **members,
    }


def write_cache(root, name, documents):
    """Write a cache below `.kaiza/context/`; return its directory."""
    directory = Path(root, ".kaiza/context", name)
    (directory / "documents").mkdir(parents=True)
    write_json(directory / "manifest.json", manifest_of(documents))
    write_json(directory / "index.json", {each: file_of(documents[each]) for each in sorted(documents)})
    for each, text in documents.items():
        document = {"id": each, "version": version_of(text), "source": each, "content": text, "metadata": {}}
        (directory / file_of(text)).write_text(json.dumps(document, ensure_ascii=False))
    return directory


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2))
