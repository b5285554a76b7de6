"""Presents a CUDA device on a machine without one, so that a submission runs as it is written.

Every tensor lies in the CPU's memory and says that it is on `cuda:0`, apart from those that `.cpu()` or an explicit CPU
device made. Device arguments are dropped on the way in, `.cuda()` and `.to("cuda")` are the identity, streams and
events are objects whose methods do nothing, and `torch.compile` gives back what it was given. Memory that a
program asks for without a value (`torch.empty` and its relatives) holds noise, as fresh memory on a device does, or
what the caller lets it hold.

What this misses: a tensor that a submission forgets to move to the device is not told apart, and an error that only
another thread of the submission's would see is not seen (the mode is the main thread's).
"""

from __future__ import annotations

import time
import types

import torch
from torch.overrides import TorchFunctionMode

CUDA = torch.device("cuda", 0)
CPU = torch.device("cpu")


def names_cuda(device):
    """Whether an argument names the device that is presented."""
    if isinstance(device, torch.device):
        return device.type == "cuda"
    if isinstance(device, str):
        return device == "cuda" or device.startswith("cuda:")
    return isinstance(device, int) and not isinstance(device, bool)


def names_cpu(device):
    return (isinstance(device, torch.device) and device.type == "cpu") or device == "cpu"


UNSET = {torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted}
UNSET |= {torch.Tensor.new_empty, torch.Tensor.new_empty_strided}
GETTERS = {
    torch.Tensor.is_cuda.__get__: "is_cuda",
    torch.Tensor.device.__get__: "device",
    torch.Tensor.get_device: "get_device",
}
MOVES = {torch.Tensor.to, torch.Tensor.type}


class Presented(TorchFunctionMode):
    """The mode under which a submission runs. `fill` decides what fresh memory holds: a function of a tensor, or None
    for noise."""

    def __init__(self):
        super().__init__()
        self.fill = None
        self.noise = torch.Generator().manual_seed(0x5EED)

    def fresh(self, tensor):
        """Memory as it comes: uniform in [-1, 1] for numbers with a point, small integers else."""
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if self.fill is not None and self.fill(tensor):
                return tensor
            if tensor.is_floating_point():
                tensor.uniform_(-1, 1, generator=self.noise)
            elif tensor.dtype == torch.bool:
                tensor.random_(0, 2, generator=self.noise)
            elif not tensor.is_complex():
                tensor.random_(0, 100, generator=self.noise)
        return tensor

    def __torch_function__(self, func, types_, args=(), kwargs=None):
        kwargs = kwargs or {}
        getter = GETTERS.get(func)
        if getter is not None:
            if is_meta(args[0]):
                return func(*args, **kwargs)
            mine = "_assay_on_cpu" not in args[0].__dict__
            if getter == "is_cuda":
                return mine
            if getter == "device":
                return CUDA if mine else CPU
            return 0 if mine else -1
        if func is torch.Tensor.cuda:
            return self.moved(args[0], kwargs, on_cpu=False)
        if func is torch.Tensor.cpu:
            return self.on_cpu(func(*args, **kwargs), args[0])
        to_cpu = False
        device = kwargs.get("device")
        if device is not None:
            if names_cuda(device):
                kwargs = {**kwargs, "device": CPU}
            elif names_cpu(device):
                to_cpu = True
        if kwargs.get("pin_memory"):
            kwargs = {**kwargs, "pin_memory": False}
        if func in MOVES and len(args) > 1:
            if names_cuda(args[1]):
                args = (args[0], CPU, *args[2:])
            elif names_cpu(args[1]):
                to_cpu = True
        if func is torch.Tensor.pin_memory or func is torch.Tensor.record_stream:
            return args[0] if func is torch.Tensor.pin_memory else None
        if func is torch.Tensor.is_pinned:
            return False
        result = func(*args, **kwargs)
        if func in UNSET and isinstance(result, torch.Tensor):
            return self.fresh(result)
        if to_cpu and isinstance(result, torch.Tensor):
            return self.on_cpu(result, args[0] if args and isinstance(args[0], torch.Tensor) else None)
        if func in MOVES and isinstance(result, torch.Tensor) and result is (args[0] if args else None):
            result.__dict__.pop("_assay_on_cpu", None)
        return result

    @staticmethod
    def moved(tensor, kwargs, on_cpu):
        if kwargs.get("memory_format") not in (None, torch.preserve_format):
            tensor = tensor.contiguous(memory_format=kwargs["memory_format"])
        tensor.__dict__.pop("_assay_on_cpu", None)
        return tensor

    @staticmethod
    def on_cpu(result, source):
        if result is source:
            # On a device this is a copy, and only the copy is elsewhere.
            result = result.clone()
        result.__dict__["_assay_on_cpu"] = True
        return result


def is_meta(tensor):
    with torch._C.DisableTorchFunction():
        return tensor.is_meta


class Stream:
    """A stream of the presented device: all work is done when it is asked for."""

    def __init__(self, device=None, priority=0, **_):
        self.device, self.priority, self.cuda_stream, self.stream_id = CUDA, priority, 0, 0

    def synchronize(self):
        pass

    def wait_stream(self, stream):
        pass

    def wait_event(self, event):
        pass

    def record_event(self, event=None):
        event = event or Event()
        event.record(self)
        return event

    def query(self):
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


class Event:
    """An event of the presented device; its times are the CPU's, which measure nothing of the device."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, **_):
        self.at = None

    def record(self, stream=None):
        self.at = time.perf_counter()

    def wait(self, stream=None):
        pass

    def synchronize(self):
        pass

    def query(self):
        return True

    def elapsed_time(self, end):
        return max(0.0, ((end.at or 0.0) - (self.at or 0.0)) * 1e3)


class Context:
    """`with torch.cuda.device(0)`, `with torch.cuda.stream(s)`."""

    def __init__(self, value=None):
        self.value = value

    def __enter__(self):
        return self.value

    def __exit__(self, *_):
        return None


def properties(device=None):
    return types.SimpleNamespace(
        name="Assay CPU device",
        major=9,
        minor=0,
        multi_processor_count=132,
        total_memory=80 << 30,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        max_threads_per_block=1024,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=48 << 10,
        shared_memory_per_block_optin=227 << 10,
        shared_memory_per_multiprocessor=228 << 10,
        L2_cache_size=50 << 20,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
    )


def present():
    """Patches `torch.cuda` and what a program asks of it; the mode, not yet entered."""
    cuda = torch.cuda
    stream = Stream()
    nothing = lambda *_, **__: None  # noqa: E731
    zero = lambda *_, **__: 0  # noqa: E731
    for name, value in {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": nothing,
        "_lazy_init": nothing,
        "device_count": lambda: 1,
        "current_device": zero,
        "set_device": nothing,
        "synchronize": nothing,
        "empty_cache": nothing,
        "ipc_collect": nothing,
        "reset_peak_memory_stats": nothing,
        "reset_max_memory_allocated": nothing,
        "memory_allocated": zero,
        "max_memory_allocated": zero,
        "memory_reserved": zero,
        "max_memory_reserved": zero,
        "mem_get_info": lambda *_: (72 << 30, 80 << 30),
        "get_device_name": lambda *_: "Assay CPU device",
        "get_device_capability": lambda *_: (9, 0),
        "get_device_properties": properties,
        "get_arch_list": lambda: ["sm_80", "sm_90"],
        "is_bf16_supported": lambda *_, **__: True,
        "can_device_access_peer": lambda *_: False,
        "current_stream": lambda *_: stream,
        "default_stream": lambda *_: stream,
        "set_stream": nothing,
        "stream": Context,
        "StreamContext": Context,
        "device": Context,
        "device_of": Context,
        "Stream": Stream,
        "Event": Event,
        "ExternalStream": Stream,
        "manual_seed": nothing,
        "manual_seed_all": nothing,
        "seed": nothing,
        "seed_all": nothing,
        "initial_seed": zero,
    }.items():
        setattr(cuda, name, value)
    if hasattr(cuda, "nvtx"):
        for name in ("range_push", "range_pop", "mark"):
            setattr(cuda.nvtx, name, nothing)
    # There is neither a compiler to run nor anything to gain.
    torch.compile = lambda model=None, *_, **__: model if model is not None else (lambda f: f)
    torch.nn.Module.cuda = lambda self, device=None: self
    return Presented()
