#!/usr/bin/env python3
"""compare.py [--tolerance T] [--latency] TVMC MODEL.onnx...: compiles and runs each model and compares with what another runtime gave.

Beside NAME.onnx (or NAME.fixed.onnx, NAME.dyn.onnx) lies NAME.npz: arrays in_* and out_* in the order of the graph's inputs and outputs.
A line a model: seconds and processor seconds of import, passes, C compiler and one run; peak memory; the greatest difference, relative to
the greatest value of the output; with --latency the median of runs, ours and ONNX Runtime's on one thread. Needs numpy.

The tolerance is 1e-4: sums of a few thousand float32 products in another order differ by 1e-6, and a network of a hundred layers makes
some 1e-5 of it. Exit code 1 when a model fails or differs by more.
"""
import argparse, json, os, re, subprocess, sys, tempfile, time
import numpy as np

def difference(ours, theirs):
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
    if theirs.size == 0:
        return 0.0
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    worst = np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)
    return float(worst) if np.isfinite(worst) else float("inf")

def run(tvmc, model, tolerance):
    with np.load(re.sub(r"(\.fixed|\.dyn)?\.onnx$", ".npz", model)) as z:
        inputs = [z[k] for k in z.files if k.startswith("in_")]
        expected = [z[k] for k in z.files if k.startswith("out_")]
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/in.npz", **{f"input_{i}": a for i, a in enumerate(inputs)})
        start = time.time()
        child = subprocess.Popen([tvmc, "run", model, "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz"], stderr=subprocess.PIPE, text=True)
        message = child.stderr.read(); _, status, usage = os.wait4(child.pid, 0); child.returncode = status
        head = f"{time.time() - start:7.2f} s {usage.ru_utime + usage.ru_stime:7.2f} cpu s {usage.ru_maxrss // 1024:5d} MB"
        if status:
            return f"{head}  FAILS {message.strip()[:500]}", False, inputs
        with np.load(f"{folder}/out.npz") as z:
            worst = [difference(z[f"output_{i}"], e) for i, e in enumerate(expected)]
    wrong = [w for w in worst if isinstance(w, str) or w > tolerance]
    return f"{head}  {'DIFFERS ' + str(wrong) if wrong else f'{max(worst, default=0.0):.1e}'}", not wrong, inputs

def latency(tvmc, model, inputs):
    import onnxruntime
    bench = subprocess.run([tvmc, "bench", model, "--json", "--seconds", "1"], capture_output=True, text=True)
    options = onnxruntime.SessionOptions(); options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options); feed = dict(zip([i.name for i in session.get_inputs()], inputs)); times = []
    while len(times) < 3 or sum(times) < 1.0:
        start = time.perf_counter(); session.run(None, feed); times.append(time.perf_counter() - start)
    return f"  {bench.stdout.strip() or bench.stderr.strip()[:200]}  onnxruntime {1e3 * sorted(times)[len(times) // 2]:.3f} ms"

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--tolerance", type=float, default=1e-4); parser.add_argument("--latency", action="store_true")
parser.add_argument("tvmc"); parser.add_argument("models", nargs="+")
args = parser.parse_args(); failed = 0
for model in args.models:
    line, good, inputs = run(args.tvmc, model, args.tolerance)
    print(f"{os.path.basename(model):36s} {line}{latency(args.tvmc, model, inputs) if args.latency and good else ''}", flush=True); failed += not good
sys.exit(failed > 0)
