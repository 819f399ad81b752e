"""Search spaces: those that come with the package, and those of one's own."""

import pytest

from alma.training.options import with_overrides
from alma.training.presets import preset
from alma.tuning.spaces import Choices, Range, find_space, read_space


@pytest.fixture
def written(tmp_path):
    """Writes a space to a file."""

    def write(text, name="space.toml"):
        file = tmp_path / name
        file.write_text(text)
        return file

    return write


@pytest.mark.parametrize("task", ["save-the-city", "starcraft"])
@pytest.mark.parametrize("name", ["actors", "allocator"])
def test_spaces_of_the_package_lie_around_preset_fast(name, task):
    options = preset("fast", task)
    space = find_space(name)
    assert all(path.startswith((name, "exploration")) for path in space)
    for path, values in space.items():
        value = options
        for part in path.split("."):
            value = getattr(value, part)
        inside = value in values.values if isinstance(values, Choices) else values.low <= value <= values.high
        assert inside, f"{path} is {value} in preset fast"
        for end in values.ends:
            with_overrides(options, {path: end})


def test_both_levels_are_searched_together():
    assert find_space("both") == {**find_space("actors"), **find_space("allocator")}


def test_a_space_is_read_from_a_file(written):
    text = """
    actors.learning_rate = { low = 1e-4, high = 1e-2, log = true }
    [actors.n_step]
    low = 1
    high = 8
    [actors.networks.mixer]
    choices = ["sum", "qmix"]
    """
    assert find_space(str(written(text))) == {
        "actors.learning_rate": Range(1e-4, 1e-2, log=True),
        "actors.n_step": Range(1, 8),
        "actors.networks.mixer": Choices(("sum", "qmix")),
    }
    as_json = '{"actors.n_step": {"low": 1, "high": 8}}'
    assert read_space(written(as_json, "space.json")) == {"actors.n_step": Range(1, 8)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "names no option"),
        ("actors.n_steps = { low = 1, high = 2 }", "actors.n_steps: there is no option 'n_steps' here"),
        ("actors.n_step = { low = 1.5, high = 2 }", "actors.n_step must be a whole number, not 1.5"),
        ("actors.n_step = { low = 3, high = 3 }", "actors.n_step: low must be below high, not 3 and 3"),
        ("actors.gamma = { low = 0.0, high = 1.0, log = true }", "actors.gamma: low must be positive on a logarithmic"),
        ("actors.n_step = { choices = [3] }", "actors.n_step: choices must be two or more"),
        ("actors.n_step = { lowest = 3 }", "actors.n_step: write { low = ..., high = ..., log = true }"),
        ("actors.networks.mixer = { choices = ['sum', 'some'] }", "actors.networks.mixer must be one of"),
    ],
)
def test_a_space_that_makes_no_sense_is_refused_by_name(written, text, message):
    file = written(text)
    with pytest.raises(ValueError, match=r"space\.toml: ") as refused:
        read_space(file)
    assert message in str(refused.value)


def test_a_space_must_be_known():
    with pytest.raises(ValueError, match="unknown search space 'actor': choose from actors, allocator, both"):
        find_space("actor")
