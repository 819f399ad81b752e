"""Arguments that several commands take."""

import pytest

from alma.cli.arguments import parse_seeds, parse_setting


def test_seeds():
    assert parse_seeds("0..3") == [0, 1, 2, 3]
    assert parse_seeds("5,1") == [5, 1]


@pytest.mark.parametrize("text", ["", "x", "1,1", "3..2", "1,,2"])
def test_seeds_that_make_no_sense(text):
    with pytest.raises(ValueError, match="write seeds as"):
        parse_seeds(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.5", 0.5),
        ("2,5", (2, 5)),
        ("2..5", (2, 5)),
        ("[2, 5]", (2, 5)),
        ("0.25..0.4", (0.25, 0.4)),
        ("1,0.05,0", (1, 0.05, 0)),
        ("sz", "sz"),
        ("marine+zergling", "marine+zergling"),
        ("a..b", "a..b"),
        ("2..", "2.."),
        ("1..2..3", "1..2..3"),
        ("1,2..3", "1,2..3"),
    ],
)
def test_settings(text, value):
    assert parse_setting(f"option={text}") == ("option", value)
