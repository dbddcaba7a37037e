#!/usr/bin/env bash
# Builds tests/consumer against plumbline and runs it on a case; the last line printed is its loss.
#   build_and_run.sh pkg-config SOURCE BUILD CASE   installs BUILD into a scratch folder and finds it there
#   build_and_run.sh subproject SOURCE BUILD CASE   takes SOURCE in as a Meson subproject
set -euo pipefail
how=$1 source=$2 build=$3 a_case=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$source/tests/consumer/main.cpp" "$source/tests/consumer/meson.build" "$scratch"
if [[ $how == pkg-config ]]; then
  meson install -C "$build" --no-rebuild --destdir "$scratch/root" >"$scratch/install.log"
  pc=$(find "$scratch/root" -name plumbline.pc)
  libdir=$(dirname "$(dirname "$pc")")
  sed -i "s#^prefix=#prefix=$scratch/root#" "$pc"
  PKG_CONFIG_PATH=$(dirname "$pc") meson setup "$scratch/out" "$scratch" --wrap-mode=nofallback >"$scratch/setup.log" ||
    { cat "$scratch/setup.log"; exit 1; }
  export LD_LIBRARY_PATH=$libdir
else
  mkdir "$scratch/subprojects"
  ln -s "$source" "$scratch/subprojects/plumbline"
  # Unoptimised: this asks whether it builds and runs, not how fast.
  meson setup "$scratch/out" "$scratch" -Doptimization=0 -Ddebug=false -Dplumbline:optimization=0 -Dplumbline:debug=false \
    -Dplumbline:default_library=static >"$scratch/setup.log" || { cat "$scratch/setup.log"; exit 1; }
fi
ninja -C "$scratch/out" >"$scratch/build.log" || { tail -50 "$scratch/build.log"; exit 1; }
"$scratch/out/consumer" "$a_case"
