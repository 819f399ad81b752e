"""What would be published: files in the wheel and in the source distribution, and one version everywhere."""

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import alma

ROOT = Path(__file__).parent.parent
BESIDES = ("pyproject.toml", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
BUILD = "from setuptools import build_meta as b; print(b.build_sdist('dist'), b.build_wheel('dist'), sep='\\n')"


def files_of_the_package():
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "alma").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The source distribution and the wheel, built from a copy of the sources."""
    copy = tmp_path_factory.mktemp("sources")
    shutil.copytree(ROOT / "alma", copy / "alma", ignore=shutil.ignore_patterns("__pycache__"))
    for name in BESIDES:
        shutil.copy(ROOT / name, copy)
    done = subprocess.run([sys.executable, "-c", BUILD], cwd=copy, capture_output=True, text=True, check=True)
    sdist, wheel = done.stdout.splitlines()[-2:]
    return copy / "dist" / sdist, copy / "dist" / wheel


def test_everything_is_in_the_wheel(built):
    names = {name for name in zipfile.ZipFile(built[1]).namelist() if ".dist-info/" not in name}
    assert names == files_of_the_package()


def test_everything_is_in_the_source_distribution(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert files_of_the_package() | set(BESIDES) <= names


def test_the_package_index_is_told_the_version_and_what_the_readme_says(built):
    wheel = zipfile.ZipFile(built[1])
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    told = Parser().parsestr(wheel.read(name).decode())
    assert told["Version"] == alma.__version__
    assert told["Description-Content-Type"] == "text/markdown"
    assert told.get_payload() == (ROOT / "README.md").read_text()


def test_citation_and_changelog_are_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [alma.__version__]
    assert f"\n## {alma.__version__}" in (ROOT / "CHANGELOG.md").read_text()
