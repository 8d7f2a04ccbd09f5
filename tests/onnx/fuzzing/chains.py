"""Chains of nodes of all kinds, which passes fuse: element-wise, moves, reductions, products, branches of values."""

import numpy as np

from .base import family
from .graphs import Graph


@family("chain")
def chain(r):
    """Values that are used again and again, views and copies of them among the outputs."""
    g = Graph(r, r.randint(13, 17))
    shape = tuple(r.pick([1, 2, 3, 4]) for _ in range(r.randint(2, 4)))
    values = [g.input(r.data("f32", shape)) for _ in range(r.randint(1, 3))]
    for _ in range(r.randint(4, 9)):
        x = r.pick(values[-3:])
        v = g.values[x]
        kind = r.pick(["unary", "binary", "binary", "moved", "reduce", "softmax", "matmul", "reshape", "slice", "concat", "where", "norm", "pad", "argmax", "split"])
        if kind == "unary":
            op = r.pick(["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Identity", "Exp"])
            f = {"Relu": lambda v: np.maximum(v, 0), "Sigmoid": lambda v: 1 / (1 + np.exp(-v)), "Tanh": np.tanh, "Neg": np.negative,
                 "Abs": np.abs, "Identity": lambda v: v, "Exp": lambda v: np.exp(np.minimum(v, 3))}[op]
            if op == "Exp":
                x = g.add("Min", [x, g.const(np.array(3, np.float32))], np.minimum(v, 3))
            values.append(g.add(op, [x], f(v)))
        elif kind == "binary":
            others = [o for o in values if g.values[o].ndim <= v.ndim and all(
                a == b or a == 1 for a, b in zip(g.values[o].shape[::-1], v.shape[::-1]))]
            y = r.pick(others)
            op = r.pick(["Add", "Sub", "Mul", "Max"])
            f = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum}[op]
            values.append(g.add(op, r.pick([[x, y], [y, x]]), np.clip(f(v, g.values[y]), -1e6, 1e6)))
        elif kind == "moved" and v.ndim:
            perm = r.sample(range(v.ndim), v.ndim)
            values.append(g.add("Transpose", [x], v.transpose(perm), perm=perm))
        elif kind == "reduce" and v.ndim:
            axis, keep = r.randrange(v.ndim), r.randint(0, 1)
            op = r.pick(["ReduceMax", "ReduceMean"])
            f = np.max if op == "ReduceMax" else np.mean
            values.append(g.add(op, [x], f(v, axis=axis, keepdims=bool(keep)), axes=[axis], keepdims=keep))
        elif kind == "softmax" and v.ndim:
            values.append(g.add("Softmax", [x], np.zeros(v.shape, np.float32), axis=r.randrange(-v.ndim, v.ndim)))
        elif kind == "matmul" and v.ndim >= 2:
            perm = [*range(v.ndim - 2), v.ndim - 1, v.ndim - 2]
            y = g.add("Transpose", [x], v.transpose(perm), perm=perm)
            values.append(g.add("MatMul", [x, y], v @ v.transpose(perm)))
        elif kind == "reshape" and v.ndim:
            cut = r.randint(0, v.ndim)
            values.append(g.add("Flatten", [x], v.reshape(int(np.prod(v.shape[:cut])), -1), axis=cut))
        elif kind == "slice" and v.ndim:
            axis = r.randrange(v.ndim)
            step = r.pick([1, -1, 2])
            at = [slice(None)] * v.ndim
            at[axis] = slice(None, None, step)
            ends = [2**31 - 1] if step > 0 else [-2**31]
            starts = [0] if step > 0 else [2**31 - 1]
            i = lambda a: g.const(np.array(a, np.int64))
            values.append(g.add("Slice", [x, i(starts), i(ends), i([axis]), i([step])], v[tuple(at)]))
        elif kind == "concat" and v.ndim:
            axis = r.randrange(v.ndim)
            alike = [o for o in values if g.values[o].ndim == v.ndim and all(
                a == b or k == axis for k, (a, b) in enumerate(zip(g.values[o].shape, v.shape)))]
            y = r.pick(alike)
            if v.size < 300:
                values.append(g.add("Concat", [x, y, x], np.concatenate([v, g.values[y], v], axis), axis=axis))
        elif kind == "where":
            c = g.add("Greater", [x, g.const(np.array(0.1, np.float32))], v > 0.1)
            values.append(g.add("Where", [c, x, g.const(np.array(-2, np.float32))], np.where(v > 0.1, v, -2)))
        elif kind == "norm" and v.ndim and v.shape[-1] > 1:
            mean = g.add("ReduceMean", [x], v.mean(-1, keepdims=True), axes=[-1], keepdims=1)
            d = g.add("Sub", [x, mean], v - v.mean(-1, keepdims=True))
            values.append(g.add("Tanh", [d], np.tanh(g.values[d])))
        elif kind == "pad" and v.ndim and v.size < 300:
            pads = [r.randint(0, 1) for _ in range(2 * v.ndim)]
            widths = list(zip(pads[:v.ndim], pads[v.ndim:]))
            values.append(g.add("Pad", [x, g.const(np.array(pads, np.int64))], np.pad(v, widths)))
        elif kind == "argmax" and v.ndim:
            axis = r.randrange(v.ndim)
            k = g.add("ReduceMin", [x], v.min(axis=axis, keepdims=True), axes=[axis], keepdims=1)
            e = g.add("Equal", [x, k], v == v.min(axis=axis, keepdims=True))
            values.append(g.add("Cast", [e], g.values[e].astype(np.float32), to=1))
        elif kind == "split" and v.ndim and v.shape[0] > 1:
            a, b = f"s{len(g.values)}a", f"s{len(g.values)}b"
            from onnx import helper
            g.nodes.append(helper.make_node("Split", [x, g.const(np.array([1, v.shape[0] - 1], np.int64))], [a, b], axis=0))
            g.values[a], g.values[b] = v[:1], v[1:]
            values += [a, b]
    made = {o for n in g.nodes for o in n.output}
    outs = [v for v in values if v in made]
    outs = list(dict.fromkeys([*r.sample(outs, min(len(outs), r.randint(0, 2))), *outs[-1:]]))
    return g.case(outs or [g.add("Identity", [values[0]], g.values[values[0]])], rtol=1e-3, atol=1e-3)
