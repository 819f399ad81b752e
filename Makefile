# Three commands matter: `make demo`, `make check` (under a minute) and `make test` (everything). Each sets itself up in
# .venv first; a second call reuses it. `make docs`, `make package`, `make test-newest` and `make test-oldest` belong to a
# release.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo check test test-ray torture docs package test-newest test-oldest test-browser chromium setup lock clean

demo: setup
	$(BIN)/alma demo

# Linters, types, and the tests that compile next to nothing.
QUICK := tests/test_layers.py tests/test_fidelity.py tests/task/test_registry.py tests/task/test_task.py \
	tests/training/test_options.py tests/learning/test_schedules.py tests/tasks/save_the_city/test_rules.py \
	tests/tasks/starcraft/test_rules.py tests/cli/test_arguments.py tests/cli/test_help.py tests/cli/test_resume.py \
	tests/runs/test_sinks.py tests/runs/test_progress.py tests/reproduce/test_figures.py tests/viewer/test_page.py \
	tests/viewer/test_page_data.py

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist loadfile $(QUICK)

test: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist loadfile

# The tests on a real Ray cluster of two nodes on this machine. Ray (240 MB) is no part of the set-up; once it is there,
# `make test` runs them too.
test-ray: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --editable '.[ray]'
	$(BIN)/pytest tests/launch/test_ray.py

# The documentation site, into docs/_build/html. A broken link inside of it is an error. Notebooks are executed, unless
# nothing has changed since the last time (docs/_cache).
docs: setup
	$(BIN)/python -m sphinx -W --keep-going --quiet -b html docs docs/_build/html

# Kills, damaged files, full disks, shuffled arguments: about half an hour. `make test` runs a small part of it.
torture: setup
	PYTHONPATH=studies $(BIN)/python -m torture

# What would be published: a source distribution and a wheel, in dist. Each is installed, with the newest packages that
# fit, into an environment of its own, and tried from an empty folder.
package: setup
	rm -rf dist build
	$(BIN)/python -c 'from setuptools import build_meta; build_meta.build_sdist("dist"); build_meta.build_wheel("dist")'
	for file in dist/*; do bash tests/try_package.sh "$$PWD/$$file" || exit 1; done

# The tests on other Pythons, with the newest versions of all packages; and with the oldest that pyproject.toml allows.
# uv finds or downloads the Pythons, which can be paths too. TESTS="$(QUICK)" runs less.
PYTHONS ?= 3.11 3.12 3.13
TESTS ?= tests
UV := .venv-uv/bin/uv
EXTRAS := .[plots,video,pettingzoo,slurm,tune,docs,dev]

test-newest: $(UV)
	for version in $(PYTHONS); do \
		$(UV) venv --quiet --clear --python $$version .venv-other && \
		$(UV) pip install --quiet --python .venv-other --upgrade --editable '$(EXTRAS)' && \
		.venv-other/bin/python -m pytest -n auto --dist loadfile $(TESTS) || exit 1; \
	done

test-oldest: $(UV)
	$(UV) venv --quiet --clear --python 3.11 .venv-other
	$(UV) pip install --quiet --python .venv-other --resolution lowest-direct --editable '$(EXTRAS)'
	.venv-other/bin/python -m pytest -n auto --dist loadfile $(TESTS)

$(UV):
	$(PYTHON) -m venv .venv-uv
	.venv-uv/bin/python -m pip install --quiet --disable-pip-version-check uv

# `make test` runs these too, where there is a Chromium.
test-browser: setup
	@command -v chromium || command -v chromium-browser || command -v google-chrome || $(MAKE) --no-print-directory chromium
	$(BIN)/pytest tests/viewer

chromium:
	@if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then apt-get update && apt-get install -y chromium; \
	else echo "install Chromium first, for example: sudo apt-get install chromium"; exit 1; fi

setup: $(READY)

# Made last, so that an interrupted set-up is done again. The lock names everything, so pip need not look for what packages
# ask for: older pips find a newer release than the pinned one where a package asks for an extra of it.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "alma needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	$(BIN)/python -m pip check --disable-pip-version-check
	touch $(READY)

# Pin the newest versions that fit pyproject.toml, for every Python and platform we support.
lock: $(UV)
	$(UV) pip compile --universal --fork-strategy fewest --python-version 3.11 --generate-hashes --no-emit-index-url \
		--upgrade --extra plots --extra video --extra pettingzoo --extra slurm --extra tune --extra docs --extra dev --custom-compile-command "make lock" \
		--output-file requirements.lock pyproject.toml requirements.build

clean:  # what can be made again; runs are kept
	rm -rf .venv .venv-uv .venv-other demo build dist docs/_build docs/_cache
