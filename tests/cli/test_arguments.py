"""Arguments that several commands take."""

import pytest

from alma.cli.arguments import parse_seeds


def test_seeds():
    assert parse_seeds("0..3") == [0, 1, 2, 3]
    assert parse_seeds("5,1") == [5, 1]


@pytest.mark.parametrize("text", ["", "x", "1,1", "3..2", "1,,2"])
def test_seeds_that_make_no_sense(text):
    with pytest.raises(ValueError, match="write seeds as"):
        parse_seeds(text)
