"""A docstring as Markdown: prose stays, code becomes a block of Python.

    >>> as_markdown('''One of many: ``cdiv(10, 4)`` is 3.
    ...
    ...     n = tl.cdiv(n, BLOCK)
    ... ''')
    'One of many: ``cdiv(10, 4)`` is 3.\\n\\n```python\\nn = tl.cdiv(n, BLOCK)\\n```'

Code is what is indented, and a paragraph that is Python. ``Example:`` and ``Examples:`` become a bold line; fenced
blocks stay as they are.
"""

import ast
import inspect
import re
import textwrap

SECTION = re.compile(r"(Examples?|Arguments|Returns|Raises|Note|Limits):\s*")


def as_markdown(docstring: str | None) -> str:
    """The text of a docstring for a page; empty for None."""
    parts = [as_section(part) for part in paragraphs(inspect.cleandoc(docstring or ""))]
    return "\n\n".join(part for part in parts if part)


def paragraphs(text: str) -> list[str]:
    """Runs of lines without an empty one between them; an indented run goes on as long as indented lines follow."""
    found: list[str] = []
    is_fenced, is_open = False, False
    for line in text.splitlines():
        is_code = line.startswith(("    ", "\t"))
        if is_fenced or (is_open and line.strip() and is_code == found[-1].startswith(("    ", "\t"))):
            found[-1] += "\n" + line
        elif not line.strip() and is_open and found[-1].startswith("    "):
            found[-1] += "\n"  # code may have empty lines: prose after it closes the run
            continue
        elif line.strip():
            found.append(line)
        is_open = bool(line.strip())
        if line.startswith("```"):
            is_fenced = not is_fenced
            is_open = is_fenced
    return merged_code(found)


def merged_code(parts: list[str]) -> list[str]:
    """Merge indented parts that follow each other."""
    found: list[str] = []
    for part in parts:
        if found and part.startswith("    ") and found[-1].startswith("    "):
            found[-1] += "\n" + part
        else:
            found.append(part)
    return found


def as_section(part: str) -> str:
    if part.startswith("```"):
        return part
    if match := SECTION.match(part):
        rest = textwrap.dedent(part[match.end() :]) if "\n" in part[: match.end()] else part[match.end() :]
        return f"**{match[1]}**\n\n{as_section(rest)}" if rest.strip() else f"**{match[1]}**"
    code = textwrap.dedent(part).rstrip()
    if part.startswith("    ") or is_python(code):
        return f"```{language_of(code)}\n{code}\n```"
    return part


def language_of(code: str) -> str:
    """Return the language of an example, as Pygments names it: Python, MLIR if it has ops, otherwise plain text."""
    if code.startswith(">>>"):
        return "pycon"
    if is_python(code):
        return "python"
    return "mlir" if re.search(r"%\w+ = \w+\.\w+", code) else "text"


def is_python(text: str) -> bool:
    """Return True if a paragraph is code: it can be parsed, and does more than name something."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return False
    words = (ast.Name, ast.Constant, ast.Tuple)
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, words)) for node in tree.body)
