#!/usr/bin/env bash
# Runs ONNX's own node cases and compares with not_passing.tsv; TVM_BLESS=1 rewrites that list.
# Skipped, and said so, when ONNX's package cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=target/onnx-venv
cases=target/onnx-cases
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv" || { echo "no python3 with venv: ONNX's cases are skipped"; exit 0; }
fi
if ! "$venv/bin/python" -c 'import onnx' 2>/dev/null; then
  "$venv/bin/pip" install -q onnx==1.23.2 'numpy<2.5' ml_dtypes pillow ||
    { echo "ONNX's package cannot be installed: its cases are skipped"; exit 0; }
fi
if [ ! -f "$cases/written" ]; then
  "$venv/bin/python" tests/onnx/cases.py "$cases"
  touch "$cases/written"
fi
cargo build -q -p tvm-build --features cli --bin tvmc
target/debug/tvmc onnx-suite "$cases" --cache target/onnx-cache --expected tests/onnx/not_passing.tsv
