#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library exports what exported_symbols.txt lists, no more and no less.
#   check_exports.sh LIBRARY LIST [NM]
set -euo pipefail
export LC_ALL=C

library=$1
list=$2
nm=${3:-nm}

symbols=$("$nm" --dynamic --defined-only --demangle --without-symbol-versions "$library" |
  cut -d ' ' -f 3- | sort -u)
if ! difference=$(diff --unified=0 --label exported_symbols.txt --label "$library" \
  "$list" - <<<"$symbols"); then
  printf '%s\n' "$difference"
  printf '\n%s\n' "The exported symbols changed. A removed or changed one breaks programs that were
linked with an earlier release; a new one is a promise. Where the change is meant, update
$list."
  exit 1
fi
echo "$(wc -l <<<"$symbols") exported symbols, as listed"
