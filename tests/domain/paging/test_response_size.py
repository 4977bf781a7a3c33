import json

from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.paging import response_size

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
def test_the_size_of_a_value_is_what_it_adds_to_a_response(value):
    assert response_size.response_bytes(value) == response([value]) - response([])


@given(text=TEXT)
def test_the_size_of_a_text_is_what_its_characters_add(text):
    assert response_size.text_response_bytes(text.encode()) == response_size.response_bytes(
        text
    ) - response_size.response_bytes("")


@given(text=TEXT, repeated=st.sampled_from([1, 30, 900]), space=st.integers(-5, 30_000))
def test_the_longest_prefix_that_fits_is_found(text, repeated, space):
    data = (text * repeated).encode()
    size = response_size.longest_fitting_prefix(data, space)

    assert size == 0 or response_size.text_response_bytes(data[:size]) <= space
    assert size == len(data) or response_size.text_response_bytes(data[: size + 1]) > space


def test_a_page_takes_one_item_of_any_size_and_then_only_what_fits():
    page = response_size.PageBuilder(9, response_size.RESERVED_BYTES + 400)

    assert page.add({"text": "x" * 500}, ("a",))
    assert not page.add({"text": "x"}, ("b",))
    assert (len(page.items), page.last_key) == (1, ("a",))


def test_a_page_takes_at_most_its_maximum_of_items():
    page = response_size.PageBuilder(2, 512 * 1024)

    assert [page.add({}, (str(number),)) for number in range(3)] == [True, True, False]
    assert page.last_key == ("1",)
