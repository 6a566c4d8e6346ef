"""The interpreter of {python}: it gets cells as lines of JSON, and answers in the same way."""

import ast
import contextlib
import io
import json
import sys
import traceback

names = {"__name__": "__main__"}
for line in sys.stdin:
    printed, failed = io.StringIO(), False
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            *first, last = ast.parse(json.loads(line)).body
            value = None
            if not isinstance(last, ast.Expr):
                first, last = [*first, last], None
            exec(compile(ast.Module(first, []), "<cell>", "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            if value is not None:
                print(value)
        except BaseException:
            traceback.print_exc()
            failed = True
    print(json.dumps([failed, printed.getvalue()]), flush=True)
