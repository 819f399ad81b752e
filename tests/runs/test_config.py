"""What decides the course of a run, as a checkpoint remembers it."""

from dataclasses import replace
from pathlib import Path

import pytest

from alma.runs.config import RunConfig, check_unedited, learning_config
from alma.training.options import with_overrides

CONFIG = RunConfig("save-the-city", preset="tiny")


def test_a_checkpoint_of_an_earlier_version_goes_on_with_the_defaults_of_new_options():
    trained = learning_config(CONFIG)
    del trained["options"]["allocator"]["exploration"]
    check_unedited(CONFIG, trained, Path("config.json"))
    other = replace(CONFIG, options=with_overrides(CONFIG.options, {"allocator.exploration.kind": "noise"}))
    with pytest.raises(ValueError, match=r"allocator\.exploration\.kind was 'epsilon' and is 'noise'"):
        check_unedited(other, trained, Path("config.json"))
