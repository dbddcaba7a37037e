#!/usr/bin/env bash
# pip_install.sh: `pip install .` into a clean virtual environment and the guide word for word, as a reader would. Part of
# ./dev soak: the library is compiled once more, though ccache has seen most of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
"${PLUMBLINE_PYTHON:-python3}" -m venv "$environment"
# A folder beside build/, so that paths are the same and ccache finds its objects.
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check . -Cbuild-dir=build-wheel
"$environment/bin/python" -m pip install --quiet --disable-pip-version-check hypothesis mpmath
unset PYTHONPATH PLUMBLINE_PROGRAM
export PATH=$environment/bin:$PATH
python -m compileall -q "$environment"/lib/python*/site-packages/plumbline
python tests/guide_test.py docs/five-minutes.md docs/python.md
# Fast enough to sit in every test; for people to look at.
python - <<'PYTHON'
import subprocess, sys, time
def seconds(code):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start
def call():
    import numpy, plumbline
    x = numpy.ones((2, 8), numpy.float32)
    start = time.perf_counter()
    for _ in range(1000):
        plumbline.evaluate("rms_norm", {"x": x}, threads=1)
    return time.perf_counter() - start
print("a small evaluation: %.3f ms" % call())
print("importing: %.3f s" % min(seconds("import plumbline") - seconds("pass") for _ in range(5)))
PYTHON
