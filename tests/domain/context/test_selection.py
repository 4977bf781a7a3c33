import json
import struct

import orjson
import pytest
from context_caches import REALISTIC, TIED, version_of
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.context.cache_format import CacheEntry
from kaiza.domain.context.selection import (
    ScoredDocument,
    round_to_single,
    score_document,
    select_documents,
    split_words,
)

WHITE_SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2006\u200a\u2028\u2029\u202f\u205f\u3000"


def resolve(documents, query, budget):
    """The answer for these documents, as the bytes that are sent."""
    terms = frozenset(split_words(query))
    scored = [score_document(CacheEntry(name, version_of(text)), text, terms) for name, text in documents.items()]
    selection = select_documents(query, budget, scored)
    contents = [documents[one.entry.document_id] for one in selection.documents]
    return orjson.dumps(selection.as_json(contents)).decode()


def ranked(documents, query, budget=4000):
    return [(one["id"], one["score"]) for one in json.loads(resolve(documents, query, budget))["documents"]]


def test_the_answer_has_these_bytes():
    one = {"a.md": "Deployment guide"}

    assert resolve(one, "Deployment x", 4) == (
        f'{{"documents":[{{"id":"a.md","version":"{version_of("Deployment guide")}","content":"Deployment guide",'
        '"score":0.5,"tokens":4,"why":{"query_terms":["deployment","x"],"term_matches":1,"total_words":2}}],'
        '"selection":{"query":"Deployment x","budget":4,"tokens_used":4,"documents_considered":1,'
        '"documents_selected":1,"documents_excluded_by_budget":0}}'
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("deployment", [("deployment.md", 0.75), ("empty.md", 0.0), ("security.md", 0.0)]),
        ("deployment security", [("deployment.md", 0.75), ("security.md", 0.33333334), ("empty.md", 0.0)]),
        ("", [("deployment.md", 0.0), ("empty.md", 0.0), ("security.md", 0.0)]),
        ("guide", [("deployment.md", 0.0), ("empty.md", 0.0), ("security.md", 0.0)]),
    ],
)
def test_documents_are_ordered_by_score_and_a_word_must_equal_a_term(query, expected):
    assert ranked(REALISTIC, query) == expected


def test_equal_scores_are_ordered_by_the_bytes_of_the_id():
    astral, private = "\U0001f600.md", "\uffee.md"  # in UTF-16, they would be in the other order

    assert ranked(TIED, "deployment") == [("a.md", 0.5), ("b.md", 0.5)]
    assert [name for name, _ in ranked({astral: "x", private: "y"}, "")] == [private, astral]


def test_scores_that_differ_only_beyond_32_bits_are_equal():
    first, second = (CacheEntry(name, version_of(name)) for name in ("a.md", "b.md"))
    lower, higher = ScoredDocument(first, 1, 500_000, 1_000_001), ScoredDocument(second, 1, 500_001, 1_000_003)
    selection = select_documents("", 9, [higher, lower])

    assert 500_000 / 1_000_001 < 500_001 / 1_000_003
    assert [one.entry for one in selection.documents] == [first, second]


@pytest.mark.parametrize(
    ("matches", "words", "shown"), [(1, 3, 0.33333334), (3, 26, 0.115384616), (4, 39, 0.102564104)]
)
def test_a_score_has_the_fewest_digits_that_identify_it(matches, words, shown):
    score = ScoredDocument(CacheEntry("a.md", version_of("a")), 1, matches, words).score

    assert score == shown
    assert struct.pack("<f", score) == struct.pack("<f", matches / words)


def test_documents_are_taken_while_they_fit_and_skipped_whole():
    documents = {"a.md": "hit " * 10, "b.md": "hit x " * 10, "c.md": "x" * 8}
    answer = json.loads(resolve(documents, "hit", 12))

    assert [one["id"] for one in answer["documents"]] == ["a.md", "c.md"]
    assert answer["selection"]["tokens_used"] == 12
    assert answer["selection"]["documents_excluded_by_budget"] == 1
    assert [one["content"] for one in answer["documents"]] == ["hit " * 10, "x" * 8]


def test_a_budget_of_0_selects_nothing_not_even_an_empty_document():
    answer = json.loads(resolve(REALISTIC, "deployment", 0))

    assert answer["documents"] == []
    assert answer["selection"]["documents_excluded_by_budget"] == 3
    assert [name for name, _ in ranked(REALISTIC, "deployment", 1)] == ["empty.md"]


def test_tokens_are_the_bytes_of_the_content_in_fours_rounded_up():
    (one,) = json.loads(resolve({"a.md": "äöü€x"}, "", 9))["documents"]

    assert one["tokens"] == 3  # 10 bytes, 5 characters


def test_a_repeated_term_counts_a_word_once_and_is_shown_as_it_was_given():
    (one,) = json.loads(resolve({"a.md": "hello hello"}, "hello Hello", 9))["documents"]

    assert (one["score"], one["why"]["term_matches"]) == (1.0, 2)
    assert one["why"]["query_terms"] == ["hello", "hello"]


def test_words_are_split_at_white_space_and_not_at_information_separators():
    for separator in WHITE_SPACE:
        assert split_words(f"A{separator}{separator}B") == ["a", "b"]
    for other in "\x1c\x1d\x1e\x1f\u200b\u2060\ufeff":
        assert split_words(f"A{other}B C") == [f"a{other}b", "c"]


@given(st.text(alphabet=st.sampled_from(f"aB\u200b{WHITE_SPACE}")))
def test_a_text_with_and_without_information_separators_is_split_alike(text):
    assert split_words(f"{text} \x1c") == [*split_words(text), "\x1c"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (2 / 3, "0.6666667"),
        (1 / 3, "0.33333334"),
        (1 / 8192, "0.00012207031"),
        (1 / 100_000, "0.00001"),
        (9.9999e-6, "9.9999e-6"),
        (1 / 524_288, "1.9073486e-6"),
    ],
)
def test_scores_are_written_as_the_shortest_decimal(value, text):
    assert orjson.dumps(round_to_single(value)).decode() == text


@given(st.integers(1, 1 << 20), st.integers(0, 1 << 20))
def test_a_score_reads_back_as_the_nearest_32_bit_float(total, matches):
    value = min(matches, total) / total
    (nearest,) = struct.unpack("<f", struct.pack("<f", value))
    shown = orjson.dumps(round_to_single(value)).decode()

    assert struct.unpack("<f", struct.pack("<f", float(shown))) == (nearest,)
    assert len(shown.replace("0.", "").lstrip("0").partition("e")[0].replace(".", "")) <= 9
