"""What a user's class or function takes, read from its source: nothing of it is imported.

So the arguments can be swept by name where numpy and pyribs must not be imported.
"""

import ast

from qdsweep.config.files import nearest
from qdsweep.config.plugin import find_source
from qdsweep.errors import BadInput

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def parameters(target: str) -> tuple[list[str], bool]:
    """Returns the parameters of a `module:name`.

    Args:
        target: A function, or a class, whose `__init__` counts; one that is inherited from a class
            of the same file too.

    Returns:
        Their names, without `self`; and whether these are all of them. They are not where
        `**arguments` goes to code of another file, or the name comes from there.
    """
    try:
        tree = ast.parse(find_source(target).read_bytes())
    except (BadInput, SyntaxError, ValueError, OSError):
        return [], False
    named = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | _Function)}
    return _parameters(target.rsplit(":", 1)[1], named)


def refuse_unknown(target: str, where: str, arguments: dict[str, object]) -> None:
    """Refuses arguments that a user's class or function does not take, as far as can be seen.

    Args:
        target: `module:name`.
        where: The part in the experiment, such as `algorithm.archive`.
        arguments: Name -> value.

    Raises:
        BadInput: The message lists what it takes.
    """
    takes, complete = parameters(target)
    for name in arguments if complete else ():
        if name not in takes:
            raise BadInput(
                f"{where}: {target} takes no argument {name!r}; {nearest(name, takes)}"
                f"it takes: {', '.join(takes) or 'none'}"
            )


def _parameters(name: str, named: dict[str, ast.ClassDef | _Function]) -> tuple[list[str], bool]:
    node = named.get(name)
    if node is None:
        return [], name == "object"
    if not isinstance(node, ast.ClassDef):
        return _names(node), node.args.kwarg is None
    init = next((n for n in node.body if isinstance(n, _Function) and n.name == "__init__"), None)
    if init is None and node.decorator_list:  # such as @dataclass, which makes one
        return [], False
    own = [] if init is None else _names(init)[1:]
    if init is not None and init.args.kwarg is None:
        return own, True
    found, complete = own, True
    for base in node.bases:
        inner, whole = _parameters(ast.unparse(base), named)
        found += [parameter for parameter in inner if parameter not in found]
        complete = complete and whole
    return found, complete


def _names(function: _Function) -> list[str]:
    spec = function.args
    return [each.arg for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
