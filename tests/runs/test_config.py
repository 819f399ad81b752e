"""What decides the course of a run, as a checkpoint remembers it."""

from dataclasses import replace
from pathlib import Path

import pytest

from alma.runs.config import RunConfig, check_unedited, learning_config
from alma.training.options import with_overrides

CONFIG = RunConfig("save-the-city", preset="tiny")
FILE, CHECKPOINT = Path("config.json"), Path("000000001024.ckpt")


def test_a_checkpoint_of_an_earlier_version_goes_on_with_the_defaults_of_new_options():
    trained = learning_config(CONFIG)
    del trained["options"]["allocator"]["exploration"]
    check_unedited(CONFIG, FILE, trained, CHECKPOINT)
    other = replace(CONFIG, options=with_overrides(CONFIG.options, {"allocator.exploration.kind": "noise"}))
    with pytest.raises(ValueError, match=r"allocator\.exploration\.kind was 'epsilon' and is 'noise'"):
        check_unedited(other, FILE, trained, CHECKPOINT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, r"000000001024\.ckpt has a configuration that cannot be read: seed must lie between"),
        ({"method": False}, r"000000001024\.ckpt has a configuration that cannot be read: method must be text"),
        ({"seed": 7}, r"config\.json was edited since the checkpoint 000000001024\.ckpt was made: seed was 7 and is 0"),
    ],
)
def test_a_configuration_that_is_damaged_or_differs_is_told_with_the_file_that_has_it(changes, message):
    with pytest.raises(ValueError, match=message):
        check_unedited(CONFIG, FILE, {**learning_config(CONFIG), **changes}, CHECKPOINT)
