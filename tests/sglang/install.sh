#!/usr/bin/env bash
# install.sh VENV PYTHON: real SGLang for the tests, to run on this machine's CPU. Needs pip alone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
venv=$1
python=$2

if [ ! -x "$venv/bin/python" ]; then
  # Where python3 has no ensurepip (Debian without python3-venv) the outer pip installs into it.
  "$python" -m venv "$venv" 2>/dev/null || { rm -rf "$venv"; "$python" -m venv --without-pip "$venv"; }
fi
if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  pip=("$venv/bin/python" -m pip)
else
  pip=("$python" -m pip --python "$venv/bin/python")
fi

echo "Filling $venv with SGLang and torch (1.6 GB unpacked)"
"${pip[@]}" install --quiet -r "$here/requirements.txt"
# Their metadata asks for CUDA builds and for gigabytes that a CPU never loads.
"${pip[@]}" install --quiet --no-deps -r "$here/requirements-alone.txt"
