#!/usr/bin/env bash
# Compares what this compiler prints in TVM 0.27's dialect with what TVM 0.27 itself makes of the same module.
# Skipped, and said so, when TVM's package cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/../.."
venv=target/oracle
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv" || { echo "no python3 with venv: the comparison with TVM is skipped"; exit 0; }
fi
if ! "$venv/bin/python" -c 'import tvm' 2>/dev/null; then
  "$venv/bin/pip" install -q apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post0 'numpy<2.5' scipy ml_dtypes ||
    { echo "TVM's package cannot be installed: the comparison with TVM is skipped"; exit 0; }
fi
cargo build -q -p tvm-build --features cli --bin tvmc
"$venv/bin/python" tests/oracle/compare.py target/debug/tvmc tests/files/tutorial/01_from_torch.py.txt
