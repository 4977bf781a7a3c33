import json

import pytest
from context_caches import MINIMAL, REALISTIC, cache_version_of, file_of, manifest_of, version_of

from kaiza.domain import errors
from kaiza.domain.context import cache_format
from kaiza.domain.context.cache_format import CacheEntry

ENTRIES = [CacheEntry(name, version_of(REALISTIC[name])) for name in sorted(REALISTIC)]


def code_of(parse, *arguments):
    with pytest.raises(errors.SystemError) as raised:
        parse(*arguments)
    return raised.value.error_code


def test_the_version_of_an_empty_cache_is_that_of_the_reference():
    assert cache_format.hash_entries([]).startswith("sha256:a77ff76f")


def test_a_cache_is_written_as_the_reference_writes_it():
    manifest = cache_format.encode_manifest(ENTRIES, "2026-01-01T00:00:00Z").decode()

    assert manifest == json.dumps(manifest_of(REALISTIC), indent=2)
    assert cache_format.encode_index(ENTRIES).decode() == json.dumps(
        {name: file_of(REALISTIC[name]) for name in sorted(REALISTIC)}, indent=2
    )
    assert cache_format.encode_document(CacheEntry("a.md", version_of("ä")), "A.md", "ä").decode() == (
        f'{{"id":"a.md","version":"{version_of("ä")}","source":"A.md","content":"ä","metadata":{{}}}}'
    )


def test_a_manifest_of_the_reference_is_accepted():
    manifest = cache_format.parse_manifest(json.dumps(manifest_of(MINIMAL)).encode())

    assert manifest.cache_version == cache_version_of(MINIMAL)
    assert [entry.document_id for entry in manifest.entries] == ["goodbye.md", "hello.md"]


def row(name="a.md", text="x", **members):
    return {"id": name, "version": version_of(text), "file": file_of(text), **members}


def rehashed(rows, **members):
    """A manifest whose cache_version is that of its rows, sorted or not."""
    entries = [CacheEntry(each["id"], each["version"]) for each in rows]
    whole = {**manifest_of({}), "document_count": len(rows), "documents": rows}
    return {**whole, "cache_version": cache_format.hash_entries(entries), **members}


@pytest.mark.parametrize(
    "manifest",
    [
        [],
        rehashed([row()], build_config={"version": "999", "hash_algorithm": "sha256"}),
        rehashed([row()], build_config={"version": "1", "hash_algorithm": "md5"}),
        rehashed([row()], cache_version=cache_version_of({})),
        rehashed([row()], document_count=2),
        rehashed([row()], document_count=True),
        rehashed([row()], documents=None),
        {**rehashed([row()]), "documents": ["a.md"]},
        rehashed([row(file="documents/../../../../etc/passwd")]),
        rehashed([row(file="/etc/passwd")]),
        rehashed([row(file=file_of("y"))]),
        rehashed([row(version="sha256:" + "A" * 64, file=f"documents/{'A' * 12}.json")]),
        rehashed([row(version=version_of("x") + "\n")]),
        rehashed([row(version=version_of("x") + "0")]),
        rehashed([row(name=5)]),
        rehashed([row("b.md", "1"), row("a.md", "2")]),
        rehashed([row("a.md", "1"), row("a.md", "2")]),
        rehashed([row("a.md"), row("b.md")]),
        rehashed([row("")]),
        rehashed([row("a\0.md")]),
        rehashed([row("a\x1b[31m.md")]),
        rehashed([row("a" * 5000)]),
    ],
)
def test_a_manifest_that_no_build_writes_is_invalid(manifest):
    assert code_of(cache_format.parse_manifest, json.dumps(manifest).encode()) == "CONTEXT_CACHE_INVALID"


@pytest.mark.parametrize(
    "content",
    [b"", b"not-json", b"\xff", b"[" * 100_000, b'{"documents":[],"documents":[]}', b'{"a":' + b"1" * 5000 + b"}"],
)
def test_a_manifest_that_is_not_strict_json_is_invalid(content):
    assert code_of(cache_format.parse_manifest, content) == "CONTEXT_CACHE_INVALID"


def test_a_manifest_with_a_duplicate_key_is_invalid_even_if_both_values_are_the_same():
    text = json.dumps(manifest_of(MINIMAL))
    doubled = text.replace('"document_count": 2', '"document_count": 2, "document_count": 2')

    assert doubled != text
    assert code_of(cache_format.parse_manifest, doubled.encode()) == "CONTEXT_CACHE_INVALID"


def test_an_id_with_a_lone_surrogate_is_invalid():
    text = json.dumps(manifest_of(MINIMAL)).replace("hello.md", "\\ud800.md")

    assert code_of(cache_format.parse_manifest, text.encode()) == "CONTEXT_CACHE_INVALID"


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"id": "a.md", "version": version_of("x")},
        {"id": "b.md", "version": version_of("x"), "content": "x"},
        {"id": "a.md", "version": version_of("y"), "content": "x"},
        {"id": "a.md", "version": version_of("x"), "content": "y"},
        {"id": "a.md", "version": version_of("x"), "content": ["x"]},
    ],
)
def test_a_document_that_is_not_the_one_of_its_entry_is_invalid(document):
    entry = CacheEntry("a.md", version_of("x"))

    assert code_of(cache_format.parse_document, json.dumps(document).encode(), entry) == "CONTEXT_CACHE_INVALID"
    assert code_of(cache_format.parse_document, b"{", entry) == "CONTEXT_CACHE_INVALID"


def test_an_index_that_differs_from_the_manifest_is_invalid():
    for index in ({}, {"a.md": "documents/000000000000.json"}, []):
        assert code_of(cache_format.require_index, json.dumps(index).encode(), ENTRIES) == "CONTEXT_CACHE_INVALID"
