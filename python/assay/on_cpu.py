"""Problem files that put their tensors on a CUDA device, run on the CPU."""

from __future__ import annotations

import torch
from cuda_on_cpu import names_cuda
from torch.overrides import TorchFunctionMode


class OnCpu(TorchFunctionMode):
    """`.cuda()`, `.to("cuda")` and `device="cuda"` mean the device that is there: the CPU, or `meta` within that."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.cuda:
            return args[0]
        if names_cuda(kwargs.get("device")):
            del kwargs["device"]
            if func is torch.Tensor.to and len(args) == 1 and not kwargs:
                return args[0]
        if func is torch.Tensor.to and len(args) > 1 and names_cuda(args[1]):
            args = (args[0], *args[2:])
            if len(args) == 1 and not kwargs.keys() & {"dtype", "memory_format", "copy"}:
                return args[0]
            # `non_blocking` may have stood behind the type.
            args, kwargs["non_blocking"] = args[:2], False
        return func(*args, **kwargs)
