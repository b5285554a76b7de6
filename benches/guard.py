"""What the guard costs on the boundary paper's small loop: `python benches/guard.py`.

A two-layer network on 1024 x 120 inputs trained for 2000 steps (arXiv 2609.22991, section 5, "Overhead"; the width of
the hidden layer and the optimiser are not given there: 64 and SGD here, `--hidden` and `--adam` change them). Three
variants take turns in one process, so that what else the machine does meets all of them: no mode at all, a dispatch
mode that only passes operators on, and the guard. Printed are the medians in seconds and their ratios; what Assay
answers for is the last one, guard / pass-through, since the cost of a dispatch mode as such is PyTorch's.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from assay.guard import Guard


class PassThrough(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def train(steps: int, hidden: int, adam: bool, device: str) -> float:
    """Seconds of so many steps: of the processor on the CPU, where other work would disturb the wall clock."""
    clock = time.process_time if device == "cpu" else time.perf_counter
    torch.manual_seed(0)
    x, y = torch.randn(1024, 120, device=device), torch.randn(1024, 1, device=device)
    net = torch.nn.Sequential(torch.nn.Linear(120, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 1)).to(device)
    make = torch.optim.Adam if adam else torch.optim.SGD
    optimizer = make(net.parameters(), lr=1e-3)
    started = clock()
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    net[0].weight.sum().item()  # Waits for a device that works asynchronously.
    return clock() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--adam", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    variants = {
        "none": contextlib.nullcontext,
        "pass-through": PassThrough,
        "guard": lambda: Guard(asked.device),
    }
    seconds: dict[str, list[float]] = {name: [] for name in variants}
    train(asked.steps // 10, asked.hidden, asked.adam, asked.device)
    for _ in range(asked.repetitions):
        for name, mode in variants.items():
            with mode():
                seconds[name].append(train(asked.steps, asked.hidden, asked.adam, asked.device))
    median = {name: statistics.median(s) for name, s in seconds.items()}
    print(
        f"torch {torch.__version__}, {asked.device}, {asked.threads} thread(s), hidden {asked.hidden}, "
        f"{'Adam' if asked.adam else 'SGD'}, {asked.steps} steps, median of {asked.repetitions}"
    )
    for name, value in median.items():
        print(f"{name:>14}  {value:7.3f} s  {value / median['none']:5.2f} x none")
    print(f"guard / pass-through  {median['guard'] / median['pass-through']:.3f}")


if __name__ == "__main__":
    main()
