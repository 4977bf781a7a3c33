import json

import orjson
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.caps import Caps
from kaiza.domain.paging import response_size
from kaiza.domain.paging.response_size import AnswerBudget

BUDGETS = st.sampled_from([AnswerBudget(0), AnswerBudget(0, is_doubled=True)])
TEXT = st.text(st.sampled_from('ab"\\\n\t\x01\x7fé\U0001f600\u2028'))
VALUES = st.recursive(
    TEXT | st.integers(0, 2**53) | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def response(output):
    text = json.dumps(output, ensure_ascii=False, separators=(",", ":"))
    result = {"content": [{"type": "text", "text": text}], "structuredContent": output}
    return len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode())


@given(value=VALUES)
def test_an_answer_counts_as_one_document_unless_it_was_asked_to_be_longer(value):
    document = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    assert AnswerBudget.choose(Caps()).count_bytes(value) == len(document)
    assert AnswerBudget.choose(Caps(), is_asked=True).count_bytes(value) == response([value]) - response([])


@given(text=TEXT, budget=BUDGETS)
def test_the_size_of_a_text_is_what_its_characters_add(text, budget):
    assert budget.count_text_bytes(text.encode()) == budget.count_bytes(text) - budget.count_bytes("")


@given(text=TEXT, repeated=st.sampled_from([1, 30, 900]), space=st.integers(-5, 30_000), budget=BUDGETS)
def test_the_longest_prefix_that_fits_is_found(text, repeated, space, budget):
    data = (text * repeated).encode()
    size = budget.fit_text(data, space)

    assert size == 0 or budget.count_text_bytes(data[:size]) <= space
    assert size == len(data) or budget.count_text_bytes(data[: size + 1]) > space


@given(text=TEXT.filter(bool))
def test_the_largest_answer_that_settings_allow_fits_into_a_response(text):
    largest = 160 * 1024
    document = {"content": text * (largest // len(orjson.dumps(text)))}

    assert response_size.response_bytes(document) < Caps().response_bytes - response_size.RESERVED_BYTES


def test_a_page_takes_one_item_of_any_size_and_then_only_what_fits():
    page = response_size.PageBuilder(9, AnswerBudget(400, is_doubled=True))

    assert page.add({"text": "x" * 500}, ("a",))
    assert not page.add({"text": "x"}, ("b",))
    assert (len(page.items), page.last_key) == (1, ("a",))


def test_a_page_takes_at_most_its_maximum_of_items():
    page = response_size.PageBuilder(2, AnswerBudget(512 * 1024))

    assert [page.add({}, (str(number),)) for number in range(3)] == [True, True, False]
    assert page.last_key == ("1",)
