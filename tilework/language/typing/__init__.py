"""The typing rules: promotion, shapes, casts, dots, memory accesses. Types in, types out.

Each file has the rules of a family as functions, and a class with the builtins of that family. A builtin checks its
operands by the rules, brings them to one type and shape, and leaves the rest to a method that is declared in
`carrier.py`:

    semantic.add(x, 1)      promotion: int32 + a number is int32; then `binary("+", x, one)`

`tilework.language.semantic` puts the families together. The compiler carries the methods out by building ops
(`tilework.frontend.semantic`), the interpreter by computing, so both refuse the same programs with the same messages.
Nothing here looks at a handle.
"""
