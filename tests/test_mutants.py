"""The table of deliberate faults fits the code and the page about testing; `just mutants` makes the faults."""

import ast
from collections import Counter

from mutants import ROOT, read_mutants

MUTANTS = read_mutants()


def test_every_deliberate_fault_applies_once_and_is_valid_python():
    unfit = []
    for mutant in MUTANTS:
        text = (ROOT / "kaiza" / mutant.file).read_text()
        if text.count(mutant.old) == 1:
            ast.parse(mutant.edit(text))
        else:
            unfit.append((mutant.file, mutant.fault))

    assert len(MUTANTS) >= 100
    assert unfit == []  # the code was changed: adapt `old` and `new` in tests/mutants.toml


def test_every_deliberate_fault_is_described_once_and_names_tests_that_exist():
    tests = {path for mutant in MUTANTS for path in mutant.test_paths}

    assert [fault for fault, times in Counter(mutant.fault for mutant in MUTANTS).items() if times > 1] == []
    assert all(mutant.tests for mutant in MUTANTS)
    assert [path for path in tests if not (ROOT / path).is_file()] == []


def test_the_page_about_testing_counts_the_faults_and_explains_those_that_no_test_can_notice():
    page = (ROOT / "docs/testing.md").read_text()
    equivalent = [mutant for mutant in MUTANTS if mutant.equivalent]

    assert f"Of {len(MUTANTS)} faults {len(MUTANTS) - len(equivalent)} are noticed" in page
    assert [mutant.fault for mutant in equivalent if mutant.fault not in page] == []
