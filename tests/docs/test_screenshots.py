"""The screenshots in docs/ show the page as it is now; `python tests/screenshots.py` takes them."""

import pytest
import screenshots


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return screenshots.play_demo(tmp_path_factory.mktemp("demo") / "demo")


def test_every_screenshot_is_of_the_page_that_the_demo_makes_now(page):
    digest = screenshots.digest_of(page)

    assert {name: screenshots.read_digest(screenshots.DOCS / name) for name in screenshots.PICTURES} == dict.fromkeys(
        screenshots.PICTURES, digest
    ), "run `CI=true python tests/screenshots.py`"


def test_another_word_style_or_script_in_the_page_makes_the_screenshots_outdated(page):
    for change in (("Look at", "Look for"), ("--page:", "--Page:"), ("switchTheme", "changeTheme")):
        assert screenshots.digest_of(page.replace(*change)) != screenshots.digest_of(page)


def test_the_readme_shows_a_screenshot():
    readme = (screenshots.DOCS.parent / "README.md").read_text()

    assert "](docs/review-light.png)" in readme
