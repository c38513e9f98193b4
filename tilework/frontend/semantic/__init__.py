"""The ops of the language's builtins.

A builtin of `tilework.language` calls the method of the same name; the rules of `tilework.language.typing` check its operands
and give them their types, and one method here builds the ops:

    semantic = Semantic(builder, options)
    pid = semantic.program_id(0)                       tt.get_program_id x : i32
    offsets = semantic.add(semantic.mul(pid, 64), semantic.arange(0, 64))

Each family of operations has a class in the file of that name, which inherits those before it. What is refused raises `ValueError`,
`TypeError` or `AssertionError` with the values in the text; the frontend adds the position in the user's source.
"""

from tilework.frontend.semantic.running import Running


class Semantic(Running):
    """The ops of all families."""
