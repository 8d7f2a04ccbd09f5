"""Operators that move, choose and order elements."""

import numpy as np

from .base import ANY, FLOATS, INTS, NUMBERS, DTYPES, family, i64, ints, node_case


def some(r, shape, opset=99, low=7):
    return r.data(r.pick(ANY), shape)


@family("gather", 2)
def gather(r):
    shape = r.shape(low=1, zero=0)
    axis = r.axis(len(shape))
    opset = r.opset("Gather")
    at = r.np.integers(-shape[axis] if opset >= 11 else 0, shape[axis], r.shape(high=3)).astype(r.pick([np.int32, np.int64]))
    if opset < 11:
        axis %= len(shape)
    return node_case(r, "Gather", [some(r, shape), at], opset, r.attrs(axis=axis) if axis in (0,) else {"axis": axis})


@family("gather", 2)
def elements(r):
    shape = r.shape(low=1, zero=0)
    axis = r.axis(len(shape))
    index = [r.randint(1, d) if i != axis % len(shape) else r.randint(1, 5) for i, d in enumerate(shape)]
    n = shape[axis]
    op = r.pick(["GatherElements", "ScatterElements", "ScatterElements", "Scatter"])
    opset = r.opset(op, low=9, high=10 if op == "Scatter" else 28)
    t = r.pick([np.int32, np.int64])
    attrs = {"axis": axis} if axis % len(shape) else r.attrs(axis=axis)
    if op == "GatherElements":
        return node_case(r, op, [some(r, shape), r.np.integers(-n, n, index).astype(t)], opset, attrs)
    reduce = r.pick(["none", "none", "add", "mul"] + (["min", "max"] if opset >= 18 else [])) if opset >= 16 else "none"
    if op == "Scatter":
        attrs["axis"] = axis % len(shape)
    if reduce == "none":
        index[axis] = min(index[axis], n)
        at = np.stack([r.np.permutation(n)[:index[axis]] for _ in range(int(np.prod(index)) // index[axis])])
        moved = [d for i, d in enumerate(index) if i != axis % len(shape)]
        at = np.moveaxis(at.reshape([*moved, index[axis]]), -1, axis)
        if op != "Scatter":
            at = np.where(r.np.random(at.shape) < 0.3, at - n, at)
        data = some(r, shape)
    else:
        attrs["reduction"] = reduce
        at, data = r.np.integers(-n, n, index), r.data(r.pick(["f32", "f64", "i32", "i64"]), shape)
    name = next(k for k, v in DTYPES.items() if np.dtype(v) == data.dtype)
    return node_case(r, op, [data, at.astype(t), r.data(name, index)], opset, attrs)


@family("gather", 2)
def nd(r):
    shape = r.shape(low=1, high=4, zero=0)
    op = r.pick(["GatherND", "ScatterND"])
    opset = r.opset(op)
    batch = r.randint(0, len(shape) - 1) if op == "GatherND" and opset >= 12 and r.maybe() else 0
    k = r.randint(1, len(shape) - batch)
    outer = r.shape(high=2, zero=0.02)
    if op == "GatherND":
        index = [*shape[:batch], *outer, k]
        at = np.zeros(index, np.int64)
        for i in range(k):
            at[..., i] = r.np.integers(-shape[batch + i], shape[batch + i], index[:-1])
        attrs = {"batch_dims": batch} if batch else {}
        return node_case(r, op, [some(r, shape), at], opset, attrs)
    reduce = r.pick(["none", "none", "add", "mul"] + (["min", "max"] if opset >= 18 else [])) if opset >= 16 else "none"
    places = list(np.ndindex(*shape[:k]))
    n = int(np.prod(outer))
    if reduce == "none" and n > len(places):
        outer, n = (len(places),), len(places)
    chosen = r.sample(places, n) if reduce == "none" else [r.pick(places) for _ in range(n)]
    at = np.array(chosen, np.int64).reshape([*outer, k])
    lower = r.np.random(at.shape) < 0.3
    at = np.where(lower, at - np.array(shape[:k]), at)
    dtype = r.pick(ANY if reduce == "none" else ["f32", "f64", "i32", "i64"])
    attrs = {} if reduce == "none" else {"reduction": reduce}
    return node_case(r, op, [r.data(dtype, shape), at, r.data(dtype, [*outer, *shape[k:]])], opset, attrs)


@family("slice", 4)
def slice_(r):
    opset = r.opset("Slice")
    shape = r.shape(low=1, zero=0.05)
    axes = r.axes(len(shape), low=1)
    bound = lambda d: r.pick([0, d, -d, -1, 1, d + 5, -d - 5, 2**31 - 1, -2**31, 2**63 - 1, -2**63, r.randint(-d - 1, d + 1)])
    starts, ends = [bound(shape[a]) for a in axes], [bound(shape[a]) for a in axes]
    x = some(r, shape)
    if opset < 10:
        axes = [a % len(shape) for a in axes]
        attrs = {"starts": starts, "ends": ends, "axes": axes}
        if axes == list(range(len(axes))) and r.maybe():
            attrs.pop("axes")
        return node_case(r, "Slice", [x], opset, attrs)
    steps = [r.pick([1, 1, 2, 3, -1, -2, 7]) for _ in axes]
    t = r.pick([np.int64, np.int64, np.int32])
    narrow = lambda v: np.clip(np.array(v, object), np.iinfo(t).min, np.iinfo(t).max).astype(t)
    usual = axes == list(range(len(axes)))
    if opset == 10:
        axes = [a % len(shape) for a in axes]
    return node_case(r, "Slice", [x, narrow(starts), narrow(ends), None if usual and r.maybe() else narrow(axes),
                                  narrow(steps) if r.maybe(0.7) else None], opset)


@family("slice", 2)
def split(r):
    opset = r.opset("Split")
    shape = r.shape(low=1)
    axis = r.axis(len(shape))
    if opset < 11:
        axis %= len(shape)
    n = r.randint(1, 4)
    d = shape[axis]
    attrs = {"axis": axis} if axis % len(shape) else r.attrs(axis=axis)
    cuts = sorted(r.randint(0, d) for _ in range(n - 1))
    sizes = [b - a for a, b in zip([0, *cuts], [*cuts, d])]
    given = r.maybe(0.6) or d % n and opset < 18 or d < n
    args = [some(r, shape)]
    if given and opset < 13:
        attrs["split"] = sizes
    elif given:
        args.append(ints(sizes))
    elif opset >= 18:
        attrs["num_outputs"] = n
        k = -(-d // n)
        if k * (n - 1) >= d:
            return split(r)
    return node_case(r, "Split", args, opset, attrs, outputs=n)


@family("slice", 2)
def concat(r):
    shape = r.shape(low=1)
    axis = r.axis(len(shape))
    dtype = r.pick(ANY)
    parts = []
    for _ in range(r.randint(1, 4)):
        dims = list(shape)
        dims[axis] = r.randint(0, 4)
        parts.append(r.data(dtype, dims))
    opset = r.opset("Concat")
    return node_case(r, "Concat", parts, opset, {"axis": axis if opset >= 11 else axis % len(shape)})


@family("order", 3)
def topk(r):
    opset = r.opset("TopK")
    shape = r.shape(low=1, zero=0)
    x = r.data(r.pick(FLOATS[:4] + ["i32", "i64"] + (["i8", "u8"] if opset >= 24 else [])) if opset >= 11 else "f32", shape, False, -5, 5)
    if r.maybe(0.4):
        x = np.round(x.astype(np.float64)).astype(x.dtype)
    axis = r.axis(len(shape))
    if opset < 11:
        axis %= len(shape)
    k = r.randint(0, shape[axis]) if opset >= 10 else r.randint(1, shape[axis])
    attrs = {"axis": axis} if axis % len(shape) != len(shape) - 1 else r.attrs(axis=axis)
    if opset < 10:
        return node_case(r, "TopK", [x], opset, {"k": k, **attrs}, outputs=2)
    if opset >= 11:
        attrs.update(r.attrs(largest=r.randint(0, 1), sorted=1))
    return node_case(r, "TopK", [x, i64(k)], opset, attrs, outputs=2)


@family("order", 2)
def unique(r):
    shape = r.shape(low=1, high=3, zero=0)
    x = r.data(r.pick(["f32", "i64", "i8", "f64"]), shape, False, 0, 3)
    if x.dtype.kind == "f":
        x = np.round(x)
    attrs = r.attrs(sorted=r.randint(0, 1))
    if r.maybe():
        attrs["axis"] = r.axis(len(shape))
    outs = r.pick([[True], [True] * 4, [True, False, True], [True, False, False, True], [True, True]])
    return node_case(r, "Unique", [x], r.opset("Unique"), attrs, outputs=outs)


@family("order", 2)
def nonzero(r):
    op = r.pick(["NonZero", "Compress", "Compress"])
    shape = r.shape(low=0 if op == "NonZero" else 1)
    x = r.data(r.pick(["f32", "i32", "bool", "u8", "i64"]), shape, False, -1, 1)
    if op == "NonZero":
        return node_case(r, op, [np.round(x) if x.dtype.kind == "f" else x], r.opset(op))
    axis = r.axis(len(shape)) if r.maybe(0.7) else None
    opset = r.opset(op)
    if axis is not None and opset < 11:
        axis %= len(shape)
    n = x.size if axis is None else shape[axis]
    return node_case(r, op, [x, r.data("bool", (r.randint(0, n),))], opset, {} if axis is None else {"axis": axis})


@family("order")
def one_hot(r):
    opset = r.opset("OneHot")
    depth, shape = r.randint(1, 6), r.shape(high=3)
    t = r.pick([np.int64, np.int32, np.float32])
    at = r.np.integers(-depth if opset >= 11 else 0, depth + (1 if r.maybe(0.2) else 0), shape).astype(t)
    d = np.array(depth, r.pick([np.int64, np.int32, np.float32]))
    values = r.data(r.pick(["f32", "i64", "i32"]), (2,))
    return node_case(r, "OneHot", [at, d.reshape(r.pick([(), (1,)])), values], opset, r.attrs(axis=r.axis(len(shape) + 1)))


@family("order")
def trilu(r):
    x = some(r, r.shape(low=2))
    k = np.array(r.randint(-6, 6), np.int64) if r.maybe(0.7) else None
    return node_case(r, "Trilu", [x, k], r.opset("Trilu"), r.attrs(upper=r.randint(0, 1)))


@family("order")
def reverse(r):
    shape = r.shape(low=2, high=4, zero=0)
    batch = r.randint(0, 1)
    lens = r.np.integers(0 if r.maybe(0.2) else 1, shape[1 - batch] + 1, shape[batch])
    return node_case(r, "ReverseSequence", [r.data(r.pick(["f32", "i32"]), shape), lens], r.opset("ReverseSequence"),
                     {"batch_axis": batch, "time_axis": 1 - batch})


@family("shape", 2)
def reshape(r):
    opset = r.opset("Reshape")
    x = some(r, r.shape())
    dims, left = [], x.size
    for _ in range(r.randint(0, 4)):
        options = [d for d in (1, 2, 3, 4, 5, 7, left) if d and left % d == 0] or [1]
        dims.append(r.pick(options))
        left //= dims[-1]
    if left != 1 or x.size == 0:
        dims = list(x.shape) if x.size == 0 else [*dims, left]
        r.shuffle(dims)
    attrs = {}
    if r.maybe(0.5) and dims and x.size:
        dims[r.randrange(len(dims))] = -1
    if r.maybe(0.4):
        for i, d in enumerate(dims):
            if i < x.ndim and d == x.shape[i] and d:
                dims[i] = 0
    if opset >= 14 and not any(d == 0 for d in dims) and r.maybe(0.3):
        attrs["allowzero"] = 1
    if x.size == 0 and opset >= 14 and -1 not in dims:
        attrs["allowzero"] = 1
    elif x.size == 0:
        dims = [0] * x.ndim
    return node_case(r, "Reshape", [x, ints(dims)], opset, attrs)


@family("shape", 3)
def views(r):
    op = r.pick(["Flatten", "Squeeze", "Unsqueeze", "Transpose", "Shape", "Expand", "Tile", "ConstantOfShape", "EyeLike", "Range", "Size"])
    opset = r.opset(op, low=8 if op == "Expand" else 9 if op in ("ConstantOfShape", "EyeLike") else 7)
    x = some(r, r.shape())
    n = x.ndim
    if op == "Flatten":
        if n == 0:
            x, n = x.reshape(1), 1
        axis = r.randint(-n if opset >= 11 else 0, n)
        return node_case(r, op, [x if opset >= 9 else r.data("f32", x.shape)], opset, {"axis": axis} if axis != 1 else r.attrs(axis=1))
    if op == "Squeeze":
        ones = [i for i, d in enumerate(x.shape) if d == 1]
        axes = r.sample(ones, r.randint(0, len(ones)))
        axes = [a - n if opset >= 11 and r.maybe(0.4) else a for a in axes] if r.maybe(0.8) and axes else None
        if opset < 13:
            return node_case(r, op, [x], opset, {"axes": axes} if axes else {})
        return node_case(r, op, [x, ints(axes) if axes else None], opset, constant=("x1",))
    if op == "Unsqueeze":
        k = r.randint(1, 2)
        axes = r.sample(range(n + k), k)
        axes = [a - n - k if opset >= 11 and r.maybe(0.4) else a for a in axes]
        if opset < 13:
            return node_case(r, op, [x], opset, {"axes": axes})
        return node_case(r, op, [x, ints(axes)], opset, constant=("x1",))
    if op == "Transpose":
        return node_case(r, op, [x], opset, r.attrs(perm=r.sample(range(n), n)))
    if op == "Shape":
        return node_case(r, op, [x], opset, r.attrs(start=r.randint(-6, 6), end=r.randint(-6, 6)) if opset >= 15 else {})
    if op == "Expand":
        to = list(x.shape)
        dims = [r.randint(1, 3) if d == 1 and r.maybe() else r.pick([d, d, 1]) for d in to]
        dims = [r.randint(1, 3) for _ in range(r.randint(0, 2))] + dims
        while dims and len(dims) > 1 and r.maybe(0.2):
            dims.pop(0)
        return node_case(r, op, [x, ints(dims)], opset)
    if op == "Tile":
        return node_case(r, op, [x, ints(r.randint(0 if r.maybe(0.1) else 1, 3) for _ in range(n))], opset)
    if op == "ConstantOfShape":
        from onnx import numpy_helper
        value = numpy_helper.from_array(r.data(r.pick(ANY), (1,)), "v")
        return node_case(r, op, [ints(r.shape())], opset, r.attrs(value=value))
    if op == "EyeLike":
        x = r.data(r.pick(["f32", "i32", "f64", "i64"]), r.shape(rank=2))
        return node_case(r, op, [x], opset, r.attrs(k=r.randint(-4, 4), dtype=r.pick([1, 7, 6, 11])))
    if op == "Range":
        opset = r.opset(op)
        t = r.pick([np.float32, np.int64, np.int32, np.float64, np.int16])
        step = r.pick([1, 2, -1, -3, 0.5] if np.dtype(t).kind == "f" else [1, 2, -1, -3])
        return node_case(r, op, [np.array(v, t) for v in (r.randint(-9, 9), r.randint(-9, 9), step)], opset)
    return node_case(r, "Size", [x], opset)
