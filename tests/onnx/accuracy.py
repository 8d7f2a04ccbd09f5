#!/usr/bin/env python3
"""accuracy.py TVMC MODEL.onnx...: how far from the exact results each model's are, ours and another runtime's.

Beside NAME.onnx (or NAME.fixed.onnx, NAME.dyn.onnx) lies NAME.npz: arrays in_* and the other runtime's out_*. What is exact enough is
the same model in float64, run by ONNX's reference evaluator. A line a model: the greatest absolute error of all outputs, ours and
theirs. Needs numpy and onnx. Exit code 1 when a model fails, or when our error is more than twice theirs and more than a millionth
of the output's greatest value (below that, which is nearer is chance).
"""
import argparse, os, re, subprocess, sys, tempfile
import numpy as np, onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

# Operators with inputs that stay float32, by position.
FLOAT32_INPUTS = {"Resize": (1, 2), "Upsample": (1,), "NonMaxSuppression": (3, 4)}

def widen_tensor(t):
    if t.data_type == TensorProto.FLOAT:
        t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(t).astype(np.float64), t.name))

def widen_type(t):
    if t.HasField("tensor_type") and t.tensor_type.elem_type == TensorProto.FLOAT:
        t.tensor_type.elem_type = TensorProto.DOUBLE
    elif t.HasField("sequence_type"):
        widen_type(t.sequence_type.elem_type)
    elif t.HasField("optional_type"):
        widen_type(t.optional_type.elem_type)

def widen_attribute(node, a):
    if a.type == onnx.AttributeProto.TENSOR:
        widen_tensor(a.t)
    elif a.type == onnx.AttributeProto.GRAPH:
        widen(a.g)
    elif a.name in ("to", "dtype") and a.i == TensorProto.FLOAT:
        a.i = TensorProto.DOUBLE
    elif node.op_type == "Constant" and a.name in ("value_float", "value_floats"):
        value = np.array(a.f if a.name == "value_float" else list(a.floats), np.float64)
        a.CopyFrom(helper.make_attribute("value", numpy_helper.from_array(value)))

def widen(graph):
    """float32 becomes float64 everywhere."""
    for t in graph.initializer:
        widen_tensor(t)
    for v in [*graph.input, *graph.output, *graph.value_info]:
        widen_type(v.type)
    nodes = []
    for number, node in enumerate(graph.node):
        for a in node.attribute:
            widen_attribute(node, a)
        for k in FLOAT32_INPUTS.get(node.op_type, ()):
            if k < len(node.input) and node.input[k]:
                narrow = f"{node.input[k]}/float32/{number}/{k}"
                nodes.append(helper.make_node("Cast", [node.input[k]], [narrow], to=TensorProto.FLOAT))
                node.input[k] = narrow
        if node.op_type == "BatchNormalization" and not any(a.name == "training_mode" and a.i for a in node.attribute):
            # The evaluator takes older versions for training, unless nothing of the input's own mean is mixed in.
            kept = [a for a in node.attribute if a.name != "momentum"] + [helper.make_attribute("momentum", 1.0)]
            del node.attribute[:]
            node.attribute.extend(kept)
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)

def exact(path, inputs):
    model = onnx.load(path)
    widen(model.graph)
    known = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in known]
    feed = {n: a.astype(np.float64) if a.dtype == np.float32 else a for n, a in zip(names, inputs)}
    return ReferenceEvaluator(model).run(None, feed)

def ours(tvmc, path, inputs, count):
    with tempfile.TemporaryDirectory() as folder:
        np.savez(f"{folder}/in.npz", **{f"input_{i}": a for i, a in enumerate(inputs)})
        command = [tvmc, "run", path, "--inputs", f"{folder}/in.npz", "--outputs", f"{folder}/out.npz"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        with np.load(f"{folder}/out.npz") as z:
            return [z[f"output_{i}"] for i in range(count)]

def error(got, want):
    pairs = [(np.asarray(g), np.asarray(w)) for g, w in zip(got, want) if np.asarray(w).size and np.asarray(w).dtype.kind == "f"]
    return max((float(np.abs(g.astype(np.float64) - w).max()) for g, w in pairs), default=0.0)

def compare(tvmc, path):
    with np.load(re.sub(r"(\.fixed|\.dyn)?\.onnx$", ".npz", path)) as z:
        inputs = [z[k] for k in z.files if k.startswith("in_")]
        theirs = [z[k] for k in z.files if k.startswith("out_")]
    want = exact(path, inputs)
    mine, other = error(ours(tvmc, path, inputs, len(want)), want), error(theirs, want)
    greatest = max((float(np.abs(w).max()) for w in want if np.asarray(w).size and np.asarray(w).dtype.kind == "f"), default=1.0)
    good = mine <= max(2 * other, 1e-6 * greatest)
    return f"ours {mine:.2e}  theirs {other:.2e}  greatest value {greatest:.2e}{'' if good else '  WORSE'}", good

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("tvmc"); parser.add_argument("models", nargs="+")
args = parser.parse_args(); failed = 0
for model in args.models:
    try:
        line, good = compare(args.tvmc, model)
    except subprocess.CalledProcessError as e:
        line, good = f"FAILS {e.stderr.strip()[:300]}", False
    except Exception as e:
        line, good = f"no exact results: {type(e).__name__}: {str(e)[:200]}", False
    print(f"{os.path.basename(model):36s} {line}", flush=True); failed += not good
sys.exit(failed > 0)
