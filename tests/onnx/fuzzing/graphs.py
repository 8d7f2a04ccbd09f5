"""Small graphs: shape arithmetic, control flow, sequences, chains of nodes."""

import numpy as np
from onnx import TensorProto, helper

from .base import Case, family, i64, ints, node_case
from .elementwise import np_type


class Graph:
    """Nodes in the making, each with the values that it gives, so that what follows fits."""

    def __init__(self, r, opset):
        self.r, self.opset, self.nodes, self.inputs, self.values, self.constants = r, opset, [], {}, {}, set()

    def input(self, value, constant=False):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.values[name] = value
        if constant:
            self.constants.add(name)
        return name

    def const(self, value):
        name = f"k{len(self.values)}"
        self.nodes.append(helper.make_node("Constant", [], [name], value=helper.make_tensor(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape, value.reshape(-1).tolist())))
        self.values[name] = value
        return name

    def add(self, op, args, result, **attrs):
        """A node of which NumPy knows the value."""
        name = f"t{len(self.values)}"
        self.nodes.append(helper.make_node(op, args, [name], **attrs))
        self.values[name] = np.asarray(result)
        return name

    def case(self, outputs, **more):
        used = {n for node in self.nodes for n in node.input}
        for name in [k for k in self.inputs if k not in used]:
            del self.inputs[name]
        sized = {k for k, v in self.inputs.items() if v.ndim < 2 and v.dtype.kind in "iu"}
        return Case(self.nodes, self.inputs, outputs, self.opset, sized=sized, constant=self.constants, **more)


def dim_of(g, x):
    """An extent of a tensor, as a tensor of shape [1], some arithmetic around it."""
    r, v = g.r, g.values[x]
    i = r.randrange(v.ndim)
    shape = g.add("Shape", [x], ints(v.shape))
    how = r.pick(["gather", "slice", "scalar"])
    if how == "gather":
        at = g.add("Gather", [shape, g.const(i64(i - v.ndim if r.maybe(0.3) else i))], ints([v.shape[i]]), axis=0)
    elif how == "slice":
        at = g.add("Slice", [shape, g.const(i64(i)), g.const(i64(i + 1)), g.const(i64(0))], ints([v.shape[i]]))
    else:
        one = g.add("Gather", [shape, g.const(np.array(i))], np.array(v.shape[i]), axis=0)
        one_axis = g.const(i64(0))
        at = g.add("Unsqueeze", [one, one_axis], ints([v.shape[i]]))
    return at


def arithmetic(g, n):
    """Some number from one of shape [1]; stays in 1..=64."""
    r = g.r
    for _ in range(r.randint(0, 3)):
        v = int(g.values[n][0])
        op, k = r.pick([("Add", 1), ("Mul", 2), ("Sub", 1), ("Div", 2), ("Max", 2), ("Min", 3), ("Mod", 3)])
        w = {"Add": v + k, "Mul": v * k, "Sub": v - k, "Div": int(v / k), "Max": max(v, k), "Min": min(v, k), "Mod": v % k}[op]
        if 1 <= w <= 64:
            n = g.add(op, [n, g.const(i64(k))], ints([w]))
        if r.maybe(0.15):
            n = g.add("Cast", [g.add("Cast", [n], g.values[n].astype(np.float32), to=1)], g.values[n], to=7)
    return n


@family("graph", 4)
def shapes(r):
    """A tensor through nodes whose shape inputs are computed from shapes."""
    g = Graph(r, r.randint(13, 22))
    x = g.input(r.data(r.pick(["f32", "f32", "i64", "i32"]), r.shape(low=1, high=4, zero=0.02)))
    outs = []
    for _ in range(r.randint(2, 5)):
        v = g.values[x]
        op = r.pick(["reshape", "slice", "expand", "tile", "pad", "constant", "range", "flatten", "transpose", "split", "where", "concat", "reduce", "gather"])
        if v.size > 300 and op in ("tile", "pad", "expand", "concat"):
            op = "reduce"
        if v.ndim == 0 and op not in ("expand", "where"):
            op = "expand"
        if op == "reshape":
            parts, dims = [], []
            cut = r.randint(0, v.ndim)
            for i in range(cut):
                shape = g.add("Shape", [x], ints(v.shape))
                parts.append(g.add("Gather", [shape, g.const(i64(i))], ints([v.shape[i]]), axis=0))
                dims.append(v.shape[i])
            if int(np.prod(dims)) == 0 or v.size == 0:
                continue
            parts.append(g.const(i64(-1)))
            if r.maybe(0.3):
                r.shuffle(parts)
            target = np.concatenate([g.values[p] for p in parts])
            x = g.add("Reshape", [x, g.add("Concat", parts, target, axis=0)], v.reshape(target))
        elif op == "slice":
            n = arithmetic(g, dim_of(g, x))
            axis = r.randrange(v.ndim)
            start = g.const(i64(r.randint(-3, 2)))
            if r.maybe(0.3):
                start = g.add("Neg", [n], -g.values[n])
            step = r.pick([1, 1, 2])
            at = [slice(None)] * v.ndim
            a, b = int(g.values[start][0]), int(g.values[n][0])
            at[axis] = slice(a, b, step)
            x = g.add("Slice", [x, start, n, g.const(i64(axis)), g.const(i64(step))], v[tuple(at)])
        elif op == "expand":
            n = arithmetic(g, dim_of(g, x)) if v.ndim else g.input(i64(3))
            if int(g.values[n][0]) * v.size > 2000:
                continue
            shape = g.add("Concat", [n, g.const(ints([1] * v.ndim))], ints([int(g.values[n][0])] + [1] * v.ndim), axis=0)
            x = g.add("Expand", [x, shape], np.broadcast_to(v, (int(g.values[n][0]),) + v.shape))
        elif op == "tile":
            n = g.add("Min", [arithmetic(g, dim_of(g, x)), g.const(i64(3))], 0)
            g.values[n] = np.minimum(g.values[g.nodes[-1].input[0]], 3)
            k = int(g.values[n][0])
            reps = g.add("Concat", [n, g.const(ints([1] * (v.ndim - 1)))], ints([k] + [1] * (v.ndim - 1)), axis=0)
            x = g.add("Tile", [x, reps], np.tile(v, [k] + [1] * (v.ndim - 1)))
        elif op == "pad":
            n = g.add("Min", [arithmetic(g, dim_of(g, x)), g.const(i64(4))], 0)
            g.values[n] = np.minimum(g.values[g.nodes[-1].input[0]], 4)
            k = int(g.values[n][0])
            pads = g.add("Concat", [g.const(ints([0] * v.ndim)), n, g.const(ints([0] * (v.ndim - 1)))], ints([0] * v.ndim + [k] + [0] * (v.ndim - 1)), axis=0)
            x = g.add("Pad", [x, pads], np.pad(v, [(0, k)] + [(0, 0)] * (v.ndim - 1)))
        elif op == "constant":
            shape = g.add("Shape", [x], ints(v.shape))
            ones = g.add("ConstantOfShape", [shape], np.ones(v.shape, v.dtype), value=helper.make_tensor(
                "v", helper.np_dtype_to_tensor_dtype(v.dtype), [1], [2]))
            x = g.add(r.pick(["Add", "Mul"]), [x, ones], v)
        elif op == "range":
            n = g.add("Squeeze", [dim_of(g, x), g.const(i64(0))], 0)
            d = g.values[n] = np.array(g.values[g.nodes[-1].input[0]][0])
            zero, one = g.const(np.array(0)), g.const(np.array(1))
            y = g.add("Range", [zero, n, one], np.arange(int(d)))
            if r.maybe():
                outs.append(y)
            else:
                where = next((i for i in range(v.ndim) if v.shape[i] == d), None)
                if where is not None and d > 0:
                    x = g.add("Gather", [x, y], v, axis=where)
        elif op == "flatten":
            axis = r.randint(0, v.ndim)
            x = g.add("Flatten", [x], v.reshape(int(np.prod(v.shape[:axis])), -1) if v.size else np.zeros((int(np.prod(v.shape[:axis])), int(np.prod(v.shape[axis:])))), axis=axis)
        elif op == "transpose":
            perm = r.sample(range(v.ndim), v.ndim)
            x = g.add("Transpose", [x], v.transpose(perm), perm=perm)
        elif op == "where":
            c = g.add("Equal", [x, x], v == v) if r.maybe() else g.add("Greater", [x, g.const(np.zeros((), v.dtype))], v > 0)
            x = g.add("Where", [c, x, g.const(np.full((), 7, v.dtype))], v)
        elif op == "concat":
            axis = r.randrange(v.ndim)
            x = g.add("Concat", [x, x], np.concatenate([v, v], axis), axis=axis)
        elif op == "reduce":
            axis = r.randrange(v.ndim)
            keep = r.randint(0, 1)
            if v.shape[axis] == 0:
                continue
            x = g.add("ReduceMax", [x, *([g.const(i64(axis))] if g.opset >= 18 else [])], v.max(axis=axis, keepdims=bool(keep)), keepdims=keep,
                      **({} if g.opset >= 18 else {"axes": [axis]}))
        elif op == "gather":
            n = g.add("Sub", [dim_of(g, x), g.const(i64(1))], 0)
            k = int(g.values[g.nodes[-1].input[0]][0]) - 1
            g.values[n] = ints([k])
            axis = next((i for i in range(v.ndim) if v.shape[i] > k >= 0), None)
            if axis is None:
                continue
            x = g.add("Gather", [x, n], v.take([k], axis), axis=axis)
        elif op == "split":
            axis = r.randrange(v.ndim)
            d = v.shape[axis]
            if d < 2:
                continue
            k = r.randint(1, d - 1)
            a, b = f"s{len(g.values)}", f"s{len(g.values) + 1}"
            g.nodes.append(helper.make_node("Split", [x, g.const(i64(k, d - k))], [a, b], axis=axis))
            g.values[a], g.values[b] = np.split(v, [k], axis)
            x = r.pick([a, b])
            g.values[f"spare{len(g.values)}"] = v
    return g.case([*outs, x] if x in {o for n in g.nodes for o in n.output} else [*outs, g.add("Identity", [x], g.values[x])])


def body(nodes, inputs, outputs):
    info = lambda pair: helper.make_tensor_value_info(pair[0], np_type(pair[1]) if isinstance(pair[1], str) else pair[1], pair[2])
    return helper.make_graph(nodes, "body", [info(p) for p in inputs], [info(p) for p in outputs])


@family("control", 2)
def branch(r):
    """If, with branches that capture and may differ in shape."""
    x = r.data("f32", r.shape(low=1, high=3, zero=0.02))
    c = np.array(r.maybe(), np.bool_).reshape(r.pick([(), (1,)]))
    n = helper.make_node

    def arm(k):
        return r.pick([
            ([n("Relu", ["x0"], [f"b{k}"])], list(x.shape)),
            ([n("Neg", ["x0"], [f"a{k}"]), n("Exp", [f"a{k}"], [f"b{k}"])], list(x.shape)),
            ([n("Concat", ["x0", "x0"], [f"b{k}"], axis=0)], [None] * x.ndim),
            ([n("Identity", ["x0"], [f"b{k}"])], list(x.shape))])
    (t, ts), (e, es) = arm(1), arm(2)
    none = lambda s: [None] * x.ndim
    node = n("If", ["x1"], ["y0"], then_branch=body(t, [], [("b1", "f32", none(ts))]), else_branch=body(e, [], [("b2", "f32", none(es))]))
    return Case([node], {"x0": x, "x1": c}, ["y0"], r.randint(13, 21), sized=("x1",))


@family("control", 3)
def loop(r):
    """Loop: carried values, stacked values, an end by condition or count."""
    x = r.data("f32", r.shape(low=0, high=2, zero=0))
    trips = np.array(r.randint(0, 5), np.int64)
    n, s = helper.make_node, list(x.shape)
    stop = r.maybe()
    nodes = [n("Add", ["v_in", "x0"], ["v_out"]), n("Mul", ["v_in", "x0"], ["scan"])]
    if stop:
        nodes += [n("Constant", [], ["lim"], value=helper.make_tensor("lim", TensorProto.INT64, [], [r.randint(0, 4)])), n("Less", ["i", "lim"], ["c_out"])]
    else:
        nodes.append(n("Identity", ["c_in"], ["c_out"]))
    if r.maybe(0.4):
        nodes.insert(1, n("Cast", ["i"], ["fi"], to=1))
        nodes[2] = n("Mul", ["v_in", "fi"], ["scan"])
    b = body(nodes, [("i", "i64", []), ("c_in", "bool", []), ("v_in", "f32", s)], [("c_out", "bool", []), ("v_out", "f32", s), ("scan", "f32", s)])
    inputs = {"x0": x, "x1": trips, "x2": np.array(r.maybe(0.85), np.bool_), "x3": r.data("f32", x.shape)}
    args = ["x1" if not stop or r.maybe() else "", "x2" if r.maybe(0.7) else "", "x3"]
    if not args[1] and not stop:
        nodes[-1 if nodes[-1].op_type == "Identity" else [k for k, m in enumerate(nodes) if m.op_type == "Identity"][0]] = n("Identity", ["c_in"], ["c_out"])
    node = n("Loop", args, ["y0", "y1"], body=b)
    return Case([node], {k: v for k, v in inputs.items() if k in args or k == "x0"}, ["y0", "y1"], r.randint(13, 21), sized=("x0", "x1", "x2", "x3"))


@family("control", 2)
def scan(r):
    length, k = r.randint(1, 4), r.randint(1, 3)
    axis = r.randint(0, 1)
    x = r.data("f32", (length, k) if axis == 0 else (k, length))
    n = helper.make_node
    b = body([n("Add", ["s_in", "e"], ["s_out"]), n("Mul", ["s_in", "e"], ["o"])],
             [("s_in", "f32", [k]), ("e", "f32", [k])], [("s_out", "f32", [k]), ("o", "f32", [k])])
    attrs = dict(num_scan_inputs=1, **r.attrs(scan_input_axes=[axis], scan_input_directions=[r.randint(0, 1)],
                 scan_output_directions=[r.randint(0, 1)], scan_output_axes=[r.randint(0, 1) - r.pick([0, 2])]))
    if axis:
        attrs["scan_input_axes"] = [r.pick([1, -1])]
    elif r.maybe():
        attrs.pop("scan_input_axes", None)
    else:
        attrs["scan_input_axes"] = [0]
    if attrs.get("scan_output_axes") in ([-1], [-2], [0], [1], None):
        pass
    node = n("Scan", ["x0", "x1"], ["y0", "y1"], body=b, **attrs)
    return Case([node], {"x0": r.data("f32", (k,)), "x1": x}, ["y0", "y1"], r.randint(11, 21))


@family("sequence")
def sequence(r):
    g = Graph(r, r.randint(13, 21))
    shape = r.shape(low=1, high=3, zero=0)
    xs = [g.input(r.data("f32", shape)) for _ in range(r.randint(1, 3))]
    n = helper.make_node
    how = r.pick(["construct", "split", "empty"])
    length = len(xs)
    if how == "construct":
        g.nodes.append(n("SequenceConstruct", xs, ["s0"]))
    elif how == "split":
        axis = r.randrange(len(shape))
        k = r.randint(1, shape[axis])
        g.nodes.append(n("SplitToSequence", [xs[0], g.const(np.array(k))] if r.maybe(0.7) else [xs[0]], ["s0"], axis=axis,
                         **({"keepdims": 1})))
        length = -(-shape[axis] // k) if len(g.nodes[-1].input) > 1 else shape[axis]
    else:
        g.nodes += [n("SequenceEmpty", [], ["e"], dtype=1), n("SequenceInsert", ["e", xs[0]], ["s0"])]
        length = 1
    s = "s0"
    for i in range(r.randint(0, 2)):
        if r.maybe() and how != "split":
            g.nodes.append(n("SequenceInsert", [s, xs[-1], g.const(np.array(r.randint(-length, length)))], [f"q{i}"]))
            length += 1
        elif length > 1:
            g.nodes.append(n("SequenceErase", [s, g.const(np.array(r.randint(-length, length - 1)))], [f"q{i}"]))
            length -= 1
        else:
            continue
        s = f"q{i}"
    outs = ["y0"]
    last = r.pick(["at", "concat", "stack", "length"])
    if last == "at":
        g.nodes.append(n("SequenceAt", [s, g.const(np.array(r.randint(-length, length - 1)))], ["y0"]))
    elif last == "length":
        g.nodes.append(n("SequenceLength", [s], ["y0"]))
    elif last == "concat" or how == "split":
        g.nodes.append(n("ConcatFromSequence", [s], ["y0"], axis=r.randint(-len(shape), len(shape) - 1) if how != "split" else axis))
    else:
        g.nodes.append(n("ConcatFromSequence", [s], ["y0"], axis=r.randint(-len(shape), len(shape)), new_axis=1))
    return g.case(outs)


@family("signal", 2)
def dft(r):
    opset = r.opset("DFT")
    shape = [r.randint(1, 6) for _ in range(r.randint(2, 3))]
    k = r.pick([1, 2])
    one = r.randint(0, 1) if k == 1 else 0
    axis = r.randint(-len(shape) - 1, -2) if r.maybe() else r.randint(0, len(shape) - 1)
    x = r.data("f32", [*shape, k])
    length = np.array(r.randint(1, 7), np.int64) if r.maybe(0.4) else None
    attrs = r.attrs(inverse=0 if one else r.randint(0, 1), onesided=one)
    if opset < 20:
        return node_case(r, "DFT", [x, length], opset, {"axis": axis, **attrs}, rtol=1e-3, atol=1e-4)
    return node_case(r, "DFT", [x, length, np.array(axis, np.int64)], opset, attrs, rtol=1e-3, atol=1e-4)


@family("signal")
def stft(r):
    n = r.randint(8, 20)
    frame = r.pick([3, 4, 8])
    k = r.pick([1, 2])
    window = r.data("f32", (frame,)) if r.maybe(0.7) else None
    length = np.array(frame, np.int64) if window is None or r.maybe() else None
    one = r.randint(0, 1) if k == 1 else 0
    return node_case(r, "STFT", [r.data("f32", [r.randint(1, 2), n, k]), np.array(r.randint(1, 4), np.int64), window, length],
                     17, {"onesided": one}, rtol=1e-3, atol=1e-3)


@family("signal")
def windows(r):
    op = r.pick(["HannWindow", "HammingWindow", "BlackmanWindow"])
    return node_case(r, op, [np.array(r.randint(1, 12), r.pick([np.int32, np.int64]))], 17,
                     r.attrs(periodic=r.randint(0, 1), output_datatype=r.pick([1, 11])))
