"""The numbers of problem files: which are found, and what giving them others does."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# The workers' modules lie beside each other and import each other by their bare names.
sys.path.insert(0, str(Path(find_spec("assay.file_numbers").origin).parent))

import file_numbers as f
from worker_protocol import Fault, Raised

REST = "\nclass Model: pass\ndef get_inputs(): return [rows, 5]\ndef get_init_inputs(): return [7]\n"


def run(text, overrides=None):
    """The module-level values of a file, with these elements."""
    numbers = f.Numbers(text + REST.replace("rows", "2"), "mine.py")
    context, literals = numbers.run(overrides or {})
    return {name: context[name] for name in numbers.names}, literals


# A file, what it writes, other values, and what its names are then.
CASES = [
    ("n = 64", {"n": 64}, {"n": 3}, {"n": 3}),
    ("n: int = 64", {"n": 64}, {"n": 3}, {"n": 3}),
    ("n = 2048 * 2", {"n": 4096}, {"n": 3}, {"n": 3}),
    ("n = 2 ** 10 // 4", {"n": 256}, {}, {"n": 256}),
    ("h = w = 64", {"h": 64, "w": 64}, {"h": 3, "w": 5}, {"h": 3, "w": 5}),
    ("h = w = 64", {"h": 64, "w": 64}, {"w": 5}, {"h": 64, "w": 5}),
    ("a, b = 1, 2", {"a": 1, "b": 2}, {"b": 5}, {"a": 1, "b": 5}),
    ("(a, b), c = (1, 2), 3", {"a": 1, "b": 2, "c": 3}, {"b": 5}, {"a": 1, "b": 5, "c": 3}),
    ("a, *b = 1, 2, 3", {}, {"a": 4}, {"a": 4, "b": [2, 3]}),
    # What is computed from a name follows it, and can be set where it is asked for.
    ("n = 8\nm = n * 2", {"n": 8}, {"n": 3}, {"n": 3, "m": 6}),
    ("n = 8\nm = n * 2", {"n": 8}, {"n": 3, "m": 1}, {"n": 3, "m": 1}),
    ("n = 8\nm = n", {"n": 8}, {"m": 4}, {"n": 8, "m": 4}),
    # Several assignments: the last one says what it is, and all of them give the new number.
    ("n = 8\nm = n\nn = 4", {"n": 4}, {"n": 3}, {"n": 3, "m": 3}),
    ("n = 8\nn *= 2", {}, {"n": 3}, {"n": 3}),
    ("n = 8\nn = len('ab')", {}, {"n": 3}, {"n": 3}),
    # Tuples and lists, whole and by place, of whichever type they are.
    ("s = (2, 3 * 4)", {"s[0]": 2, "s[1]": 12}, {"s[1]": 5}, {"s": (2, 5)}),
    ("s = [2, 3]", {"s[0]": 2, "s[1]": 3}, {"s": [7, 8]}, {"s": [7, 8]}),
    ("s = (2, 3)", {"s[0]": 2, "s[1]": 3}, {"s": [7, 8], "s[0]": 9}, {"s": (9, 8)}),
    ("s = [4] * 2", {"s[0]": 4, "s[1]": 4}, {"s[1]": 5}, {"s": [4, 5]}),
    ("s = (2,) + (3, 0)", {"s[0]": 2, "s[1]": 3}, {}, {"s": (2, 3, 0)}),
    ("n = 4\ns = (n, 3)", {"n": 4, "s[1]": 3}, {"n": 2, "s[1]": 5}, {"n": 2, "s": (2, 5)}),
    # No sizes.
    ("n = 0\nf = 0.5\nb = True\nt = 'x'\nm = -1", {}, {}, {"n": 0, "f": 0.5, "b": True, "t": "x", "m": -1}),
    ("n = 2 ** 99999", {}, {"n": 2}, {"n": 2}),
]


@pytest.mark.parametrize(("text", "written", "overrides", "values"), CASES)
def test_numbers_are_found_and_replaced_whatever_the_assignment(text, written, overrides, values):
    assert f.Numbers(text + REST, "mine.py").written == written
    assert run(text, overrides)[0] == values


def test_literals_of_functions_are_numbered_in_the_order_of_the_text():
    numbers = f.Numbers("rows = 2" + REST, "mine.py")
    context, literals = numbers.run({"get_inputs:0": 9, "get_init_inputs:0": 4, "rows": 3})
    assert context["get_inputs"]() == [3, 9]
    assert context["get_init_inputs"]() == [4]
    assert literals == {"get_inputs": [5], "get_init_inputs": [7]}
    assert numbers.elements(context, literals) == {"rows": 3, "get_inputs:0": 5, "get_init_inputs:0": 7}


@pytest.mark.parametrize("element", ["nobody", "nobody[0]", "no_function:0"])
def test_an_element_that_the_file_does_not_have_is_named(element):
    with pytest.raises(Raised, match="the file has no") as e:
        run("n = 4", {element: 3})
    assert element.partition("[")[0].partition(":")[0] in str(e.value)


@pytest.mark.parametrize("value", [0, -3, True, "4", 2.0, [], [2, 0], None])
def test_what_is_no_size_is_no_extent(value):
    with pytest.raises(Fault, match="the extent"):
        run("n = 4", {"n": value})


def test_names_that_classes_and_functions_use_by_themselves_are_known():
    text = "a, b, c, d = 1, 2, 3, 4\nclass Model:\n    x = a\n    def forward(self): return b\ndef help(): return c\n"
    text += "def get_inputs(): return [d]\ndef get_init_inputs(): return [d]\n"
    used = f.used_inside(text, "mine.py")
    assert {"a", "b", "c"} <= used
    assert "d" not in used
