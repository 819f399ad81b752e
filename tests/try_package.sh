#!/usr/bin/env bash
# try_package.sh FILE: installs a wheel or source distribution into a new environment and uses it from an empty folder.
set -euo pipefail
file=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"${PYTHON:-python3}" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$file"
mkdir "$folder/empty"
cd "$folder/empty"
unset PYTHONPATH
alma=$folder/venv/bin/alma
"$alma" --version
"$alma" evaluate --episodes 32
"$alma" watch --episodes 1 --no-open
"$alma" demo --preset tiny --steps 2048 --episodes 16
for expected in replay.html demo/save-the-city.gif demo/run/policy.safetensors; do
  [ -s "$expected" ] || { echo "$expected is missing" >&2; exit 1; }
done
echo "$(basename "$file") installs and works"
