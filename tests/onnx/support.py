#!/usr/bin/env python3
"""The table of supported ONNX operators, from what the compiler does with probes.

usage: support.py probes CASES DIR        write a model for each operator, version and element type
       support.py table RESULTS.json OUT  write the table from `tvmc onnx-suite DIR --check --json RESULTS.json`

Probes are the smallest of ONNX's own one-node cases of the operator, with element types or operator set replaced, if
ONNX's checker accepts them: DIR/<op>-<version>-<type>/model.onnx
"""

import collections
import itertools
import json
import pathlib
import sys
import warnings

import onnx
from onnx import TensorProto, checker, defs

SHORT = {
    "float": "f32", "double": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "bool", "string": "string",
    **{f"{u}int{n}": f"{'u' if u else 'i'}{n}" for u in ("", "u") for n in (2, 4, 8, 16, 32, 64)},
    "float8e4m3fn": "f8e4m3fn", "float8e4m3fnuz": "f8e4m3fnuz", "float8e5m2": "f8e5m2", "float8e5m2fnuz": "f8e5m2fnuz",
    "float8e8m0": "f8e8m0", "float4e2m1": "f4e2m1", "complex64": "complex64", "complex128": "complex128",
}
ORDER = list(SHORT.values())
OLDEST = 7
HEADING = """Operators of ai.onnx, the operator sets in which they are imported, and element types.

Written by `tests/onnx/support.py`, which tries each with a model of one node; `TVM_BLESS=1 tests/onnx/run.sh` writes it anew.
Types are those of the operator's first type variable in its newest version. What is in brackets ONNX allows and this compiler
refuses. Operators that are not listed are not supported; `tvmc check MODEL` names those that a model needs.

| operator | operator sets | element types |
|---|---|---|
"""


def schemas():
    """Operator to its schemas by version, those of one domain."""
    table = collections.defaultdict(dict)
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and not schema.deprecated:
            table[schema.name][schema.since_version] = schema
    return table


def templates(root):
    """Operator to the one-node cases of it, smallest first."""
    found = collections.defaultdict(list)
    for path in sorted(root.glob("*/model.onnx")):
        model = onnx.load(path)
        nodes = model.graph.node
        if len(nodes) == 1 and nodes[0].domain == "" and not model.functions:
            found[nodes[0].op_type].append(model)
    for models in found.values():
        models.sort(key=lambda m: (not first_is_float(m), m.ByteSize()))
    return found


def first_is_float(model):
    ports = [*model.graph.input, *model.graph.output]
    return bool(ports) and ports[0].type.tensor_type.elem_type == TensorProto.FLOAT


def variable(schema):
    """The first type variable, with the names of types it allows."""
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    for port in [*schema.inputs, *schema.outputs]:
        if port.type_str in constraints:
            names = [t[7:-1] for t in constraints[port.type_str] if t.startswith("tensor(")]
            return port.type_str, [n for n in names if n in SHORT]
    return None, []


def copy_of(model):
    return onnx.ModelProto.FromString(model.SerializeToString())


def retyped(model, schema, var, name):
    """The model with the type variable replaced; None if ONNX does not accept it."""
    model = copy_of(model)
    number = TensorProto.DataType.Value(name.upper())
    node = model.graph.node[0]
    ports = {}
    for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for i, value in enumerate(names):
            formal = formals[min(i, len(formals) - 1)] if formals else None
            if value and formal is not None and formal.type_str == var:
                ports[value] = number
    for info in [*model.graph.input, *model.graph.output]:
        if info.name in ports:
            if not info.type.HasField("tensor_type"):
                return None
            info.type.tensor_type.elem_type = ports[info.name]
    if any(init.name in ports for init in model.graph.initializer):
        return None
    return model


def accepted(model, version):
    for opset in model.opset_import:
        if opset.domain == "":
            opset.version = version
    try:
        checker.check_model(model, full_check=True)
    except Exception:
        return False
    return True


def probes(cases, out):
    count = 0
    found = templates(cases)
    for op, versions in schemas().items():
        newest = max(versions)
        for version, schema in versions.items():
            effective = max(version, OLDEST)
            if any(version < v <= OLDEST for v in versions):
                continue
            var, names = variable(schema)
            wanted = names if version == newest else []
            for name in [*wanted, None]:
                copies = (retyped(m, schema, var, name) if name else copy_of(m) for m in found.get(op, []))
                valid = (c for c in copies if c is not None and accepted(c, effective))
                for k, copy in enumerate(itertools.islice(valid, 1 if name else 3)):
                    folder = out / f"{op}-{effective}-{SHORT[name] if name else f'any{k}'}"
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / "model.onnx").write_bytes(copy.SerializeToString())
                    count += 1
    print(f"{count} probes")


def ranges(versions, ok):
    """Runs of versions that are imported, as text: 7–10, 13–."""
    parts = []
    for i, v in enumerate(versions):
        if not ok[v]:
            continue
        end = versions[i + 1] - 1 if i + 1 < len(versions) else None
        if parts and parts[-1][1] == v - 1:
            parts[-1][1] = end
        else:
            parts.append([v, end])
    return ", ".join(f"{a}–" if b is None else (f"{a}" if a == b else f"{a}–{b}") for a, b in parts)


def table(results, out):
    ops = collections.defaultdict(lambda: (collections.defaultdict(bool), {}))
    for row in json.load(open(results))["cases"]:
        op, version, name = row["case"].rsplit("-", 2)
        versions, types = ops[op]
        passed = row["status"] == "passed"
        versions[int(version)] |= passed
        if not name.startswith("any"):
            types[name] = passed
    text = HEADING
    for op in sorted(ops):
        versions, types = ops[op]
        sets = ranges(sorted(versions), versions)
        if not sets:
            continue
        yes = [t for t in ORDER if types.get(t)]
        no = [t for t in ORDER if types.get(t) is False]
        cell = " ".join(yes) + (f" ({' '.join(no)})" if no else "")
        text += f"| {op} | {sets} | {cell.strip() or 'any'} |\n"
    pathlib.Path(out).write_text(text)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    match sys.argv[1:]:
        case ["probes", cases, out]:
            probes(pathlib.Path(cases), pathlib.Path(out))
        case ["table", results, out]:
            table(results, out)
        case _:
            sys.exit(__doc__)
