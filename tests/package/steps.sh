#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The steps of the package tests: steps.sh STEP WORK_DIR. CMakeLists.txt sets the variables.
set -euo pipefail

step=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)
prefix=$work/prefix

fail() {
  echo "failed: $*" >&2
  exit 1
}

configure() { # source build argument...
  "$CMAKE" -G "$GENERATOR" -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$LAUNCHER" "${@:3}"
}

needs() { # program library: whether the program loads it
  readelf --dynamic "$1" | grep NEEDED | grep --quiet --fixed-strings "$2"
}

case $step in
  install)
    # The prefix is moved after the installation: nothing may remember the first place.
    rm -rf "$work"
    "$CMAKE" --install "$BUILD_DIR" --config "$CONFIG" --prefix "$work/first"
    mv "$work/first" "$prefix"
    if remembers=$(grep --recursive --files-with-matches --fixed-strings \
      -e "$work" -e "$BUILD_DIR" -e "$SOURCE_DIR" "$prefix/$LIBDIR/cmake" \
      "$prefix/$LIBDIR/pkgconfig" "$prefix/include"); then
      fail "paths of the build in $remembers"
    fi
    if [[ -e $prefix/bin/moeperm ]]; then
      "$prefix/bin/moeperm" --version
    fi
    ;;

  cmake)
    configure "$here/consumer" "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix"
    "$CMAKE" --build "$work/consumer"
    for program in cpp_shared cpp_static c_shared c_static; do
      "$work/consumer/$program"
    done
    needs "$work/consumer/cpp_shared" libmoeperm.so.0 || fail "cpp_shared is not"
    needs "$work/consumer/cpp_static" libmoeperm && fail "cpp_static is not"
    # A caller that wants an incompatible version is told so.
    if configure "$here/consumer" "$work/newer" -DCMAKE_PREFIX_PATH="$prefix" \
      -DMOEPERM_WANTED=9.9 >"$work/newer.log" 2>&1; then
      fail "version 9.9 was found"
    fi
    ;;

  shared_only)
    # Users of the shared library need neither Highway nor oneTBB installed.
    without=(-DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_DISABLE_FIND_PACKAGE_hwy=ON
      -DCMAKE_DISABLE_FIND_PACKAGE_TBB=ON)
    configure "$here/consumer" "$work/shared" "${without[@]}" -DMOEPERM_COMPONENTS=
    "$CMAKE" --build "$work/shared"
    "$work/shared/cpp_shared"
    [[ ! -e $work/shared/cpp_static ]] || fail "a static library without its dependencies"
    configure "$here/consumer" "$work/shared" "${without[@]}" -DMOEPERM_COMPONENTS=shared
    if configure "$here/consumer" "$work/static" "${without[@]}" -DMOEPERM_COMPONENTS=static \
      >"$work/static.log" 2>&1; then
      fail "the static library was found without its dependencies"
    fi
    grep --quiet "the static library needs hwy and TBB" "$work/static.log" ||
      fail "an unclear message: $(cat "$work/static.log")"
    ;;

  pkg_config)
    export PKG_CONFIG_PATH=$prefix/$LIBDIR/pkgconfig
    read -ra flags <<<"$(pkg-config --cflags --libs moeperm)"
    "$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror "$here/consumer/app.c" "${flags[@]}" \
      -Wl,-rpath,"$(pkg-config --variable=libdir moeperm)" -o "$work/pc_shared"
    "$work/pc_shared"
    needs "$work/pc_shared" libmoeperm.so.0 || fail "pc_shared is not"

    read -ra flags <<<"$(pkg-config --static --cflags --libs moeperm |
      sed 's/-lmoeperm/-l:libmoeperm.a/')"
    "$CC" -std=c11 "$here/consumer/app.c" "${flags[@]}" -o "$work/pc_static"
    "$work/pc_static"
    needs "$work/pc_static" libmoeperm && fail "pc_static is not"
    [[ $(pkg-config --modversion moeperm) == "$("$work/pc_shared")" ]] || fail "versions differ"
    ;;

  readme)
    # The example of the README, compiled the way the README says.
    mkdir -p "$work/readme"
    sed -n '/^```cpp$/,/^```$/{/^```/!p}' "$SOURCE_DIR/README.md" >"$work/readme/example.inc"
    export PKG_CONFIG_PATH=$prefix/$LIBDIR/pkgconfig
    read -ra flags <<<"$(pkg-config --cflags --libs moeperm)"
    "$CXX" -std=c++20 -Wall -Wextra -I"$work/readme" "$here/consumer/readme.cpp" "${flags[@]}" \
      -Wl,-rpath,"$prefix/$LIBDIR" -o "$work/readme/app"
    "$work/readme/app"
    ;;

  subdirectory)
    configure "$here/subdirectory" "$work/subdirectory" -DMOEPERM_SOURCE_DIR="$SOURCE_DIR" \
      -DCMAKE_INSTALL_PREFIX="$work/subdirectory-prefix"
    "$CMAKE" --build "$work/subdirectory" --parallel 2
    "$work/subdirectory/app"
    # What the project has besides the library is no part of another project's build.
    "$CMAKE" --install "$work/subdirectory"
    [[ ! -e $work/subdirectory-prefix/include ]] || fail "the library's headers were installed"
    [[ ! -e $work/subdirectory/moeperm/tests ]] || fail "the library's tests were built"
    ;;

  *) fail "no step $step" ;;
esac
exit 0
