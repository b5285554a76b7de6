"""The whole numbers that a problem file writes at module level and in its functions: finding them, giving them others.

An *element* is a number that may stand for an extent: a module-level name (`batch_size`), a place of a module-level
tuple or list (`shape[0]`), a literal in a function (`get_inputs:2`, counted in the order of the text).

A number is replaced behind the statement that assigns it. So every form of an assignment is treated alike (`n = 64`,
`h = w = 64`, `a, b = 1, 2`, `n: int = 64`, `n *= 2`), each name of `h = w = 64` can have a value of its own, and what
the file computes from a name further down follows it. A name that is computed from others is no number that the file
*writes*: cut alone it would contradict what it was computed from. Assignments within `if`, `for` or `with` at module
level are not seen.
"""

from __future__ import annotations

import ast
import symtable

from worker_protocol import Fault, Raised

# What a number may be written with: `2048 * 2` is one, `2 * n` follows `n`.
ARITHMETIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.List, ast.Tuple, ast.Load)
# Powers beyond it are not computed to look at them.
MOST_POWER = 64


def is_size(value):
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def are_sizes(value):
    return isinstance(value, (tuple, list)) and len(value) > 0 and all(map(is_size, value))


def pairs(target, value):
    """The names in a target of an assignment, each with the expression that is its value; None where there is no single
    one."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, (ast.Tuple, ast.List)):
        several = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        starred = any(isinstance(x, ast.Starred) for x in [*target.elts, *(value.elts if several else [])])
        for k, part in enumerate(target.elts):
            part = part.value if isinstance(part, ast.Starred) else part
            yield from pairs(part, value.elts[k] if several and not starred else None)


def assigned(statement):
    """The names that a module-level statement assigns to, each with its expression as `pairs` gives it."""
    if isinstance(statement, ast.Assign):
        return [pair for target in statement.targets for pair in pairs(target, statement.value)]
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return list(pairs(statement.target, statement.value))
    if isinstance(statement, ast.AugAssign):
        return list(pairs(statement.target, None))
    return []


def folded(node):
    """The value of an expression of numbers alone, a number or a tuple or list of them; None of any other."""
    if not all(isinstance(n, ARITHMETIC) for n in ast.walk(node)):
        return None
    powers = [n for n in ast.walk(node) if isinstance(n, ast.BinOp) and isinstance(n.op, (ast.Pow, ast.LShift))]
    if any(not (isinstance(n.right, ast.Constant) and n.right.value in range(MOST_POWER)) for n in powers):
        return None
    try:
        return eval(compile(ast.Expression(node), "<number>", "eval"), {"__builtins__": {}})
    except Exception:
        return None


def written(tree):
    """The numbers that the module writes, by element: names, and of tuples and lists the places that are numbers.
    A name that is assigned several times is what it is last."""
    out = {}
    for statement in tree.body:
        for name, value in assigned(statement):
            for element in [e for e in out if e == name or e.startswith(f"{name}[")]:
                del out[element]
            if value is None:
                continue
            several = isinstance(value, (ast.Tuple, ast.List))
            known = [folded(x) for x in value.elts] if several else folded(value)
            values = {name: known}
            if isinstance(known, (tuple, list)):
                values = {f"{name}[{i}]": size for i, size in enumerate(known)}
            out.update({element: size for element, size in values.items() if is_size(size)})
    return out


def used_inside(source, path, but=("get_inputs", "get_init_inputs")):
    """Module-level names that the file's classes and functions use by themselves, other than those named."""
    out = set()

    def visit(table):
        for symbol in table.get_symbols():
            if symbol.is_global():
                out.add(symbol.get_name())
        for child in table.get_children():
            visit(child)

    for child in symtable.symtable(source, path, "exec").get_children():
        if child.get_name() not in but:
            visit(child)
    return out


class Literals(ast.NodeTransformer):
    """Numbers the integer literals of a function's body, and gives some of them other values."""

    def __init__(self, values=None):
        self.values = dict(values or {})
        self.found = []

    def visit_Constant(self, node):
        if not is_size(node.value):
            return node
        self.found.append(node.value)
        value = self.values.get(len(self.found) - 1)
        return node if value is None else ast.copy_location(ast.Constant(value), node)


def split(overrides):
    """Overrides by name, by place within a name, and by literal within a function."""
    whole, places, literals = {}, {}, {}
    for element, value in overrides.items():
        if not is_size(value) and not are_sizes(value):
            raise Fault(f"the extent {value!r} of `{element}`")
        if not is_size(value):
            whole[element] = list(value)
        elif element.endswith("]"):
            name, _, index = element[:-1].partition("[")
            places.setdefault(name, {})[int(index)] = value
        elif ":" in element:
            name, _, index = element.partition(":")
            literals.setdefault(name, {})[int(index)] = value
        else:
            whole[element] = value
    return whole, places, literals


class Numbers:
    """A problem file's text, and its numbers; not yet run."""

    # The functions whose literals are elements, beside the `__init__` of the class `Model`.
    functions = ("get_inputs", "get_init_inputs")

    def __init__(self, source, path):
        self.source, self.path = source, path
        tree = ast.parse(source, path)
        self.written = written(tree)
        # In the order of the file.
        self.names = dict.fromkeys(name for statement in tree.body for name, _ in assigned(statement))

    def run(self, overrides):
        """Runs the file with these values of its elements. Its namespace, and its literals by function.

        Raises `Raised` where the file has no such element, and whatever the file raises.
        """
        whole, places, literals = split(overrides)
        tree = ast.parse(self.source, self.path)
        unknown = {*whole, *places, *literals}
        body, found = [], {}
        for statement in tree.body:
            for function in self.numbered(statement):
                numbered = Literals(literals.get(function.name))
                function.body = [numbered.visit(line) for line in function.body]
                found[function.name] = numbered.found
                unknown.discard(function.name)
            body.append(statement)
            for name, _ in assigned(statement):
                unknown.discard(name)
                if name in whole:
                    value = whole[name]
                    # A list stands for a tuple as well.
                    text = f"type({name})({value!r})" if isinstance(value, list) else repr(value)
                    body.extend(ast.parse(f"{name} = {text}").body)
                for index, value in places.get(name, {}).items():
                    text = f"{name} = type({name})(list({name})[:{index}] + [{value}] + list({name})[{index + 1}:])"
                    body.extend(ast.parse(text).body)
        if unknown:
            raise Raised("load", f"the file has no {sorted(unknown)}")
        tree.body = body
        context = {"__name__": "problem"}
        exec(compile(ast.fix_missing_locations(tree), self.path, "exec"), context)
        missing = [n for n in ("Model", *self.functions) if not callable(context.get(n))]
        if missing:
            raise Raised("load", f"the file defines no {', '.join(missing)}")
        return context, found

    def numbered(self, statement):
        """The functions in a module-level statement whose literals are elements."""
        if isinstance(statement, ast.FunctionDef) and statement.name in self.functions:
            return [statement]
        if isinstance(statement, ast.ClassDef) and statement.name == "Model":
            return [x for x in statement.body if isinstance(x, ast.FunctionDef) and x.name == "__init__"]
        return []

    def elements(self, context, literals):
        """Every element of the file that was run, by its value: names, written and computed, before what stands in
        functions."""
        out = {}
        for name in self.names:
            value = context.get(name)
            if is_size(value):
                out[name] = value
            elif type(value) in (tuple, list):
                out.update({f"{name}[{i}]": v for i, v in enumerate(value) if is_size(v)})
        for function, values in literals.items():
            out.update({f"{function}:{i}": v for i, v in enumerate(values)})
        return out
