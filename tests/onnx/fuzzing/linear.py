"""Matrix products, quantization, recurrent networks, attention."""

import numpy as np

from .base import FLOATS, Case, family, i64, ints, node_case


@family("matmul", 4)
def matmul(r):
    op = r.pick(["MatMul", "MatMul", "MatMulInteger", "QLinearMatMul"])
    m, k, n = (0 if r.maybe(0.03) else r.pick([1, 2, 3, 5, 8, 17]) for _ in range(3))
    batch = r.shape(high=3, limit=30, zero=0.02)
    a, b = [*r.broadcast(batch), m, k], [*r.broadcast(batch), k, n]
    if op == "MatMul":
        if r.maybe(0.15):
            a = [k]
        elif r.maybe(0.15):
            b = [k]
        opset = r.opset(op)
        dtype = r.pick(FLOATS + (["i32", "i64", "u32"] if opset >= 9 else []))
        return node_case(r, op, [r.data(dtype, a), r.data(dtype, b)], opset)
    s, t = r.pick(["u8", "i8"]), r.pick(["u8", "i8"])
    x, y = r.data(s, a, low=-99, high=99), r.data(t, b, low=-99, high=99)
    za, zb = r.data(s, (), low=-9, high=9), r.data(t, (n,) if r.maybe(0.3) and n else (), low=-9, high=9)
    if op == "MatMulInteger":
        return node_case(r, op, [x, y, za if r.maybe(0.7) else None, zb if r.maybe() else None], r.opset(op))
    scale = lambda shape=(): np.asarray(r.data("f32", shape, low=0.01, high=0.3))
    return node_case(r, op, [x, scale(), za, y, scale(zb.shape), zb, scale() * 20, r.data(r.pick(["u8", "i8"]), (), low=-9, high=9)],
                     r.opset(op), rtol=0, atol=1)


@family("matmul", 2)
def gemm(r):
    opset = r.opset("Gemm")
    m, k, n = (r.pick([1, 2, 3, 5, 8, 17]) for _ in range(3))
    dtype = r.pick(FLOATS + (["i32", "i64"] if opset >= 9 else []))
    attrs = r.attrs(transA=r.randint(0, 1), transB=r.randint(0, 1))
    if dtype[0] == "f":
        attrs.update(r.attrs(alpha=r.pick([0.5, 2.0]), beta=r.pick([0.25, 3.0, 0.0])))
    a = r.data(dtype, (k, m) if attrs.get("transA") else (m, k))
    b = r.data(dtype, (n, k) if attrs.get("transB") else (k, n))
    c = r.data(dtype, r.pick([(m, n), (1, n), (m, 1), (1, 1), (n,), (1,), ()])) if opset < 11 or r.maybe(0.7) else None
    return node_case(r, "Gemm", [a, b, c], opset, attrs)


@family("matmul", 3)
def einsum(r):
    text, arrays, sizes = "", [], {}
    letters = r.sample("abcdeXY", r.randint(1, 4))
    dtype = r.pick(["f32", "f64", "i32"])
    terms = []
    dots = r.maybe(0.25)
    batch = r.shape(high=2, zero=0, limit=20) if dots else ()
    for _ in range(r.randint(1, 3)):
        term = r.sample(letters, r.randint(0, len(letters)))
        if term and r.maybe(0.1):
            term.append(r.pick(term))
        dims = [sizes.setdefault(c, r.pick([1, 2, 3, 4])) for c in term]
        if dots and r.maybe(0.8):
            own = r.broadcast(batch)
            at = r.randint(0, len(term))
            term[at:at] = ["..."]
            dims[at:at] = own
        terms.append("".join(term))
        arrays.append(r.data(dtype, dims))
    used = [c for c in letters if any(c in t for t in terms)]
    text = (" , " if r.maybe(0.1) else ",").join(terms)
    if r.maybe(0.8):
        out = r.sample(used, r.randint(0, len(used)))
        if any("..." in t for t in terms):
            out.insert(r.randint(0, len(out)), "...")
        text += "->" + "".join(out)
    return node_case(r, "Einsum", arrays, r.opset("Einsum"), {"equation": text})


@family("matmul")
def det(r):
    n = r.randint(1, 4)
    return node_case(r, "Det", [r.data(r.pick(["f32", "f64"]), [*r.shape(high=2, zero=0, limit=10), n, n])], r.opset("Det"), rtol=1e-3, atol=1e-3)


QUANTIZED = {10: ["u8", "i8"], 13: ["u8", "i8"], 19: ["u8", "i8", "f8e4m3fn", "f8e5m2"], 21: ["u8", "i8", "u16", "i16", "u4", "i4", "f8e4m3fn"],
             23: ["u8", "i8", "u16", "i16", "u4", "i4"], 24: ["u8", "i8", "i16"], 25: ["u8", "i8", "u16", "u4"]}


@family("quantize", 4)
def linear(r):
    op = r.pick(["QuantizeLinear", "DequantizeLinear"])
    opset = r.opset(op)
    types = QUANTIZED[max(k for k in QUANTIZED if k <= opset)]
    q = r.pick(types)
    shape = r.shape(low=1, zero=0.03)
    axis = r.axis(len(shape))
    attrs = {"axis": axis} if opset >= 13 else {}
    kind = r.pick(["tensor", "axis", "block"] if opset >= 21 else ["tensor", "axis"] if opset >= 13 else ["tensor"])
    if kind == "tensor":
        dims = r.pick([(), (1,)])
        if opset >= 13:
            attrs = r.attrs(axis=axis)
    elif kind == "axis":
        dims = (shape[axis],)
        if axis in (1,) and r.maybe(0.3):
            attrs = {}
    else:
        if shape[axis] == 0:
            return linear(r)
        size = r.randint(1, shape[axis])
        dims = list(shape)
        dims[axis] = -(-shape[axis] // size)
        size = -(-shape[axis] // dims[axis])
        if -(-shape[axis] // size) != dims[axis]:
            return linear(r)
        attrs["block_size"] = size
    f = "f32" if opset < 19 else r.pick(["f32", "f32", "f16"])
    scale = r.data(f, dims, low=0.05, high=2)
    low = 0 if q[0] == "u" or opset < 21 and op == "X" else -5
    zero = (r.data(q, dims, low=low, high=5) if q[0] != "f" else np.zeros(dims, r.data(q, ()).dtype)) if r.maybe(0.7) else None
    if op == "DequantizeLinear":
        x = r.data(q, shape, True) if q[0] in "iu" else r.data(q, shape)
        return node_case(r, op, [x, scale, zero], opset, attrs)
    if zero is None and opset >= 21 and r.maybe(0.6):
        from .elementwise import np_type
        attrs["output_dtype"] = np_type(q)
    x = r.data(f, shape, low=-40, high=40)
    if r.maybe(0.3) and f == "f32":
        x = x.copy()
        flat = x.reshape(-1)
        if flat.size:
            flat[r.randrange(flat.size)] = r.pick([np.inf, -np.inf, 1e30, 0.5])
    if opset >= 19 and q.startswith("f8"):
        attrs.update(r.attrs(saturate=r.randint(0, 1)))
    return node_case(r, op, [x, scale, zero], opset, attrs, rtol=0, atol=1 if f == "f16" and q[0] in "iu" else 0)


@family("quantize")
def dynamic(r):
    return node_case(r, "DynamicQuantizeLinear", [r.data("f32", r.shape(zero=0), low=r.pick([-9, 1, 0]), high=r.pick([9, 2, 1.5]))],
                     r.opset("DynamicQuantizeLinear"), outputs=3, rtol=1e-6, atol=1e-6)


ACTS = ["Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"]


def activations(r, count, attrs):
    names = [r.pick(ACTS) for _ in range(count)]
    alphas, betas = [], []
    needs = {"Affine": (1, 1), "LeakyRelu": (1, 0), "ThresholdedRelu": (1, 0), "ScaledTanh": (1, 1), "HardSigmoid": (1, 1), "Elu": (1, 0)}
    for name in names:
        a, b = needs.get(name, (0, 0))
        alphas += [round(r.uniform(0.1, 0.9), 2)] * a
        betas += [round(r.uniform(0.1, 0.9), 2)] * b
    attrs["activations"] = names
    if alphas:
        attrs["activation_alpha"] = alphas
    if betas:
        attrs["activation_beta"] = betas


@family("recurrent")
def recurrent(r):
    op = r.pick(["RNN", "GRU", "LSTM"])
    opset = r.opset(op)
    gates, acts = {"RNN": (1, 1), "GRU": (3, 2), "LSTM": (4, 3)}[op]
    direction = r.pick(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    s, b, i, h = r.randint(1, 4), r.randint(1, 3), r.randint(1, 4), r.randint(1, 4)
    attrs = {"hidden_size": h, **(r.attrs(direction=direction) if direction == "forward" else {"direction": direction})}
    if r.maybe(0.5):
        activations(r, acts * d, attrs)
    if r.maybe(0.2):
        attrs["clip"] = r.pick([0.3, 1.0])
    layout = r.randint(0, 1) if opset >= 14 and r.maybe(0.3) else 0
    if layout:
        attrs["layout"] = 1
    if op == "GRU":
        attrs.update(r.attrs(linear_before_reset=r.randint(0, 1)))
    if op == "LSTM" and r.maybe(0.2):
        attrs["input_forget"] = 1
    f = lambda *dims: r.data("f32", dims, low=-1, high=1)
    x = f(b, s, i) if layout else f(s, b, i)
    state = lambda: (f(b, d, h) if layout else f(d, b, h)) if r.maybe() else None
    args = [x, f(d, gates * h, i), f(d, gates * h, h), f(d, 2 * gates * h) if r.maybe(0.7) else None,
            r.np.integers(1, s + 1, b).astype(np.int32) if r.maybe(0.4) else None, state()]
    if op == "LSTM":
        args += [state(), f(d, 3 * h) if r.maybe(0.4) else None]
    outs = r.pick([[True, True], [True], [False, True]] + ([[True, True, True], [False, False, True]] if op == "LSTM" else []))
    return node_case(r, op, args, opset, attrs, outputs=outs, rtol=1e-3, atol=1e-4)


@family("attention", 2)
def attention(r):
    opset = r.opset("Attention")
    b, kv, per, s, t, e, ev = (r.randint(1, 3) for _ in range(7))
    q = kv * per
    past = r.randint(1, 3) if r.maybe(0.3) else 0
    four = r.maybe()
    f = lambda *dims: r.data("f32", dims, low=-1, high=1)
    attrs = r.attrs(is_causal=r.randint(0, 1), scale=r.pick([None, 0.5]), softcap=r.pick([None, 2.0, 0.0]))
    if four:
        args = [f(b, q, s, e), f(b, kv, t, e), f(b, kv, t, ev)]
    else:
        args = [f(b, s, q * e), f(b, t, kv * e), f(b, t, kv * ev)]
        attrs.update(q_num_heads=q, kv_num_heads=kv)
    total = t + past
    mask = None
    if r.maybe():
        dims = r.pick([(s, total), (1, total), (b, 1, s, total), (b, q, s, total), (1, q, s, total)])
        if r.maybe():
            mask = r.data("bool", dims)
            mask[..., 0] = True
        else:
            mask = f(*dims)
    args.append(mask)
    if past:
        args += [f(b, kv, past, e), f(b, kv, past, ev)]
    if r.maybe(0.3):
        attrs["qk_matmul_output_mode"] = r.randint(0, 3)
        outs = [True, bool(past), bool(past), True]
    else:
        outs = [True, True, True] if past else [True]
    return node_case(r, "Attention", args, opset, attrs, outputs=outs, rtol=1e-3, atol=1e-4)


@family("attention")
def rotary(r):
    b, heads, s, half = r.randint(1, 3), r.randint(1, 3), r.randint(1, 4), r.randint(1, 3)
    size = 2 * half + (2 * r.randint(0, 2) if r.maybe(0.3) else 0)
    attrs = r.attrs(interleaved=r.randint(0, 1))
    if size != 2 * half:
        attrs["rotary_embedding_dim"] = 2 * half
    if r.maybe():
        x = r.data("f32", (b, heads, s, size))
    else:
        x = r.data("f32", (b, s, heads * size))
        attrs["num_heads"] = heads
    if r.maybe():
        n = 7
        args = [x, r.data("f32", (n, half)), r.data("f32", (n, half)), r.np.integers(0, n, (b, s))]
    else:
        args = [x, r.data("f32", (b, s, half)), r.data("f32", (b, s, half))]
    return node_case(r, "RotaryEmbedding", args, r.opset("RotaryEmbedding"), attrs)
