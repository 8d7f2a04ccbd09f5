#!/usr/bin/env bash
# Runs ONNX's own node cases and compares with not_passing.tsv, then tries every operator with every element type and
# compares with the table of the documentation. TVM_BLESS=1 rewrites list and table.
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

probes=target/onnx-probes
table=tvm-build/src/import/onnx/support.md
[ -d "$probes" ] || "$venv/bin/python" tests/onnx/support.py probes "$cases" "$probes"
target/debug/tvmc onnx-suite "$probes" --check --json "$probes.json" >/dev/null || true
"$venv/bin/python" tests/onnx/support.py table "$probes.json" "$probes.md"
if [ -n "${TVM_BLESS:-}" ]; then
  cp "$probes.md" "$table"
elif ! diff -u "$table" "$probes.md"; then
  echo "error: $table is not true any more; TVM_BLESS=1 tests/onnx/run.sh writes it anew" >&2
  exit 1
fi
echo "the table of supported operators is true"
