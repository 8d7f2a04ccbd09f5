"""What generators of cases share: random shapes, values and operator sets, and the case itself."""

import collections
import functools
import random

import ml_dtypes
import numpy as np
from onnx import defs, helper

FAMILIES = {}
SIZES = [1, 2, 2, 3, 3, 4, 5, 7]
DTYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "bool": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}
FLOATS = ["f32", "f32", "f32", "f64", "f16"]
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
NUMBERS = FLOATS + INTS
ANY = NUMBERS + ["bool"]


@functools.cache
def versions_of():
    """Domain and operator to the operator sets in which it changed, ascending."""
    table = collections.defaultdict(set)
    for schema in defs.get_all_schemas_with_history():
        if not schema.deprecated:
            table[schema.domain, schema.name].add(schema.since_version)
    return {k: sorted(v) for k, v in table.items()}


def family(name, weight=1):
    """Registers a generator: from [`Random`] to [`Case`]."""
    def register(make):
        FAMILIES.setdefault(name, []).extend([make] * weight)
        return make
    return register


class Case:
    """Nodes, the values of the graph's inputs, the names of its outputs.

    `constant`: inputs that are always initializers. `sized`: inputs whose dimensions are always numbers.
    """

    def __init__(self, nodes, inputs, outputs, opset, domains=(), rtol=None, atol=None, constant=(), sized=(), functions=()):
        self.nodes, self.inputs, self.outputs, self.opset = nodes, inputs, outputs, opset
        self.domains, self.rtol, self.atol = domains, rtol, atol
        self.constant, self.sized = set(constant), set(sized)


class Random(random.Random):
    """Choices of a case; the same from the same seed."""

    def __init__(self, seed):
        super().__init__(seed)
        self.np = np.random.default_rng(self.getrandbits(64))

    def maybe(self, p=0.5):
        return self.random() < p

    def opset(self, op, low=7, high=28, domain=""):
        """An operator set between the two; each version of the operator is as likely as any other."""
        versions = [v for v in versions_of()[domain, op] if v <= high]
        versions = [v for i, v in enumerate(versions) if i + 1 == len(versions) or versions[i + 1] > low]
        i = self.randrange(len(versions))
        first = max(versions[i], low)
        last = versions[i + 1] - 1 if i + 1 < len(versions) else high
        return self.pick([first, first, self.randint(first, max(first, min(last, high)))])

    def pick(self, items):
        return self.choice(list(items))

    def shape(self, rank=None, low=0, high=5, limit=400, zero=0.06):
        rank = self.randint(low, high) if rank is None else rank
        while True:
            dims = [0 if self.maybe(zero) else self.pick(SIZES) for _ in range(rank)]
            if rank and self.maybe(0.05):
                dims[self.randrange(rank)] = self.pick([11, 13, 17, 31, 64, 65])
            if np.prod(dims, dtype=np.int64) <= limit:
                return tuple(dims)

    def broadcast(self, shape):
        """A shape that broadcasts to this one."""
        dims = [1 if self.maybe(0.25) else d for d in shape]
        return tuple(dims[self.randint(0, len(dims)):] if self.maybe(0.4) else dims)

    def data(self, dtype, shape, special=False, low=-3.0, high=3.0):
        """Values of a type; `special` strews in what is not a usual number."""
        t = np.dtype(DTYPES[dtype])
        if dtype == "bool":
            return self.np.random(shape) < 0.5
        if dtype[0] in "iu":
            info = ml_dtypes.iinfo(t)
            a, b = (int(low), int(high)) if not special else (int(info.min), int(info.max))
            a, b = max(a, int(info.min)), min(b, int(info.max))
            if special and self.maybe(0.5):
                a, b = max(a, -9), min(b, 9)
            x = np.array([self.randint(a, b) for _ in range(int(np.prod(shape)))], dtype=object)
            if special and x.size:
                for _ in range(1 + x.size // 8):
                    x[self.randrange(x.size)] = self.pick([int(info.min), int(info.max), 0, 1])
            return x.astype(t).reshape(shape)
        x = np.asarray(self.np.uniform(low, high, shape))
        if self.maybe(0.2):
            x = np.asarray(np.round(x * 2) / 2)
        x = x.astype(t)
        if special and x.size and dtype in ("f32", "f64", "f16", "bf16"):
            flat = x.reshape(-1)
            tiny = {"f32": 1e-40, "f64": 1e-310, "f16": 6e-8, "bf16": 1e-40}[dtype]
            top = {"f32": 3e38, "f64": 1e308, "f16": 65504, "bf16": 3e38}[dtype]
            for _ in range(1 + x.size // 6):
                flat[self.randrange(x.size)] = self.pick(
                    [np.nan, np.inf, -np.inf, 0.0, -0.0, tiny, -tiny, top, -top, 0.5, -1.5, 2.5])
            x = flat.reshape(shape)
        return x

    def axis(self, rank):
        return self.randint(-rank, rank - 1)

    def axes(self, rank, low=0, high=None):
        """Different axes, some counted from the end."""
        n = self.randint(low, rank if high is None else min(high, rank))
        return [a - rank if self.maybe(0.4) else a for a in self.sample(range(rank), n)]

    def attrs(self, **choices):
        """Attributes, each left out now and then; `None` is one that is left out."""
        return {k: v for k, v in choices.items() if v is not None and self.maybe(0.75)}


# Operators whose small inputs are lists of a known length, and those of a first input and weights.
OF_KNOWN_LENGTH = ("Resize", "OneHot", "Upsample")
WEIGHTED = ("Conv", "ConvInteger", "QLinearConv", "ConvTranspose", "DeformConv", "RNN", "GRU", "LSTM", "DFT", "STFT")


def node_case(r, op, inputs, opset, attrs=None, outputs=1, domain="", **more):
    """A case of one node. `inputs`: arrays, `None` for one that is left out; `outputs`: a number, or flags."""
    while inputs and inputs[-1] is None:
        inputs = inputs[:-1]
    names = [f"x{i}" if v is not None else "" for i, v in enumerate(inputs)]
    flags = [True] * outputs if isinstance(outputs, int) else outputs
    outs = [f"y{i}" if f else "" for i, f in enumerate(flags)]
    while outs and not outs[-1]:
        outs.pop()
    node = helper.make_node(op, names, outs, domain=domain, **(attrs or {}))
    given = {f"x{i}": v for i, v in enumerate(inputs) if v is not None}
    small = {k for k, v in given.items() if v.ndim < 2 and (v.dtype.kind in "iu" or op in OF_KNOWN_LENGTH)}
    if op in WEIGHTED:
        small |= {k for k in given if k != "x0"}
    more.setdefault("sized", small)
    domains = (domain,) if domain else ()
    return Case([node], given, [o for o in outs if o], opset, domains=domains, **more)


def i64(*values):
    return np.array(values, np.int64)


def ints(values):
    return np.array(list(values), np.int64)
