"""Options changed by their path."""

import pytest

from alma.training.options import with_overrides
from alma.training.presets import FAST


def test_options_are_changed_by_their_path():
    options = with_overrides(FAST, {"actors.networks.width": 32, "actors.gamma": 0.9, "steps": 5})
    assert (options.actors.networks.width, options.actors.gamma, options.steps) == (32, 0.9, 5)
    assert options.actors.networks.hidden == FAST.actors.networks.hidden
    assert options.allocator == FAST.allocator


def test_options_that_belong_together_are_changed_together():
    """Neither of the two would be allowed by itself."""
    overrides = {"collection.environments": 1024, "collection.steps_per_update": 1024, "collection.warmup": 20_480}
    assert with_overrides(FAST, overrides).collection.environments == 1024
    with pytest.raises(ValueError, match="steps_per_update must be at least the number of environments"):
        with_overrides(FAST, {"collection.environments": 1024})


def test_unknown_options_are_named():
    with pytest.raises(ValueError, match=r"no option 'widht' among .*width"):
        with_overrides(FAST, {"actors.networks.widht": 32})


def test_steps_are_rounded_up_to_whole_chunks():
    options = with_overrides(FAST, {"steps": 6_000, "report.chunk": 1_100, "collection.steps_per_update": 512})
    assert options.chunk_steps == 1_024
    assert options.whole_steps == 6_144
    assert with_overrides(options, {"steps": 6_144}).whole_steps == 6_144
