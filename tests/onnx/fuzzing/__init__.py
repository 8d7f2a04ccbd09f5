"""Random valid ONNX nodes and graphs, by family of operators; `../fuzz.py` compares what they compute."""

from . import chains, elementwise, graphs, index, linear, microsoft, misc, reduce, spatial  # noqa: F401  each registers its generators
from .base import FAMILIES  # noqa: F401
