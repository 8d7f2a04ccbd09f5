#!/usr/bin/env python3
"""Compares the compiler with ONNX Runtime and ONNX's reference evaluator on random nodes and small graphs.

usage: fuzz.py DIR [--families a,b] [--count N] [--seed S] [--tvmc PATH] [--only CASE]      (needs onnx, onnxruntime, numpy)

Writes DIR/cases/<family>_<seed>_<i>/, in the layout of `tvmc onnx-suite`; `set_0` has what ONNX Runtime computes, or the
reference where ONNX Runtime refuses, `other/` what the reference computes where it differs. Models of several cases
(DIR/batches) are run first; the cases of those that fail are run each by itself. The same seed makes the same cases.
"""

import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import warnings

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from fuzzing import FAMILIES
from fuzzing.base import Random

BATCH = 12
# Operators of heads, whose sizes and numbers are fixed: the last axis, and of four the second.
HEADED = ("Attention", "MultiHeadAttention", "GroupQueryAttention", "RotaryEmbedding")
MODES = ["fixed", "symbolic", "symbolic", "mixed", "constant"]


def element(value):
    if value.dtype.kind in "OUS":
        return TensorProto.STRING
    return helper.np_dtype_to_tensor_dtype(value.dtype)


def tensor(value, name):
    return numpy_helper.from_array(np.ascontiguousarray(value).reshape(value.shape), name)


def placed(case, r):
    """Which inputs are constants, and the dimensions of the others."""
    mode = r.pick(MODES)
    constants, dims, symbols = set(case.constant), {}, {}
    for name, value in case.inputs.items():
        if mode == "constant" or mode == "mixed" and r.maybe(0.5):
            constants.add(name)
        elif mode == "symbolic" and name in case.sized and r.maybe(0.3):
            constants.add(name)
    for name, value in case.inputs.items():
        dims[name] = list(value.shape)
        if mode in ("symbolic", "mixed") and name not in case.sized:
            for i, d in enumerate(value.shape):
                of_heads = case.nodes[0].op_type in HEADED and (i + 1 == value.ndim or i == 1 and value.ndim == 4)
                kind = r.random() if d != 1 and not of_heads else 1.0
                if kind < 0.25:
                    dims[name][i] = symbols.setdefault(d, f"d{d}")
                elif kind < 0.75:
                    dims[name][i] = f"{name}_{i}"
    return mode, constants, dims


def model_of(parts):
    """A model of cases: (prefix, case, constants, dims, outputs or None)."""
    nodes, inputs, inits, outputs, opsets = [], [], [], [], {}
    for prefix, case, constants, dims, results in parts:
        fresh = lambda name: prefix + name if name else ""
        for node in case.nodes:
            nodes.append(renamed(node, fresh))
        for name, value in case.inputs.items():
            if name in constants:
                inits.append(tensor(value, fresh(name)))
            else:
                shape = [d if isinstance(d, int) else prefix + d for d in dims[name]]
                inputs.append(helper.make_tensor_value_info(fresh(name), element(value), shape))
        for i, name in enumerate(case.outputs):
            if results is None:
                outputs.append(helper.make_empty_tensor_value_info(fresh(name)))
            else:
                value, exact = results[i]
                shape = value.shape if exact else [None] * value.ndim
                outputs.append(helper.make_tensor_value_info(fresh(name), element(value), shape))
        opsets[""] = case.opset
        opsets.update({d: 1 for d in case.domains})
    graph = helper.make_graph(nodes, "fuzz", inputs, outputs, inits)
    imports = [helper.make_opsetid(d, v) for d, v in opsets.items()]
    ir = max(8, min(helper.find_min_ir_version_for(imports, True), 13))
    return helper.make_model(graph, opset_imports=imports, ir_version=ir)


def renamed(node, fresh):
    copy = onnx.NodeProto.FromString(node.SerializeToString())
    copy.input[:] = [fresh(n) for n in node.input]
    copy.output[:] = [fresh(n) for n in node.output]
    copy.name = fresh(node.name)
    for attr in copy.attribute:
        graphs = [attr.g] if attr.HasField("g") else list(attr.graphs)
        for graph in graphs:
            inner = [renamed(n, fresh) for n in graph.node]
            del graph.node[:]
            graph.node.extend(inner)
            for info in [*graph.input, *graph.output, *graph.initializer]:
                info.name = fresh(info.name)
    return copy


def with_onnxruntime(model, feeds):
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(v) for v in session.run(None, feeds)]


def with_reference(model, feeds):
    with np.errstate(all="ignore"):
        return [np.asarray(v) for v in ReferenceEvaluator(model).run(None, feeds)]


class Apart:
    """A process that computes for this one, started anew when it crashes or takes too long."""

    def __init__(self):
        self.child = None

    def start(self):
        ours, theirs = multiprocessing.Pipe()
        child = os.fork()
        if child == 0:
            ours.close()
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1), os.dup2(null, 2)
            while True:
                try:
                    work, args = theirs.recv()
                except EOFError:
                    os._exit(0)
                try:
                    answer = (work(*args), None)
                except BaseException as e:
                    answer = (None, f"{type(e).__name__}: {str(e)[:400]}")
                theirs.send(answer)
        theirs.close()
        self.child, self.pipe = child, ours

    def __call__(self, work, *args, seconds=20):
        """The result of a function: (value, None) or (None, reason)."""
        if self.child is None:
            self.start()
        try:
            self.pipe.send((work, args))
            if self.pipe.poll(seconds):
                return self.pipe.recv()
        except (EOFError, OSError):
            pass
        os.kill(self.child, signal.SIGKILL)
        os.waitpid(self.child, 0)
        self.pipe.close()
        self.child = None
        return None, "it crashed or took too long"


apart = Apart()


def tolerance(case, results):
    worst = (0.0, 0.0)
    loose = {"float16": (4e-3, 4e-3), "bfloat16": (2e-2, 2e-2), "float32": (2e-4, 2e-5), "float64": (1e-6, 1e-7)}
    for value in [*case.inputs.values(), *results]:
        worst = max(worst, loose.get(value.dtype.name, worst))
    if all(v.dtype.kind not in "fV" for v in results):
        worst = (0.0, 0.0)
    return (worst[0] if case.rtol is None else case.rtol, worst[1] if case.atol is None else case.atol)


def same(a, b, tol):
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "OUS":
        return bool((a == b).all())
    if a.dtype.kind == "c":
        return np.allclose(a, b, tol[0], tol[1], True)
    with np.errstate(all="ignore"):
        return np.allclose(a.astype(np.float64), b.astype(np.float64), tol[0], tol[1], True)


def text_of(case, mode, constants, dims):
    """A line that says what the case is."""
    parts = [f"opset {case.opset} {mode}"]
    for node in case.nodes:
        attrs = ", ".join(f"{a.name}={helper.get_attribute_value(a)}" for a in node.attribute if not a.HasField("g"))
        ins = []
        for name in node.input:
            if name in case.inputs:
                v = case.inputs[name]
                name = f"{name}:{v.dtype}{list(v.shape)}"
                if v.size <= 8 and v.dtype.kind in "iu":
                    name += f"={v.tolist()}"
                if node.input and name.split(":")[0] in constants:
                    name = f"const {name}"
                elif any(not isinstance(d, int) for d in dims[name.split(":")[0]]):
                    name += f" as {dims[name.split(':')[0]]}"
            ins.append(name or "-")
        parts.append(f"{node.op_type}({'; '.join(ins)}) {{{attrs}}} -> {', '.join(node.output)}")
    return " | ".join(parts)


class Made:
    """A case with expected values."""

    def __init__(self, name, family, case, r):
        self.name, self.family, self.case = name, family, case
        self.mode, self.constants, self.dims = placed(case, r)
        self.exact = [self.mode == "fixed" and r.maybe() for _ in case.outputs]
        self.other, self.reasons, self.results = None, {}, None
        plain = {k: list(v.shape) for k, v in case.inputs.items()}
        # Initializers where oracles want them; as inputs the values are the same.
        model = model_of([("", case, case.constant, plain, None)])
        feeds = {k: v for k, v in case.inputs.items() if k not in case.constant}
        found = {}
        for oracle, work in (("onnxruntime", with_onnxruntime), ("reference", with_reference)):
            found[oracle], reason = apart(work, model, feeds)
            if reason:
                self.reasons[oracle] = reason
        first, second = found["onnxruntime"], found["reference"]
        # ONNX Runtime gives 8-bit floats as bytes.
        if first is not None and second is not None:
            first = [a.view(b.dtype) if b.dtype.name.startswith("float8") and a.dtype == np.uint8 else a for a, b in zip(first, second)]
        self.results = first if first is not None else second
        if self.results is None:
            return
        self.tolerance = tolerance(case, self.results)
        if first is not None and second is not None and len(first) == len(second):
            if not all(same(a, b, self.tolerance) for a, b in zip(first, second)):
                self.other = second

    def part(self, prefix):
        return (prefix, self.case, self.constants, self.dims, list(zip(self.results, self.exact)))

    def text(self):
        return text_of(self.case, self.mode, self.constants, self.dims)


def write(folder, parts, results, tol):
    """A folder of the suite from parts with their results."""
    place = folder / "set_0"
    place.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model_of(parts).SerializeToString())
    (folder / "tolerance").write_text(f"{tol[0]} {tol[1]}\n")
    given = [(p[0] + k, v) for p in parts for k, v in p[1].inputs.items() if k not in p[2]]
    for i, (name, value) in enumerate(given):
        (place / f"input_{i}.pb").write_bytes(tensor(value, name).SerializeToString())
    for i, value in enumerate(results):
        (place / f"output_{i}.pb").write_bytes(tensor(value, f"y{i}").SerializeToString())


def run(tvmc, folder, jobs):
    """Case to (stage, reason); `None` for those that pass."""
    report = folder.with_suffix(".json")
    args = [tvmc, "onnx-suite", str(folder), "--poison", "--jobs", str(jobs), "--json", str(report)]
    subprocess.run(args, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cases = json.loads(report.read_text(), strict=False)["cases"]
    return {c["case"]: None if c["status"] == "passed" else (c["stage"], c["reason"]) for c in cases}


def generate(args):
    made, refused = [], []
    wanted = args.families.split(",") if args.families else sorted(FAMILIES)
    for family in wanted:
        for i in range(args.count):
            name = f"{family}_{args.seed}_{i}"
            if args.only and name not in args.only.split(","):
                continue
            r = Random(name)
            make = r.pick(FAMILIES[family])
            with np.errstate(all="ignore"):
                one = Made(name, family, make(r), r)
            (made if one.results is not None else refused).append(one)
    return made, refused


def batches(made):
    groups = collections.defaultdict(list)
    for one in made:
        groups[(one.case.opset, one.case.domains, one.tolerance)].append(one)
    for group in groups.values():
        for i in range(0, len(group), BATCH):
            yield group[i:i + BATCH]


def main():
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--families")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only")
    parser.add_argument("--tvmc", default="target/debug/tvmc")
    args = parser.parse_args()
    shutil.rmtree(args.dir, ignore_errors=True)
    made, refused = generate(args)
    singles, many, others = args.dir / "cases", args.dir / "batches", args.dir / "others"
    members = {}
    for i, group in enumerate(batches(made)):
        name = f"batch{i}"
        members[name] = group
        parts = [one.part(f"c{k}_") for k, one in enumerate(group)]
        write(many / name, parts, [v for one in group for v in one.results], group[0].tolerance)
    failing = []
    if members:
        outcome = run(args.tvmc, many, args.jobs)
        failing = [one for name, group in members.items() if outcome.get(name) for one in group]
    for one in failing:
        write(singles / one.name, [one.part("")], one.results, one.tolerance)
    outcome = run(args.tvmc, singles, args.jobs) if failing else {}
    disagree = [one for one in failing if outcome[one.name] and one.other is not None]
    for one in disagree:
        part = (*one.part("")[:4], [(v, False) for v in one.other])
        write(others / one.name, [part], one.other, one.tolerance)
    second = run(args.tvmc, others, args.jobs) if disagree else {}
    print(report(made, refused, outcome, second))


def report(made, refused, outcome, second):
    lines, counts = [], collections.defaultdict(collections.Counter)
    for one in refused:
        counts[one.family]["no oracle"] += 1
        lines.append(f"no oracle {one.name}: {one.text()}\n    {one.reasons}")
    for one in made:
        count = counts[one.family]
        count["cases"] += 1
        count["oracles disagree"] += one.other is not None
        count[f"mode {one.mode}"] += 1
        failure = outcome.get(one.name)
        if failure is None:
            count["agree"] += 1
            continue
        stage, reason = failure
        if stage == "mismatch" and one.other is not None and second.get(one.name) is None:
            count["as the reference"] += 1
            stage = "reference"
        count[stage] += 1
        alone = {"reference": "onnxruntime only", "onnxruntime": "reference only"}
        by = next((alone[o] for o in one.reasons), "both" if one.other is None else "oracles differ")
        lines.append(f"{stage} {one.name} [{by}]: {one.text()}\n    {re.sub(chr(92) + 's+', ' ', reason)[:400]}")
    lines.sort()
    for family, count in counts.items():
        lines.append(f"{family}: " + ", ".join(f"{v} {k}" for k, v in sorted(count.items()) if v))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
