"""compare.py TVMC MODULE: the stages that tvmc prints equal, structurally, what TVM makes of the module.

Stages: the module itself, after LegalizeOps, after the zero pipeline. Exit code 1 names the stage that differs.
"""
import subprocess
import sys

import tvm
from tvm import relax

tvmc, path = sys.argv[1:]


def ours(*args):
    text = subprocess.run([tvmc, "show", path, "--dialect", "0.27", *args], check=True, capture_output=True, text=True).stdout
    return tvm.script.from_source("\n".join(l for l in text.splitlines() if not l.startswith(("from ", "import "))))


imported = ours()
stages = [
    ("imported", imported, ours()),
    ("LegalizeOps", relax.transform.LegalizeOps()(imported), ours("--pass", "LegalizeOps")),
    ("zero", relax.get_pipeline("zero")(imported), ours("--pipeline", "zero")),
]
failed = 0
for name, theirs, mine in stages:
    try:
        tvm.ir.assert_structural_equal(theirs, mine)
        print(f"{name}: structurally equal to TVM {tvm.__version__}")
    except ValueError as e:
        failed = 1
        print(f"{name}: DIFFERS from TVM {tvm.__version__}\n{e}")
sys.exit(failed)
