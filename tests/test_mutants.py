"""The table of deliberate faults fits the code and the page about testing; `just mutants` makes the faults."""

import ast
from collections import Counter

from mutants import ROOT, read_mutants, read_places

MUTANTS = read_mutants()


def test_every_deliberate_fault_applies_once_and_is_valid_python():
    places = read_places(ROOT)
    unfit = []
    for mutant in MUTANTS:
        try:
            _, text = mutant.edit(places)
            ast.parse(text)
        except (LookupError, SyntaxError) as error:
            unfit.append(f"{mutant.fault}: {error}")

    assert len(MUTANTS) >= 100
    assert unfit == []  # after a renaming: `python tests/mutants.py --anchor`; after a rewrite adapt `old` and `new`


def test_every_deliberate_fault_is_described_once_and_names_tests_that_exist():
    tests = {path for mutant in MUTANTS for path in mutant.test_paths}

    assert [fault for fault, times in Counter(mutant.fault for mutant in MUTANTS).items() if times > 1] == []
    assert all(mutant.tests for mutant in MUTANTS)
    assert [path for path in tests if not (ROOT / path).is_file()] == []


def test_the_page_about_testing_explains_each_fault_that_no_test_can_notice():
    page = (ROOT / "docs/testing.md").read_text()
    equivalent = [mutant.fault for mutant in MUTANTS if mutant.equivalent]

    assert equivalent
    assert [fault for fault in equivalent if fault not in page] == []
