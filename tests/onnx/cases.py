#!/usr/bin/env python3
"""Writes the node cases of the installed `onnx` package as files for `tvmc onnx-suite`.

usage: cases.py DIR        (needs onnx, numpy, ml_dtypes)

DIR/<case>/model.onnx, DIR/<case>/tolerance (relative, absolute) and DIR/<case>/set_<k>/{input,output}_<i>.pb.
"""

import pathlib
import sys
import warnings

from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

TO_PROTO = {
    "sequence_type": numpy_helper.from_list,
    "optional_type": numpy_helper.from_optional,
    "map_type": numpy_helper.from_dict,
}


def write(path, value, info):
    """One input or output, as the kind of value that the graph says it is."""
    if not isinstance(value, TensorProto):
        kind = info.type.WhichOneof("value")
        value = TO_PROTO.get(kind, numpy_helper.from_array)(value, info.name)
    path.write_bytes(value.SerializeToString())


def main(root):
    warnings.filterwarnings("ignore")
    cases = collect_testcases(None)
    for case in cases:
        folder = root / case.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(case.model.SerializeToString())
        (folder / "tolerance").write_text(f"{case.rtol} {case.atol}\n")
        graph = case.model.graph
        for k, (inputs, outputs) in enumerate(case.data_sets):
            place = folder / f"set_{k}"
            place.mkdir(exist_ok=True)
            for role, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
                for i, (value, info) in enumerate(zip(values, infos)):
                    write(place / f"{role}_{i}.pb", value, info)
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))
