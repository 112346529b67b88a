#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The steps of the tests of the CANN prefix: steps.sh STEP WORK_DIR. CMakeLists.txt sets the
# variables.
set -euo pipefail

step=$1
work=$2
here=$(cd "$(dirname "$0")" && pwd)
prefix=$work/prefix
unset LD_LIBRARY_PATH ASCEND_HOME_PATH ASCEND_OPP_PATH

# Programs are built where nothing of this tree is near.
outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT

fail() {
  echo "failed: $*" >&2
  exit 1
}

# The documented way, in a folder of its own: build_sample older|newer SAMPLE [CMAKE_ARGUMENT...]
build_sample() {
  cp -r "$SOURCE_DIR/examples/cann" "$outside/$1"
  # shellcheck disable=SC2016: CMake's variable
  local both='libopapi_math.so ${ASCEND_PATH}/lib64/libopapi_transformer.so'
  [[ $1 == older ]] || sed -i "s|libopapi.so|$both|" "$outside/$1/CMakeLists.txt"
  mkdir "$outside/$1/build"
  cd "$outside/$1/build"
  "$CMAKE" .. -G "Unix Makefiles" -DSAMPLE="$2" -DCMAKE_CXX_COMPILER="$CXX" \
    -DCMAKE_SKIP_RPATH=TRUE "${@:3}" >configure.log 2>&1 || { cat configure.log; fail "$1"; }
  make >make.log 2>&1 || { cat make.log; fail "$1"; }
  ! grep --ignore-case warning make.log configure.log || fail "$1: warnings"
}

# Without set_env.sh the loader has no folder to look in.
refuses_without_environment() {
  if (unset LD_LIBRARY_PATH && "$1") >/dev/null 2>&1; then
    fail "$1 starts without LD_LIBRARY_PATH: a path of the build is in it"
  fi
}

case $step in
  install)
    # The prefix is moved after the installation: nothing may remember the first place.
    rm -rf "$work"
    mkdir -p "$work"
    "$CMAKE" --install "$BUILD_DIR" --config "$CONFIG" --component cann --prefix "$work/first"
    mv "$work/first" "$prefix"
    if remembers=$(grep --recursive --files-with-matches --fixed-strings --exclude='*.so*' \
      -e "$work" -e "$BUILD_DIR" -e "$SOURCE_DIR" "$prefix"); then
      fail "paths of the build in $remembers"
    fi
    ! readelf --dynamic "$prefix"/lib64/*.so | grep -E 'R(UN)?PATH' | grep --invert-match \
      --fixed-strings '[$ORIGIN]' || fail "run paths of the build"
    ;;

  layout)
    while read -r kind path; do
      path=${path/ARCH/$ARCH}
      case $kind in
        file) [[ -f $prefix/$path && ! -L $prefix/$path ]] || fail "no regular file $path" ;;
        link) [[ -L $prefix/$path && -e $prefix/$path ]] || fail "no link $path, or to nothing" ;;
      esac
    done <"$here/layout.txt"
    dangling=$(find "$prefix" -xtype l)
    [[ -z $dangling ]] || fail "links to nothing: $dangling"
    # What is not asked for by name is not installed: it would meet a real toolkit's files.
    "$CMAKE" --install "$BUILD_DIR" --config "$CONFIG" --prefix "$outside/plain" >/dev/null
    strays=$(find "$outside/plain" -name 'acl*' -o -name 'libascendcl*' -o -name '*moeperm_cann*')
    [[ -z $strays ]] || fail "a plain installation has $strays"
    # A staged installation is the same, below DESTDIR.
    DESTDIR=$outside/stage "$CMAKE" --install "$BUILD_DIR" --config "$CONFIG" --component cann \
      --prefix /opt/cann >/dev/null
    diff --recursive --no-dereference "$prefix" "$outside/stage/opt/cann"
    if message=$("$prefix/bin/bisheng" x.cpp 2>&1); then
      fail "bisheng compiles"
    fi
    [[ $message == *"no device compiler"* ]] || fail "bisheng says: $message"
    ;;

  set_env)
    # From any folder, by any path, with strict shells, twice.
    ln -s "$prefix" "$outside/latest"
    mkdir "$outside/with space"
    cp -r --no-dereference "$prefix" "$outside/with space/cann"
    checks='
      set -euo pipefail
      [[ $ASCEND_HOME_PATH == "$root" && $ASCEND_TOOLKIT_HOME == "$root" ]]
      [[ $ASCEND_OPP_PATH == "$root/opp" ]]
      [[ ":$LD_LIBRARY_PATH:" == *":$root/lib64:"* && $LD_LIBRARY_PATH != *: ]]
      [[ ":$PATH:" == *":$root/bin:"* && -x $(command -v bisheng) ]]
      [[ -n $ASCEND_AICPU_PATH && -n $TOOLCHAIN_HOME ]]
      [[ -z $(declare -F) ]]'
    for root in "$prefix" "$outside/latest" "$outside/with space/cann"; do
      for script in set_env.sh bin/setenv.bash; do
        for from in / "$root" "$root/lib64"; do
          path=$(realpath --no-symlinks --relative-to="$from" "$root/$script")
          [[ $root == */latest && $from != / ]] && path=$root/$script  # .. leaves the link
          root=$root path=$path bash --norc -euo pipefail -c "
            cd '$from'; source \"\$path\"; before=\$LD_LIBRARY_PATH; source \"\$path\"
            [[ \$before == \$LD_LIBRARY_PATH ]]; $checks" ||
            fail "source $path from $from"
        done
      done
    done
    LD_LIBRARY_PATH=/a:/b bash -euc \
      "source '$prefix/set_env.sh'; [[ \$LD_LIBRARY_PATH == *:/a:/b ]]" ||
      fail "LD_LIBRARY_PATH was lost"
    ;;

  headers)
    # Each on its own, under the strictest warnings; acl.h from C as well.
    cd "$prefix/include"
    mapfile -t headers < <(find . -name '*.h' -printf '%P\n' | sort)
    ((${#headers[@]} >= 15)) || fail "${#headers[@]} headers"
    flags=(-Wall -Wextra -Wpedantic -Wshadow -Werror -fsyntax-only -I "$prefix/include")
    for header in "${headers[@]}"; do
      for standard in c++11 c++17 gnu++17 c++20; do
        echo "#include \"$header\"" | "$CXX" -std="$standard" "${flags[@]}" -x c++ - ||
          fail "$header is no $standard"
      done
      [[ $header != aclnn/opdev/fp16_t.h ]] || continue  # a C++ class
      printf '#include "%s"\ntypedef int of_a_file;\n' "$header" |
        "$CC" -std=c11 "${flags[@]}" -x c - || fail "$header is no C11"
    done
    # All together in two files of a program: nothing is defined twice, and no name is taken that
    # programs use for their own.
    printf '#include "%s"\n' "${headers[@]}" >"$outside/a.cpp"
    cp "$outside/a.cpp" "$outside/b.cpp"
    cat "$here/names.inc" >>"$outside/a.cpp"
    "$CXX" -std=c++11 -Wall -Wextra -Werror -I "$prefix/include" "$outside/a.cpp" "$outside/b.cpp" \
      -o "$outside/names"
    "$outside/names"
    ;;

  declarations)
    # What is declared is exported, and the reverse.
    cd "$prefix/include"
    declared=$(find . -name '*.h' ! -name fp16_t.h -exec sed 's|//.*||' {} + |
      grep -oE '\b[aA]cl[A-Za-z0-9]*\(' | tr -d '(' | LC_ALL=C sort -u)
    diff --label declared --label exported <(echo "$declared") "$here/exported_symbols.txt" ||
      fail "the headers and the library differ"
    ;;

  dlopen)
    # As programs look functions up by name; a name over all libraries has one address.
    "$CC" -std=c11 -Wall -Wextra -Werror "$here/dlopen_test.c" -o "$outside/dlopen_test" -ldl
    libraries=("$prefix"/lib64/libopapi_*.so "$prefix"/lib64/lib{opapi,ascendcl,acl_rt,nnopbase}.so
      "$prefix/opp/vendors/custom_transformer/op_api/lib/libcust_opapi.so")
    ((${#libraries[@]} == 8)) || fail "libraries: ${libraries[*]}"
    cd /
    "$outside/dlopen_test" "$here/exported_symbols.txt" "${libraries[@]}"
    # Each alone, in a process of its own.
    for library in "${libraries[@]}"; do
      "$outside/dlopen_test" "$here/exported_symbols.txt" "$library"
    done
    ;;

  permute_sample | grad_sample)
    sample=moe_token_permute_with_routing_map
    [[ $step == permute_sample ]] || sample+=_grad
    source "$prefix/set_env.sh"
    build_sample older "$sample"
    refuses_without_environment ./bin/opapi_test
    ./bin/opapi_test | tee output
    grep --quiet "as expected" output || fail "nothing was compared"
    # The newer link line, optimised.
    build_sample newer "$sample" -DCMAKE_BUILD_TYPE=Release
    refuses_without_environment ./bin/opapi_test
    ./bin/opapi_test >output || { cat output; fail "the newer link line"; }
    ;;

  by_hand)
    source "$prefix/set_env.sh"
    cp "$SOURCE_DIR"/examples/cann/*.{h,cpp} "$outside"
    cd "$outside"
    number=0
    while read -r line; do
      [[ -n $line && $line != "#"* ]] || continue
      # As in a script of a user's: the variables of the environment, unquoted.
      eval "$CXX -o by_hand moe_token_permute_with_routing_map.cpp $line"
      ./by_hand >output || { cat output; fail "$line"; }
      grep --quiet "as expected" output || fail "nothing was compared"
      rm by_hand
      number=$((number + 1))
    done <"$here/link_lines.txt"
    ((number >= 6)) || fail "$number lines"
    echo "$number link lines"
    ;;

  moved)
    # A program that was built before the prefix moved runs with the new environment.
    cp -r --no-dereference "$prefix" "$outside/before"
    (source "$outside/before/set_env.sh" &&
      build_sample older moe_token_permute_with_routing_map)
    mv "$outside/before" "$outside/after"
    source "$outside/after/set_env.sh"
    "$outside/older/build/bin/opapi_test"
    ;;

  scenarios)
    source "$prefix/set_env.sh"
    cp "$SOURCE_DIR/examples/cann/sample.h" "$here"/*_program.cpp "$outside"
    cd "$outside"
    programs=(*_program.cpp)
    for program in "${programs[@]}"; do
      "$CXX" -std=c++11 -Wall -Wextra -Werror -O1 -g "$program" -o "${program%.cpp}" \
        -I "$ASCEND_HOME_PATH/include" -I "$ASCEND_HOME_PATH/include/aclnnop" \
        -L "$ASCEND_HOME_PATH/lib64" -lopapi_transformer -lascendcl -lnnopbase -lpthread
      "./${program%.cpp}"
    done
    ;;

  *) fail "no step $step" ;;
esac
exit 0
