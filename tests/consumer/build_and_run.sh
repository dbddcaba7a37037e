#!/usr/bin/env bash
# Builds tests/consumer, C++ and C, against plumbline and runs it on a case; the last line printed is its loss.
#   build_and_run.sh pkg-config SOURCE BUILD CASE   installs BUILD into a scratch folder and finds it there
#   build_and_run.sh cmake SOURCE BUILD CASE        the same by find_package
#   build_and_run.sh c SOURCE BUILD CASE            the C program and that of docs/c.md, with a C compiler and pkg-config alone
#   build_and_run.sh subproject SOURCE BUILD CASE   takes SOURCE in as a Meson subproject
set -euo pipefail
how=$1 source=$2 build=$3 a_case=$4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$source"/tests/consumer/{main.cpp,c_program.c,meson.build,CMakeLists.txt} "$scratch"

quietly() { "$@" >"$scratch/log" 2>&1 || { tail -50 "$scratch/log"; exit 1; }; }

install_here() {  # sets root, libdir
  quietly meson install -C "$build" --no-rebuild --destdir "$scratch/root"
  local pc
  pc=$(find "$scratch/root" -name plumbline.pc)
  libdir=$(dirname "$(dirname "$pc")")
  sed -i "s#^prefix=#prefix=$scratch/root#" "$(dirname "$pc")"/plumbline*.pc
  export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
}

case $how in
  pkg-config)
    install_here
    quietly meson setup "$scratch/out" "$scratch" --wrap-mode=nofallback
    quietly ninja -C "$scratch/out"
    ;;
  cmake)
    install_here
    quietly cmake -S "$scratch" -B "$scratch/out" -DCMAKE_PREFIX_PATH="$(dirname "$(dirname "$libdir")")" \
      -Dplumbline_DIR="$libdir/cmake/plumbline"
    quietly cmake --build "$scratch/out"
    ;;
  c)
    install_here
    # shellcheck disable=SC2046
    quietly "${CC:-cc}" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Wpedantic -Werror "$scratch/c_program.c" \
      -o "$scratch/c_program" $(pkg-config --cflags --libs plumbline-c) -lm -pthread
    "$scratch/c_program" "$scratch/c_program.safetensors"
    # The program that docs/c.md shows.
    sed -n '/^```c$/,/^```$/p' "$source/docs/c.md" | sed '/^```/d' >"$scratch/shown.c"
    # shellcheck disable=SC2046
    quietly "${CC:-cc}" -std=c11 "$scratch/shown.c" -o "$scratch/shown" $(pkg-config --cflags --libs plumbline-c)
    "$scratch/shown" | tee "$scratch/printed"
    grep -qx FAIL "$scratch/printed"
    exit
    ;;
  subproject)
    mkdir "$scratch/subprojects"
    ln -s "$source" "$scratch/subprojects/plumbline"
    # Unoptimised: this asks whether it builds and runs, not how fast.
    quietly meson setup "$scratch/out" "$scratch" -Doptimization=0 -Ddebug=false -Dplumbline:optimization=0 \
      -Dplumbline:debug=false -Dplumbline:default_library=static
    quietly ninja -C "$scratch/out"
    ;;
esac
"$scratch/out/c_program" "$scratch/c_program.safetensors"
"$scratch/out/consumer" "$a_case"
