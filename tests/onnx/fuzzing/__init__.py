"""Random valid ONNX nodes and graphs, by family of operators; `../fuzz.py` compares what they compute."""

from . import elementwise, graphs, index, linear, reduce, spatial  # noqa: F401  each registers its generators
from .base import FAMILIES  # noqa: F401
