#!/usr/bin/env python3
"""Writes the cases of kinds of nodes that were compiled wrongly once, as `fuzz.py` found them.

usage: kinds.py DIR        (needs onnx, onnxruntime, numpy)

Each model has nodes of one kind, with inputs of fixed extents, of varying ones, and constants.
"""

import pathlib
import sys

import numpy as np

import fuzz
from fuzzing.base import Case, Random, i64, ints, node_case
from onnx import TensorProto, helper

KINDS = {}


def kind(name, make, oracle="onnxruntime", modes=("fixed", "symbolic", "constant")):
    """`make` gives cases of one operator set."""
    KINDS[name] = (make, oracle, modes)


def placed(case, mode):
    constants = set(case.inputs) if mode == "constant" else set(case.constant)
    dims = {k: list(v.shape) for k, v in case.inputs.items()}
    if mode == "symbolic":
        for name in dims.keys() - case.sized:
            dims[name] = [d if d == 1 else f"{name}_{i}" for i, d in enumerate(dims[name])]
    return constants, dims


def write(root, name):
    make, oracle, modes = KINDS[name]
    parts, values, tolerance = [], [], (0.0, 0.0)
    for mode in modes:
        for case in make(Random(name)):
            work = fuzz.with_onnxruntime if oracle == "onnxruntime" else fuzz.with_reference
            plain = {k: list(v.shape) for k, v in case.inputs.items()}
            model = fuzz.model_of([("", case, case.constant, plain, None)])
            results = work(model, {k: v for k, v in case.inputs.items() if k not in case.constant})
            tolerance = max(tolerance, fuzz.tolerance(case, results))
            parts.append((f"c{len(parts)}_", case, *placed(case, mode), [(v, False) for v in results]))
            values += results
    fuzz.write(root / name, parts, values, tolerance)


def slices(r):
    """Starts before the first element, far bounds, far steps."""
    far = 2**63 - 1
    x = r.data("i32", (4, 5))
    for axis, start, end, step in ((0, -9, -far - 1, -1), (1, -far - 1, -far - 1, -2), (1, -6, -far, -1), (0, 9, -9, -3), (1, 1, far, far),
                                   (1, 4, -far - 1, -far), (0, -9, 3, 2), (1, -9, -9, -1), (0, -2, -far - 1, -1)):
        yield node_case(r, "Slice", [x, i64(start), i64(end), i64(axis), i64(step)], 13)


kind("slice_start_before_first", slices)
kind("split_num_outputs_uneven", lambda r: [
    node_case(r, "Split", [r.data("f32", shape)], 18, {"axis": axis, "num_outputs": n}, outputs=n)
    for shape, axis, n in (((3, 2), 0, 2), ((2, 7), 1, 3), ((2, 6), -1, 3), ((5,), 0, 3), ((2, 4), 1, 1))])
kind("split_equal", lambda r: [
    node_case(r, "Split", [r.data("f32", shape)], 13, {"axis": axis}, outputs=n) for shape, axis, n in (((4, 2), 0, 2), ((2, 6), 1, 3))])


def resizes(opset):
    def make(r):
        for shape, scales in (((1, 1, 10, 5), (1, 1, 0.6, 0.8)), ((1, 1, 6, 3), (1, 1, 5 / 6, 7 / 3)), ((1, 1, 3, 5), (1, 1, 1.4, 1 / 3)),
                              ((1, 1, 7, 7), (1, 1, 3 / 7, 13 / 7))):
            x, s = r.data("f32", shape), np.array(scales, np.float32)
            if opset == 10:
                yield node_case(r, "Resize", [x, s], 10, {"mode": "nearest"})
                continue
            for how in ("asymmetric", "half_pixel"):
                for nearest in ("floor", "round_prefer_ceil"):
                    yield node_case(r, "Resize", [x, None, s], opset, {
                        "mode": "nearest", "coordinate_transformation_mode": how, "nearest_mode": nearest})
    return make


kind("resize_10_nearest_smaller", resizes(10))
kind("resize_nearest_scales_of_single_precision", resizes(13))
kind("prelu_of_integers", lambda r: [
    node_case(r, "PRelu", [r.data(t, (2, 3), low=-9, high=9), r.data(t, shape, low=-3, high=3)], 16)
    for t in ("i32", "u32", "i64") for shape in ((1,), (3,), (2, 1), (2, 3))], "reference")
kind("extents_that_operators_fix", lambda r: [
    node_case(r, "GridSample", [r.data("f32", (1, 2, 3, 3)), r.data("f32", (1, 2, 2, 2), low=-1, high=1)], 20),
    node_case(r, "AffineGrid", [r.data("f32", (1, 2, 3)), i64(1, 1, 2, 3)], 20),
    node_case(r, "NonMaxSuppression", [r.data("f32", (1, 4, 4), low=0, high=1), r.data("f32", (1, 2, 4), low=0, high=1), i64(3)], 20),
    node_case(r, "Conv", [r.data("f32", (1, 3, 4)), r.data("f32", (2, 3, 2)), r.data("f32", (2,))], 20, {"kernel_shape": [2]})])
kind("reshape_allowzero_moves_the_zero", lambda r: [
    node_case(r, "Reshape", [r.data("f32", shape), ints(to)], 14, {"allowzero": 1})
    for shape, to in (((0, 4, 2), (4, 0, 2)), ((3, 0), (0, 7)), ((0, 2), (0, 3)), ((2, 0), (5, 0, 3)))])
kind("tile_many_varying_axes", lambda r: [
    node_case(r, "Tile", [r.data("f32", (2, 1, 3, 2)), i64(1, 2, 1, 2)], 13),
    node_case(r, "Tile", [r.data("f32", (2, 3, 2)), i64(3, 1, 2)], 13),
    node_case(r, "Tile", [r.data("f32", (2, 0)), i64(3, 2)], 13)])
kind("hardmax_varying_extent", lambda r: [
    node_case(r, "Hardmax", [np.round(r.data("f32", (3, 4)))], 13, {"axis": a}) for a in (0, 1, -1)])
kind("batchnorm_varying_channels", lambda r: [
    node_case(r, "BatchNormalization", [r.data("f32", (2, 3, 4)), *(r.data("f32", (3,), low=0.1) for _ in range(4))], 15)])
kind("groupnorm_varying_channels", lambda r: [
    node_case(r, "GroupNormalization", [r.data("f32", (2, 6, 3)), r.data("f32", (6,)), r.data("f32", (6,))], 21, {"num_groups": 3}, sized=("x1",))])
kind("layernorm_f64_statistics", lambda r: [
    node_case(r, "LayerNormalization", [r.data("f64", (2, 5)), r.data("f64", (5,))], 17, outputs=3)])
kind("inverse_hyperbolic_of_greatest", lambda r: [
    node_case(r, op, [np.array([1e308, 1.5e300, 1e155, 1.0, 2.0])], 22) for op in ("Acosh", "Asinh")], "reference")


def windows(r):
    for auto in ("SAME_UPPER", "SAME_LOWER"):
        for op, shape, k, s in (("Conv", (2, 3, 7, 8), 3, 2), ("Conv", (1, 3, 5, 5), 2, 3), ("MaxPool", (1, 2, 7, 6), 3, 2),
                                ("AveragePool", (1, 2, 7, 6), 3, 2), ("AveragePool", (1, 2, 5, 9), 2, 2), ("LpPool", (1, 2, 5, 5), 3, 2)):
            x = r.data("f32", shape)
            attrs = {"auto_pad": auto, "strides": [s, s], "kernel_shape": [k, k]}
            w = [r.data("f32", (4, 3, k, k)), r.data("f32", (4,))] if op == "Conv" else []
            yield node_case(r, op, [x, *w], 11, attrs)


kind("auto_pad_varying_extents", windows, modes=("symbolic",))
kind("clip_6_of_infinities", lambda r: [
    node_case(r, "Clip", [np.array([-np.inf, -2, 0.5, 3, np.inf, np.nan], np.float32)], 7, attrs)
    for attrs in ({}, {"max": 1.0}, {"min": -1.0}, {"min": -1.0, "max": 2.0})])
kind("conv_transpose_groups_varying_width", lambda r: [
    node_case(r, "ConvTranspose", [r.data("f32", (1, 2, 4, 4)), r.data("f32", (2, 1, 2, 2))], 11,
              {"group": 2, "strides": [2, 3], "dilations": [1, 2]})])

ACTIVATIONS = [
    ("LeakyRelu", [0.3], []), ("ThresholdedRelu", [0.2], []), ("Affine", [0.5], [0.1]), ("ScaledTanh", [0.7], [1.3]),
    ("HardSigmoid", [0.3], [0.4]), ("Elu", [0.6], []), ("Softsign", [], []), ("Softplus", [], []), ("Relu", [], [])]


def activations(r):
    f = lambda *dims: r.data("f32", dims, low=-1, high=1)
    for names, alpha, beta in ACTIVATIONS:
        attrs = {"hidden_size": 2, "activations": [names, "Tanh"], "direction": "bidirectional"}
        attrs.update({k: v for k, v in (("activation_alpha", alpha), ("activation_beta", beta)) if v})
        yield node_case(r, "RNN", [f(3, 2, 3), f(2, 2, 3), f(2, 2, 2), f(2, 4)], 14, attrs, outputs=2)
    attrs = {"hidden_size": 2, "activations": ["HardSigmoid", "Affine", "Elu"], "activation_alpha": [0.3, 0.5, 0.6], "activation_beta": [0.4, 0.1]}
    yield node_case(r, "LSTM", [f(3, 2, 3), f(1, 8, 3), f(1, 8, 2), f(1, 16)], 14, attrs, outputs=3)


kind("recurrent_activations_with_numbers", activations, modes=("fixed", "constant"))


def loops(r):
    n = helper.make_node
    info = lambda name, t, dims: helper.make_tensor_value_info(name, t, dims)
    body = helper.make_graph(
        [n("Add", ["v_in", "v_in"], ["v_out"]), n("Identity", ["v_in"], ["row"]), n("Less", ["i", "lim"], ["c_out"])], "body",
        [info("i", TensorProto.INT64, []), info("c_in", TensorProto.BOOL, []), info("v_in", TensorProto.FLOAT, [2])],
        [info("c_out", TensorProto.BOOL, []), info("v_out", TensorProto.FLOAT, [2]), info("row", TensorProto.FLOAT, [2])])
    for first in (False, True):
        lim = n("Constant", [], ["lim"], value=helper.make_tensor("lim", TensorProto.INT64, [], [2]))
        yield Case([lim, n("Loop", ["", "x0", "x1"], ["y0", "y1"], body=body)],
                   {"x0": np.array(first), "x1": r.data("f32", (2,))}, ["y0", "y1"], 15, sized=("x0", "x1"))


kind("loop_condition_false_from_the_start", loops)


def sliced_by_extents(r):
    """A reduction over a part whose bounds are computed from the extent: no tile of it has a constant size."""
    n = helper.make_node
    constant = lambda name, v: n("Constant", [], [name], value=helper.make_tensor(name, TensorProto.INT64, [1], [v]))
    nodes = [n("Shape", ["x0"], ["s"]), constant("second", 1), n("Gather", ["s", "second"], ["end"], axis=0), n("Neg", ["end"], ["start"]),
             constant("axes", 0), constant("steps", 1), n("Slice", ["x0", "start", "end", "axes", "steps"], ["part"])]
    for op, kind, extent in (("ReduceMax", "i64", 7), ("ReduceSum", "f32", 7), ("ReduceSum", "f32", 0)):
        axes = {"axes": [1]} if op == "ReduceMax" else {}
        extra = [] if axes else [constant("over", 1)]
        yield Case([*nodes, *extra, n(op, ["part"] if axes else ["part", "over"], ["y0"], keepdims=0, **axes)],
                   {"x0": r.data(kind, (1, extent, 2))}, ["y0"], 17)


kind("reduce_over_slice_by_extents", sliced_by_extents, modes=("fixed", "symbolic"))

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for name in KINDS:
        write(pathlib.Path(sys.argv[1]), name)
