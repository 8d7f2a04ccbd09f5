"""Reductions, scans, and what normalises along axes."""

import numpy as np

from .base import FLOATS, NUMBERS, Case, family, ints, node_case

REDUCE = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]


@family("reduce", 6)
def reduction(r):
    name = r.pick(REDUCE)
    op = f"Reduce{name}"
    opset = r.opset(op)
    dtype = r.pick(FLOATS + ["i32", "i64"])
    if name in ("Max", "Min") and opset >= 12:
        dtype = r.pick(FLOATS + ["i32", "i64", "i8", "u8"] + (["bool"] if opset >= 20 else []))
    if name in ("LogSum", "LogSumExp", "L2", "Mean"):
        dtype = r.pick(FLOATS)
    shape = r.shape(zero=0.03)
    x = r.data(dtype, shape, name in ("Max", "Min") and r.maybe(0.3), 0.1 if name == "LogSum" else -2, 2)
    rank = len(shape)
    axes = r.axes(rank, low=1) if rank and r.maybe(0.8) else None
    attrs = r.attrs(keepdims=r.randint(0, 1))
    if opset >= (13 if name == "Sum" else 18):
        attrs.update(r.attrs(noop_with_empty_axes=r.randint(0, 1)))
        if axes is None and r.maybe(0.3):
            axes = []
        return node_case(r, op, [x, None if axes is None else ints(axes)], opset, attrs)
    if opset < 11 and axes:
        axes = [a % rank for a in axes]
    if axes:
        attrs["axes"] = axes
    return node_case(r, op, [x], opset, attrs)


@family("reduce", 2)
def arg(r):
    op = r.pick(["ArgMax", "ArgMin"])
    opset = r.opset(op)
    shape = r.shape(low=1, zero=0)
    x = r.data(r.pick(FLOATS + ["i32", "i8", "u8", "i64"] if opset >= 13 else ["f32", "f64", "i32"]), shape, False, -2, 2)
    if r.maybe():
        x = np.round(x.astype(np.float64)).astype(x.dtype)
    rank = len(shape)
    axis = r.axis(rank) if opset >= 11 else r.randrange(rank)
    attrs = r.attrs(axis=axis, keepdims=r.randint(0, 1))
    if opset >= 12:
        attrs.update(r.attrs(select_last_index=r.randint(0, 1)))
    return node_case(r, op, [x], opset, attrs)


@family("reduce", 2)
def scan(r):
    op = r.pick(["CumSum", "CumSum", "CumProd"])
    shape = r.shape(low=1)
    x = r.data(r.pick(["f32", "f64", "i32", "i64"]), shape, False, -2, 2)
    axis = np.array(r.axis(len(shape)), r.pick([np.int32, np.int64]))
    return node_case(r, op, [x, axis.reshape(r.pick([(), (1,)])) if op == "CumSum" else axis], r.opset(op),
                     r.attrs(exclusive=r.randint(0, 1), reverse=r.randint(0, 1)))


@family("reduce", 3)
def softmax(r):
    op = r.pick(["Softmax", "LogSoftmax", "Hardmax"])
    opset = r.opset(op)
    shape = r.shape(low=1)
    x = r.data(r.pick(FLOATS), shape, False, -4, 4)
    if op != "Hardmax" and r.maybe(0.2):
        x = (x.astype(np.float64) * 50).astype(x.dtype)
    axis = r.axis(len(shape)) if opset >= 11 else r.randrange(len(shape))
    if opset < 13 and not r.maybe(0.75):
        axis = None
    attrs = {} if axis is None else {"axis": axis}
    if opset < 13 and axis is None and len(shape) < 2:
        attrs = {"axis": 0}
    if opset >= 13:
        attrs = r.attrs(**attrs)
    return node_case(r, op, [x], opset, attrs)


@family("normalize", 2)
def lp(r):
    shape = r.shape(low=1)
    x = r.data(r.pick(["f32", "f64"]), shape)
    if r.maybe(0.2):
        x[..., :1] = 0
    return node_case(r, "LpNormalization", [x], r.opset("LpNormalization"), r.attrs(axis=r.axis(len(shape)), p=r.randint(1, 2)))


@family("normalize")
def mean_variance(r):
    x = r.data("f32", r.shape(rank=4, zero=0))
    return node_case(r, "MeanVarianceNormalization", [x], r.opset("MeanVarianceNormalization", low=9),
                     r.attrs(axes=sorted(a % 4 for a in r.axes(4, low=1))), rtol=1e-3, atol=1e-3)


@family("normalize", 3)
def layer(r):
    op = r.pick(["LayerNormalization", "LayerNormalization", "RMSNormalization"])
    dtype = r.pick(FLOATS)
    shape = r.shape(low=1, zero=0.02)
    axis = r.axis(len(shape))
    inner = shape[axis:] if axis >= 0 else shape[len(shape) + axis:]
    scale = r.data(dtype, inner if r.maybe(0.7) else r.broadcast(inner))
    attrs = {"axis": axis, **r.attrs(epsilon=r.pick([1e-5, 0.01, 0.5]))}
    if axis in (-1, len(shape) - 1) and r.maybe(0.3):
        attrs.pop("axis")
    if op == "RMSNormalization":
        return node_case(r, op, [r.data(dtype, shape), scale], r.opset(op), attrs)
    bias = r.data(dtype, inner) if r.maybe() else None
    outs = r.pick([[True], [True], [True, True, True], [True, False, True]])
    return node_case(r, op, [r.data(dtype, shape), scale, bias], r.opset(op), attrs, outputs=outs)


@family("normalize", 2)
def batch(r):
    opset = r.opset("BatchNormalization")
    shape = r.shape(low=2, high=5, zero=0.02)
    dtype = r.pick(["f32", "f64"])
    c = (shape[1],)
    args = [r.data(dtype, shape), r.data(dtype, c), r.data(dtype, c), r.data(dtype, c), r.data(dtype, c, low=0.1, high=3)]
    attrs = r.attrs(epsilon=r.pick([1e-5, 0.1]), momentum=r.pick([0.9, 0.3]))
    outs = 1
    if opset >= 14 and 0 not in shape and r.maybe(0.3):
        attrs["training_mode"], outs = 1, 3
    return node_case(r, "BatchNormalization", args, opset, attrs, outputs=outs)


@family("normalize", 3)
def groups(r):
    op = r.pick(["InstanceNormalization", "GroupNormalization", "LRN"])
    opset = r.opset(op, low=21 if op == "GroupNormalization" else 7)
    g, per = r.randint(1, 3), r.randint(1, 3)
    c = g * per
    shape = (r.randint(1, 3), c) + r.shape(low=1, high=3, zero=0.02)
    x = r.data("f32", shape)
    if op == "LRN":
        if len(shape) != 4:
            x = r.data("f32", (2, c, 3, 4))
        return node_case(r, op, [x], opset, {"size": r.pick([1, 3, 5, 2, 4]), **r.attrs(alpha=0.2, beta=0.6, bias=1.5)})
    attrs = r.attrs(epsilon=r.pick([1e-5, 0.1]))
    if op == "GroupNormalization":
        attrs["num_groups"] = g
    return node_case(r, op, [x, r.data("f32", (c,)), r.data("f32", (c,))], opset, attrs)


@family("loss", 2)
def nll(r):
    op = r.pick(["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    n, c, rest = r.randint(1, 4), r.randint(1, 5), r.shape(low=0, high=2, zero=0)
    dtype = r.pick(["f32", "f64"])
    x = r.data(dtype, (n, c) + rest)
    target = r.np.integers(0, c, (n,) + rest).astype(r.pick([np.int32, np.int64]))
    weight = r.data(dtype, (c,), low=0.1, high=2) if r.maybe() else None
    attrs = r.attrs(reduction=r.pick(["none", "sum", "mean"]))
    if r.maybe(0.4) and target.size > 1:
        attrs["ignore_index"] = r.pick([-1, 0, c - 1, 99])
        if attrs["ignore_index"] in (-1, 99):
            target.reshape(-1)[0] = attrs["ignore_index"]
        elif (target == attrs["ignore_index"]).all():
            target.reshape(-1)[0] = (attrs["ignore_index"] + 1) % c
    return node_case(r, op, [x, target, weight], r.opset(op), attrs,
                     outputs=r.pick([1, 2]) if op.startswith("Soft") else 1)
