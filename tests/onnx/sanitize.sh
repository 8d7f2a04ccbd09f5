#!/usr/bin/env bash
# Runs ONNX cases with kernels that gcc's address and undefined-behaviour sanitizers watch.
#
#     tests/onnx/sanitize.sh [FOLDER OF CASES] [TEXT IN THEIR NAMES]
#
# Prints the cases that do not pass, and fails if there is one. Takes about 2 s a case.
set -uo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-tests/onnx/models}
filter=${2:-}

cargo build --quiet -p tvm-build --features cli --bin tvmc || exit 2
asan=$(gcc -print-file-name=libasan.so)
ubsan=$(gcc -print-file-name=libubsan.so)
export CC=gcc
export CFLAGS="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0

failed=0
count=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for case in "$folder"/*"$filter"*/; do
  [ -f "$case/model.onnx" ] || continue
  count=$((count + 1))
  # The program is not instrumented: the libraries must be there before it.
  outcome=$(LD_PRELOAD="$asan $ubsan" timeout 600 target/debug/tvmc onnx-case "$case" --poison 2>"$log")
  case "$outcome" in
    passed*) ;;
    *)
      failed=$((failed + 1))
      echo "$(basename "$case"): $outcome"
      grep -E 'ERROR|runtime error|SUMMARY' "$log" | head -5
      ;;
  esac
done
echo "$((count - failed)) passed, $failed failed"
[ "$failed" -eq 0 ]
