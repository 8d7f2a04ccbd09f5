"""Operators of no other family, and control flow within control flow."""

import numpy as np
from onnx import TensorProto, helper

from .base import ANY, DTYPES, Case, family, i64, node_case
from .elementwise import np_type
from .graphs import body


@family("misc")
def dropout(r):
    opset = r.opset("Dropout")
    x = r.data(r.pick(["f32", "f64", "f16"]), r.shape(low=1))
    outs = r.pick([1, 2]) if opset >= 10 else 1
    if opset < 12:
        return node_case(r, "Dropout", [x], opset, r.attrs(ratio=0.3), outputs=outs)
    ratio = np.array(0.4, np.float32)
    return node_case(r, "Dropout", [x, r.pick([None, ratio]), r.pick([None, np.array(False)])], opset, outputs=outs)


@family("misc")
def unpool(r):
    n, c, h, w = r.randint(1, 2), r.randint(1, 2), r.randint(1, 3), r.randint(1, 3)
    k = [r.randint(1, 3), r.randint(1, 3)]
    grow = r.maybe(0.3)
    out = [h * k[0] + (1 if grow else 0), w * k[1] + (2 if grow else 0)]
    count = h * w
    index = np.stack([r.np.permutation(h * k[0] * w * k[1])[:count] for _ in range(n * c)]).reshape(n, c, h, w).astype(np.int64)
    for b in range(n):
        for d in range(c):
            index[b, d] += (b * c + d) * h * k[0] * w * k[1]
    args = [r.data("f32", (n, c, h, w)), index]
    if grow:
        args.append(i64(n, c, *out))
    return node_case(r, "MaxUnpool", args, r.opset("MaxUnpool"), {"kernel_shape": k, "strides": k})


@family("misc")
def bit_cast(r):
    pairs = [("f32", "i32"), ("i32", "f32"), ("f64", "i64"), ("u8", "i8"), ("f16", "u16"), ("i64", "u64"), ("u32", "f32")]
    a, b = r.pick(pairs)
    return node_case(r, "BitCast", [r.data(a, r.shape(), True)], 26, {"to": np_type(b)}, rtol=0, atol=0)


@family("misc")
def tensor_scatter(r):
    shape = [r.randint(1, 3) for _ in range(r.randint(2, 4))]
    axis = r.randint(1, len(shape) - 1)
    mode = r.pick(["linear", "circular"])
    shape[axis] = most = r.randint(2, 6)
    update = list(shape)
    update[axis] = r.randint(1, most)
    high = most if mode == "circular" else most - update[axis] + 1
    at = r.np.integers(0, high, shape[0])
    dtype = r.pick(ANY)
    return node_case(r, "TensorScatter", [r.data(dtype, shape), r.data(dtype, update), r.pick([at, at, None])], 24,
                     {"axis": axis - r.pick([0, len(shape)]), **r.attrs(mode=mode if mode == "circular" else None)} if mode == "linear" else
                     {"axis": axis, "mode": mode})


@family("misc")
def split_with_scalar(r):
    """Sequences of parts, without the axis kept."""
    shape = r.shape(low=1, high=3, zero=0)
    axis = r.randrange(len(shape))
    keep = r.randint(0, 1)
    n = helper.make_node
    at = r.randint(-shape[axis], shape[axis] - 1)
    nodes = [n("SplitToSequence", ["x0"], ["s"], axis=axis, keepdims=keep),
             n("Constant", [], ["k"], value=helper.make_tensor("k", TensorProto.INT64, [], [at])), n("SequenceAt", ["s", "k"], ["y0"])]
    return Case(nodes, {"x0": r.data("f32", shape)}, ["y0"], r.randint(13, 21), sized=("x0",))


@family("nested", 3)
def nested(r):
    """A loop in a branch, or a branch in a loop, with values captured over two levels."""
    n = helper.make_node
    x = r.data("f32", r.shape(low=1, high=2, zero=0))
    s = list(x.shape)
    any_ = [None] * x.ndim
    true = n("Constant", [], ["yes"], value=helper.make_tensor("yes", TensorProto.BOOL, [], [1]))
    opset = r.randint(13, 21)
    if r.maybe():
        inner = body([n("Add", ["v_in", "x0"], ["v_out"]), n("Mul", ["v_in", "w"], ["row"]), n("Identity", ["c_in"], ["c_out"])],
                     [("i", "i64", []), ("c_in", "bool", []), ("v_in", "f32", s)], [("c_out", "bool", []), ("v_out", "f32", s), ("row", "f32", s)])
        some = n("Constant", [], ["m"], value=helper.make_tensor("m", TensorProto.INT64, [], [r.randint(0, 3)]))
        then = body([some, true, n("Relu", ["x0"], ["w"]), n("Loop", ["m", "yes", "x0"], ["l0", "l1"], body=inner), n("Identity", ["l0"], ["b1"])],
                    [], [("b1", "f32", any_)])
        other = body([n("Neg", ["x0"], ["b2"])], [], [("b2", "f32", any_)])
        node = n("If", ["x1"], ["y0"], then_branch=then, else_branch=other)
        return Case([node], {"x0": x, "x1": np.array(r.maybe(0.8))}, ["y0"], opset, sized=("x0", "x1"))
    limit = n("Constant", [], ["lim"], value=helper.make_tensor("lim", TensorProto.INT64, [], [r.randint(0, 3)]))
    then = body([n("Add", ["v_in", "x0"], ["b1"])], [], [("b1", "f32", s)])
    other = body([n("Sub", ["v_in", "w"], ["b2"])], [], [("b2", "f32", s)])
    outer = body([limit, n("Less", ["i", "lim"], ["p"]), n("Tanh", ["x0"], ["w"]), n("If", ["p"], ["v_out"], then_branch=then, else_branch=other),
                  n("Identity", ["v_in"], ["row"]), n("Identity", ["c_in"], ["c_out"])],
                 [("i", "i64", []), ("c_in", "bool", []), ("v_in", "f32", s)], [("c_out", "bool", []), ("v_out", "f32", s), ("row", "f32", s)])
    node = n("Loop", ["x1", "yes", "x0"], ["y0", "y1"], body=outer)
    return Case([true, node], {"x0": x, "x1": np.array(r.randint(0, 5), np.int64)}, ["y0", "y1"], opset, sized=("x0", "x1"))


@family("nested", 2)
def growing(r):
    """A loop whose carried value grows."""
    n = helper.make_node
    x = r.data("f32", (r.randint(1, 3), r.randint(1, 2)))
    w = x.shape[1]
    inner = body([n("Concat", ["v_in", "x0"], ["v_out"], axis=0), n("ReduceMax", ["v_in"], ["row"], axes=[0], keepdims=0), n("Identity", ["c_in"], ["c_out"])],
                 [("i", "i64", []), ("c_in", "bool", []), ("v_in", "f32", [None, w])], [("c_out", "bool", []), ("v_out", "f32", [None, w]), ("row", "f32", [w])])
    true = n("Constant", [], ["yes"], value=helper.make_tensor("yes", TensorProto.BOOL, [], [1]))
    node = n("Loop", ["x1", "yes", "x0"], ["y0", "y1"], body=inner)
    return Case([true, node], {"x0": x, "x1": np.array(r.randint(0, 4), np.int64)}, ["y0", "y1"], r.randint(13, 17), sized=("x0", "x1"))
