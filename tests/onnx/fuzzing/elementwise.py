"""Element-wise operators."""

import numpy as np

from .base import ANY, DTYPES, FLOATS, INTS, NUMBERS, family, node_case

# Operator: element types, range of the values.
UNARY = {
    "Abs": (NUMBERS, -3, 3), "Acos": (FLOATS, -1, 1), "Acosh": (FLOATS, 1, 5), "Asin": (FLOATS, -1, 1),
    "Asinh": (FLOATS, -3, 3), "Atan": (FLOATS, -3, 3), "Atanh": (FLOATS, -0.9, 0.9), "Ceil": (FLOATS, -3, 3),
    "Cos": (FLOATS, -5, 5), "Cosh": (FLOATS, -3, 3), "Erf": (FLOATS, -3, 3), "Exp": (FLOATS, -3, 3),
    "Floor": (FLOATS, -3, 3), "Identity": (ANY, -3, 3), "IsNaN": (FLOATS, -3, 3), "Log": (FLOATS, 0.1, 3),
    "Neg": (["f32", "f64", "f16", "i8", "i16", "i32", "i64"], -3, 3), "Not": (["bool"], 0, 1),
    "Reciprocal": (FLOATS, 0.2, 3), "Relu": (FLOATS + ["i8", "i16", "i32", "i64"], -3, 3), "Round": (FLOATS, -4, 4),
    "Sigmoid": (FLOATS, -5, 5), "Sign": (NUMBERS, -3, 3), "Sin": (FLOATS, -5, 5), "Sinh": (FLOATS, -3, 3),
    "Softplus": (FLOATS, -3, 3), "Softsign": (FLOATS, -3, 3), "Sqrt": (FLOATS, 0, 3), "Tan": (FLOATS, -1, 1),
    "Tanh": (FLOATS, -3, 3), "HardSwish": (FLOATS, -5, 5), "Mish": (FLOATS, -3, 3), "BitwiseNot": (INTS, -9, 9),
    "Size": (ANY, -3, 3),
}
LOW = {"Relu": 6, "BitwiseNot": 18}


@family("unary", 5)
def unary(r):
    op = r.pick(UNARY)
    types, low, high = UNARY[op]
    opset = r.opset(op)
    dtype = r.pick(types)
    if op in ("Abs", "Sign", "Neg", "Relu") and opset < 14:
        dtype = r.pick(FLOATS)
    return node_case(r, op, [r.data(dtype, r.shape(), r.maybe(0.4), low, high)], opset)


@family("unary", 3)
def parameters(r):
    op = r.pick(["Celu", "Elu", "HardSigmoid", "LeakyRelu", "Selu", "Shrink", "ThresholdedRelu", "Gelu", "Swish", "IsInf"])
    f = lambda: round(r.uniform(-1, 2), 3)
    dtype = r.pick(FLOATS)
    attrs = {
        "Celu": lambda: {"alpha": r.pick([0.5, 2.0, 1.0])}, "Elu": lambda: {"alpha": f()},
        "HardSigmoid": lambda: {"alpha": f(), "beta": f()}, "LeakyRelu": lambda: {"alpha": f()},
        "Selu": lambda: {"alpha": f(), "gamma": f()}, "Shrink": lambda: {"lambd": abs(f()), "bias": f()},
        "ThresholdedRelu": lambda: {"alpha": f()}, "Gelu": lambda: {"approximate": r.pick(["none", "tanh"])},
        "Swish": lambda: {"alpha": f()}, "IsInf": lambda: {"detect_negative": r.randint(0, 1), "detect_positive": r.randint(0, 1)},
    }[op]()
    if op == "Celu":
        dtype = "f32"
    if op == "IsInf":
        dtype = r.pick(["f32", "f64"])
    if op == "Shrink" and r.maybe(0.3):
        dtype = r.pick(["i32", "i64", "i8"])
    return node_case(r, op, [r.data(dtype, r.shape(), op not in ("Shrink",) and r.maybe(0.4), -4, 4)], r.opset(op), r.attrs(**attrs))


def two(r, dtype, special=False, low=-3, high=3):
    shape = r.shape()
    a, b = (shape, r.broadcast(shape)) if r.maybe() else (r.broadcast(shape), r.broadcast(shape))
    if r.maybe():
        a, b = b, a
    return r.data(dtype, a, special, low, high), r.data(dtype, b, special, low, high)


@family("binary", 6)
def arithmetic(r):
    op = r.pick(["Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
                 "Mod", "Pow", "PRelu", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "And", "Or", "Xor"])
    opset = r.opset(op, low=8 if op in ("Max", "Min") else 7)
    wide = NUMBERS if opset >= 14 else FLOATS + ["i32", "i64", "u32", "u64"]
    dtype, attrs, special = r.pick(wide), {}, r.maybe(0.3)
    if op in ("Max", "Min") and opset < 12 or op in ("Greater", "Less", "PRelu") and opset < 9:
        dtype = r.pick(FLOATS)
    if op in ("And", "Or", "Xor"):
        dtype = "bool"
    if op == "Equal":
        dtype = r.pick(NUMBERS + ["bool"]) if opset >= 11 else r.pick(["i32", "i64", "bool"])
    if op.startswith("Bitwise"):
        dtype = r.pick(INTS)
    if op == "BitShift":
        dtype, attrs = r.pick(["u8", "u16", "u32", "u64"]), {"direction": r.pick(["LEFT", "RIGHT"])}
        x, y = two(r, dtype, True)
        return node_case(r, op, [x, (y % (DTYPES[dtype]().itemsize * 8)).astype(y.dtype)], opset, attrs)
    if op == "PRelu":
        dtype = r.pick(FLOATS + (["i32", "i64", "u32", "u64"] if opset >= 9 else []))
        x = r.data(dtype, r.shape(low=1), special and dtype[0] == "f")
        return node_case(r, op, [x, r.data(dtype, r.broadcast(x.shape))], opset)
    if op == "Pow":
        dtype = r.pick(["f32", "f64", "f16"] + (["i32", "i64"] if opset >= 12 else []))
        other = dtype if opset < 12 else r.pick(["f32", "f64", "i32", "i64"])
        x, y = two(r, dtype, False)
        y = r.data(other, y.shape, low=0 if dtype[0] == "i" else -3)
        return node_case(r, op, [np.abs(x) if other[0] == "f" else x, y], opset)
    x, y = two(r, dtype, special)
    if op in ("Div", "Mod"):
        if dtype[0] in "iu":
            y = np.where(y == 0, 3, y).astype(y.dtype)
            if dtype[0] == "i":
                y = np.where(y == -1, -2, y).astype(y.dtype)
        if op == "Mod":
            if opset < 10:
                opset = 10
            if dtype == "f16":
                dtype, x, y = "f32", x.astype(np.float32), y.astype(np.float32)
            attrs = {"fmod": 1} if dtype[0] == "f" else r.attrs(fmod=r.randint(0, 1))
    return node_case(r, op, [x, y], opset, attrs)


@family("binary", 2)
def variadic(r):
    op = r.pick(["Max", "Min", "Mean", "Sum"])
    opset = r.opset(op, low=8)
    dtype = r.pick(NUMBERS if op in ("Max", "Min") and opset >= 12 else FLOATS)
    shape = r.shape()
    special = r.maybe(0.3)
    return node_case(r, op, [r.data(dtype, r.broadcast(shape), special) for _ in range(r.randint(1, 4))], opset)


@family("binary", 2)
def where(r):
    shape = r.shape()
    dtype = r.pick(ANY)
    return node_case(r, "Where", [r.data("bool", r.broadcast(shape)), r.data(dtype, r.broadcast(shape), True),
                                  r.data(dtype, r.broadcast(shape), True)], r.opset("Where"))


@family("unary", 2)
def clip(r):
    opset = r.opset("Clip")
    dtype = r.pick(NUMBERS if opset >= 12 else FLOATS)
    x = r.data(dtype, r.shape(), r.maybe(0.4), -9, 9)
    low, high = r.pick([-2, 0, 5]), r.pick([3, 1, 6])
    if dtype[0] == "u":
        low = abs(low)
    if opset < 11:
        return node_case(r, "Clip", [x], opset, r.attrs(min=float(low), max=float(high)))
    bound = lambda v: np.array(v, x.dtype) if r.maybe(0.7) else None
    return node_case(r, "Clip", [x, bound(low), bound(high)], opset)


@family("cast", 3)
def cast(r):
    opset = r.opset("Cast")
    small = ["bf16"] if opset >= 13 else []
    small += ["f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"] if opset >= 19 else []
    small += ["i4", "u4"] if opset >= 21 else []
    a, b = r.pick(ANY + small), r.pick(ANY + small)
    special = a[0] in "fb" and b[0] in "fb" and a != "bool" and r.maybe(0.5)
    if b.startswith("f8") and a in ("f64", "i64", "u64", "i32"):
        a = "f32"
    x = r.data(a, r.shape(), special, 0 if b[0] == "u" else -7, 7)
    if special and r.maybe():
        x = (r.data(a, x.shape).astype(np.float64) * r.pick([1.0, 60, 500.0, 1e5])).astype(x.dtype)
    attrs = {"to": np_type(b)}
    if opset >= 19 and b.startswith("f8") and r.maybe():
        attrs["saturate"] = r.randint(0, 1)
    return node_case(r, "Cast", [x], opset, attrs, rtol=0, atol=0)


def np_type(name):
    from onnx import helper
    return helper.np_dtype_to_tensor_dtype(np.dtype(DTYPES[name]))


@family("cast")
def integers_wrap(r):
    a, b = r.pick(INTS), r.pick(INTS + ["bool", "f32", "f64", "f16"])
    return node_case(r, "Cast", [r.data(a, r.shape(), True)], r.opset("Cast", low=13), {"to": np_type(b)}, rtol=1e-6)


@family("cast")
def cast_like(r):
    a, b = r.pick(ANY), r.pick(ANY)
    x = r.data(a, r.shape(), False, 0 if b[0] == "u" else -7, 7)
    return node_case(r, "CastLike", [x, r.data(b, r.shape())], r.opset("CastLike"))
