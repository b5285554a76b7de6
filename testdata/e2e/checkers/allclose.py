"""An external checker: PyTorch's allclose over float32 outputs, without PyTorch.

usage: allclose.py FOLDER TOLERANCE [COUNTER]

Exit 0 accepts, 1 rejects. A line is appended to COUNTER for every run. What goes wrong exits with 3, so that it is not
taken for a rejection.
"""

import array
import json
import math
import struct
import sys


def read(path):
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        assert entry["dtype"] == "F32", entry
        start, end = entry["data_offsets"]
        out[name] = (entry["shape"], array.array("f", data[start:end]))
    return out


def close(got, want, t):
    if math.isnan(want) or math.isnan(got):
        return False
    if math.isinf(want) or math.isinf(got):
        return got == want
    return abs(got - want) <= t + t * abs(want)


def main():
    folder, t = sys.argv[1], float(sys.argv[2])
    if len(sys.argv) > 3:
        with open(sys.argv[3], "a") as f:
            f.write("run\n")
    with open(f"{folder}/meta.json") as f:
        outputs = json.load(f)["outputs"]
    assert read(f"{folder}/inputs.safetensors"), "there are inputs"
    want, got = read(f"{folder}/expected.safetensors"), read(f"{folder}/actual.safetensors")
    for name in outputs:
        assert want[name][0] == got[name][0], "same shape"
        if not all(close(g, w, t) for g, w in zip(got[name][1], want[name][1])):
            return 1
    return 0


try:
    code = main()
except BaseException as e:
    print(f"allclose.py: {e!r}", file=sys.stderr)
    code = 3
sys.exit(code)
