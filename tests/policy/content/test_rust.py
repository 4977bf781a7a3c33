import pytest

from kaiza.domain.plans.plan import ContentPolicy
from kaiza.policy.content.rust import find_rust_violations
from kaiza.policy.content.scan import scan_file


def find(text, added=None, name="src/a.rs"):
    return [
        (finding.rule.removeprefix("rust-"), finding.line)
        for finding in find_rust_violations(name, text.encode(), added)
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fn f() { a.unwrap(); }", ["unwrap"]),
        ("fn f() { a\n .unwrap()\n .b(); }", ["unwrap"]),
        ('fn f() { a.expect("x"); }', ["expect"]),
        ("fn f() { x.map(Option::unwrap); }", ["unwrap"]),
        ("fn f() { Result::expect(a, b); }", ["expect"]),
        ('fn f() { panic!("x"); }', ["panic"]),
        ("fn f() { std::panic!(); core::todo!() }", ["panic", "todo"]),
        ("fn f() { todo!() }", ["todo"]),
        ("fn f() { unimplemented!{} }", ["unimplemented"]),
        ("fn f() { unsafe { g() } }", ["unsafe"]),
        ("unsafe fn f() {}", ["unsafe"]),
        ("unsafe impl A for B {}", ["unsafe"]),
        ("unsafe trait A {}", ["unsafe"]),
        ("fn f() { assert!(a.unwrap() == 1); }", ["unwrap"]),
        ("fn f() { vec![a.expect(1), todo!()]; }", ["expect", "todo"]),
        ("fn f() { a.unwrap().b.expect::<A>(c.unwrap()) }", ["unwrap", "expect", "unwrap"]),
        ("fn f() { m!(core::panic!(a :: unwrap)); }", ["panic", "unwrap"]),
    ],
)
def test_code_that_may_panic_or_is_unsafe_is_found(text, words):
    assert sorted(word for word, _ in find(text)) == sorted(words)


@pytest.mark.parametrize(
    "text",
    [
        "fn f() { a.unwrap_or(1); b.unwrap_or_default(); c.expect_err(1) }",
        'fn f() { g("x.unwrap() panic!() unsafe"); }',
        "// a.unwrap() panic!() unsafe\nfn f() { g() }",
        "/* todo!() */ fn f() { g() }",
        'fn f() { assert!(a, "unwrap() todo!()"); }',
        "#[expect(dead_code)] fn f() { g() }",
        "#![forbid(unsafe_code)] fn f() { g() }",
        "fn unwrap() { g() } struct A { expect: u8, panic: u8 }",
        "use std::panic; fn f(a: A) { a.expect; g(panic) }",
        "fn f() { m!(panic != a, unwrap, a.b); panic::g() }",
        r'const A: &str = r#"x.unwrap()"#;',
    ],
)
def test_other_names_strings_comments_and_attributes_are_ignored(text):
    assert find(text) == []


def test_only_added_lines_of_rust_files_are_checked():
    text = "fn f() {\n a.unwrap();\n b.unwrap();\n}\n"

    assert find(text, {2}) == [("unwrap", 2)]
    assert find(text, {0, 3}) == []
    assert find(text, name="a.py") == []


def test_large_rust_files_are_scanned_line_by_line():
    assert find("fn f() {}\n" * 250_000 + "a.unwrap(); // b.unwrap()\n") == [("unwrap", 250_000)]


def test_deep_or_malformed_rust_does_not_fail():
    assert find("{" * 50_000) == []
    assert find("fn f( { a.unwrap() ") == [("unwrap", 0)]


def test_the_plan_chooses_the_content_rules():
    text = ("fn f() { a.unwrap(); } // TO" + "DO gh" + "p_" + "aB3" * 12).encode()

    def rules(**chosen):
        return [finding.rule for finding in scan_file(ContentPolicy(**chosen), "a.rs", text)]

    assert rules() == ["secret-github"]
    assert rules(secrets=False) == []
    assert rules(stubs=True, rust=True) == ["rust-unwrap", "stub-todo", "secret-github"]


def test_many_or_nested_violations_in_one_line_take_linear_time():
    many = 50_000

    assert find(".unwrap " * many) == []
    assert len(find("fn f() { " + "a.unwrap(); " * many + "}")) == many
    assert len(find("fn f() { m!(" + "panic!() " * many + ") }")) == many
    assert len(find("fn f() { a" + ".unwrap()" * 20_000 + " }")) == 20_000
    assert find("fn f() {}\n" * 250_000 + ". " * many + ".unwrap" * many) == []
