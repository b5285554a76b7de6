"""Assay's Python side: what must live in the process of a framework.

- `assay.guard`: stops operations on tensors beyond a size at which a backend fails silently.
- `assay.metamorphic`: one large batch against its chunks, for any callable.
- `assay.sweep_worker`, `assay.torch_worker`: the PyTorch workers of `assay sweep` and `assay verify-ops`; scripts, not
  interfaces.

Importing this package imports no framework; each module does where it needs one.
"""

__version__ = "0.1.0"
