#!/usr/bin/env bash
# in_own_environment.sh WHAT BUILD PROGRAM SOURCE: runs tests of the Python package in a virtual environment made for
# them, which finds the package that BUILD has and gets everything else from PyPI.
#   package     pytest on tests/python, then the guide
#   torch, jax  the example that judges this framework's attention; 77, which is "skipped", where PyPI has none for us
set -euo pipefail
what=$1 build=$2 program=$(realpath "$3") source=$4
environment=$build/venv-$what
case $what in
  package) packages=(numpy mpmath ml_dtypes hypothesis pytest) ;;
  torch) packages=(numpy torch) ;;
  jax) packages=(numpy ml_dtypes jax) ;;
esac

pip() {
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@"
}

if [[ ! -f $environment/ready || $(<"$environment/ready") != "${packages[*]}" ]]; then
  "${PLUMBLINE_PYTHON:-python3}" -m venv --clear "$environment"
  # PyTorch for CPUs alone comes from an index of its own; what PyPI has needs 3 GB, which a long run alone may fetch.
  if [[ $what == torch ]] && pip numpy && pip torch --index-url https://download.pytorch.org/whl/cpu; then
    printf '%s' "${packages[*]}" >"$environment/ready"
  elif [[ $what == torch && -z ${PLUMBLINE_LARGE_DOWNLOADS:-} ]]; then
    echo "skipped: https://download.pytorch.org/whl/cpu cannot be reached; PLUMBLINE_LARGE_DOWNLOADS=1 takes PyPI's PyTorch, 3 GB"
    exit 77
  elif pip "${packages[@]}"; then
    printf '%s' "${packages[*]}" >"$environment/ready"
  else
    echo "could not install ${packages[*]} from PyPI into $environment (is PyPI reachable?)"
    [[ $what == package ]] && exit 1
    exit 77
  fi
fi
# The package by a path file: what is tested is what was just built.
purelib=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$build/bindings/python" >"$purelib/plumbline_build.pth"
unset PYTHONPATH
export PLUMBLINE_PROGRAM=$program PATH=$environment/bin:$PATH

if [[ $what == package ]]; then
  "$environment/bin/python" -m pytest -q -p no:cacheprovider "$source/tests/python"
  exec "$environment/bin/python" "$source/tests/guide_test.py" "$source/docs/five-minutes.md" "$source/docs/python.md"
fi
"$environment/bin/python" "$source/tests/python/arrays_of_$what.py"
exec "$environment/bin/python" "$source/examples/judge_$what.py"
