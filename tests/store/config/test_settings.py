"""The stricter of two settings: merging never loosens, whichever place a value comes from."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiza.domain.paths.protected_names import is_secret
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.config.settings import DIRECTIONS, choose_stricter, is_valid
from kaiza.store.config.settings_layers import DEFAULT, SettingsLayers
from kaiza.store.config.settings_schema import SettingsFile
from kaiza.store.config.trusted_config import TrustedConfig

PATHS = ["a", "b", "b/.env", ".env", "c/d"]
VALUES = {
    "deny_read": st.lists(st.sampled_from(["a", "b/**", "c"]), unique=True),
    "allow_read": st.lists(st.sampled_from(PATHS), unique=True),
    "approval.require": st.sampled_from(["edit", "command", "signature"]),
    "approval.confirm": st.sampled_from(["yes", "id"]),
    "lock.release": st.sampled_from(["report", "person"]),
    "audit.sync": st.sampled_from(["batched", "every"]),
    "checks.seconds": st.integers(1, 3600),
    "checks.network": st.booleans(),
    "checks.writable": st.lists(st.sampled_from(["~/a", "/b"]), unique=True),
    "answers.bytes": st.integers(8_192, 163_840),
    "objects.keep": st.sampled_from(["7d", "30d", "8w", "90d", "20w"]),
}
SETTINGS = st.fixed_dictionaries({}, optional=VALUES)
ORDERS = {
    "approval.require": ["edit", "command", "signature"],
    "approval.confirm": ["yes", "id"],
    "lock.release": ["report", "person"],
    "audit.sync": ["batched", "every"],
    "objects.keep": ["7d", "30d", "8w", "90d", "20w"],
}


def is_as_strict(key, one, other):
    """Whether `one` allows nothing that `other` forbids."""
    if key == "deny_read":
        return set(one) >= set(other)
    if key in ("allow_read", "checks.writable"):
        return set(one) <= set(other)
    return (
        one <= other
        if key in ("checks.seconds", "checks.network", "answers.bytes")
        else ORDERS[key].index(one) >= ORDERS[key].index(other)
    )


def as_toml(values):
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())


def layers(*outside, adopted=(), file=(), is_foreign=False):
    configurations = [TrustedConfig(f"place {number}", values) for number, values in enumerate(outside)]
    return SettingsLayers(configurations, dict(adopted), as_toml(dict(file)), is_foreign)


def full(values):
    return {key: values.get(key, direction.default) for key, direction in DIRECTIONS.items()}


def test_every_setting_has_a_direction_and_the_same_default_as_the_schema():
    assert set(VALUES) == set(DIRECTIONS)
    for key, direction in DIRECTIONS.items():
        value = SettingsFile()
        for name in key.split("."):
            value = getattr(value, name)
        assert direction.default == value


@pytest.mark.parametrize("key", VALUES)
@given(data=st.data())
def test_the_stricter_of_two_values_is_as_strict_as_both_and_no_stricter(key, data):
    one, other = data.draw(VALUES[key]), data.draw(VALUES[key])
    merged = choose_stricter(key, one, other)

    assert is_as_strict(key, merged, one)
    assert is_as_strict(key, merged, other)
    assert merged == choose_stricter(key, other, one)
    assert choose_stricter(key, one, one) == (sorted(one) if isinstance(one, list) else one)


@given(adopted=SETTINGS, file=SETTINGS)
def test_without_configuration_the_stricter_of_file_and_adopted_value_is_in_force(adopted, file):
    values = layers(adopted=adopted, file=file).values_in_force()

    for key, value in values.items():
        assert value == choose_stricter(key, full(adopted)[key], full(file)[key])


@given(machine=SETTINGS, user=SETTINGS, adopted=SETTINGS, file=SETTINGS, is_foreign=st.booleans())
def test_no_place_loosens_what_another_one_sets(machine, user, adopted, file, is_foreign):
    values = layers(machine, user, adopted=adopted, file=file, is_foreign=is_foreign).values_in_force()

    for place in (machine, user, adopted, file):
        for key in place:
            assert is_as_strict(key, values[key], place[key])


@settings(max_examples=300)
@given(machine=SETTINGS, adopted=SETTINGS, file=SETTINGS, path=st.sampled_from(PATHS))
def test_a_path_that_one_place_denies_stays_denied(machine, adopted, file, path):
    merged = layers(machine, adopted=adopted, file=file).settings_in_force()
    readable = not is_secret(RelPath(tuple(path.split("/"))), merged.deny_read, merged.allow_read)
    for place in (machine, adopted, file):
        denied = layers(adopted=place, file=place).settings_in_force()
        denied_here = any(glob.matches(path.split("/")[:depth]) for glob in denied.deny_read for depth in (1, 2))
        if denied_here and path not in denied.allow_read:
            assert not readable


@given(machine=SETTINGS, adopted=SETTINGS, file=SETTINGS)
def test_a_foreign_workspace_can_only_restrict(machine, adopted, file):
    foreign = layers(machine, adopted=adopted, file=file, is_foreign=True).values_in_force()

    for key, base in layers(machine).values_in_force().items():
        assert is_as_strict(key, foreign[key], base)


@given(machine=SETTINGS, adopted=SETTINGS, file=SETTINGS)
def test_stricter_values_of_the_file_stay_in_force_without_the_file_once_they_are_adopted(machine, adopted, file):
    before = layers(machine, adopted=adopted, file=file)
    after = layers(machine, adopted={**adopted, **before.list_stricter()})

    for key, value in after.values_in_force().items():
        assert is_as_strict(key, value, before.values_in_force()[key])
    assert layers(machine, adopted={**adopted, **before.list_stricter()}, file=file).list_stricter() == {}


@given(machine=SETTINGS, adopted=SETTINGS, file=SETTINGS, is_foreign=st.booleans())
def test_what_waits_for_adoption_counts_once_the_file_is_adopted(machine, adopted, file, is_foreign):
    waiting = layers(machine, adopted=adopted, file=file, is_foreign=is_foreign).list_loosening()
    adopted_layers = layers(machine, adopted=file, file=file)

    assert adopted_layers.list_loosening() == []
    for setting in waiting:
        assert adopted_layers.values_in_force()[setting.key] == setting.wanted
        assert is_as_strict(setting.key, setting.in_force, setting.wanted)


def test_a_missing_file_is_no_stricter_file():
    assert SettingsLayers(adopted={"allow_read": [".env"], "checks.seconds": 600}).list_stricter() == {}


def test_a_denial_beats_the_exemption_of_another_place_unless_it_makes_the_same_one():
    inside = {"allow_read": ["a/x", "b/x"]}

    assert layers({"deny_read": ["a"]}, adopted=inside, file=inside).values_in_force()["allow_read"] == ["b/x"]
    assert layers({"deny_read": ["a"], "allow_read": ["a/x"]}, adopted=inside, file=inside).values_in_force()[
        "allow_read"
    ] == ["a/x"]


def test_each_setting_names_the_places_that_it_comes_from():
    listed = layers(
        {"approval.require": "command", "deny_read": ["a"]},
        {"approval.require": "edit", "lock.release": "report"},
        adopted={"checks.seconds": 10},
        file={"deny_read": ["b"], "checks.seconds": 20},
    ).list_in_force()

    assert {setting.key: setting.places for setting in listed} == {
        "approval.require": ["place 0"],
        "deny_read": ["place 0", "kaiza.toml"],
        "lock.release": ["place 1"],
        "checks.seconds": ["adopted"],
        "allow_read": [DEFAULT],
        "approval.confirm": [DEFAULT],
        "audit.sync": [DEFAULT],
        "checks.network": [DEFAULT],
        "checks.writable": [DEFAULT],
        "answers.bytes": [DEFAULT],
        "objects.keep": [DEFAULT],
    }


@pytest.mark.parametrize(
    "values",
    [[], {"surprise": 1}, {"deny_read": "a"}, {"deny_read": [1]}, {"approval.require": "nobody"},
     {"checks.seconds": "1"}, {"checks.seconds": True}, {"lock.release": None}, {"allow_read": [["a"]]}],
)  # fmt: skip
def test_values_of_another_form_are_invalid(values):
    assert not is_valid(values)


@given(SETTINGS)
def test_values_of_a_file_are_valid(values):
    assert is_valid(values)
