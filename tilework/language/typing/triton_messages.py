"""The messages with which Triton refuses Python that its kernels do not support; the compiler and the interpreter raise
the same under `TILEWORK_STRICT_TRITON=1`.
"""

BREAK = "unsupported AST node type: Break: kernels have no `break`"
CONTINUE = "unsupported AST node type: Continue: kernels have no `continue`"
MATCH = "unsupported AST node type: Match: kernels have no `match`"
FOR_ELSE = "`for ... else` is not supported"
WHILE_ELSE = "`while ... else` is not supported"
RETURN_IN_LOOP = "Cannot have `return` statements inside `while` or `for` statements in triton"
COMPARISONS = "simultaneous multiple comparison is not supported"
ASSIGNMENTS = "simultaneous multiple assignment is not supported."
NESTED_COMPREHENSIONS = "nested comprehensions are not supported"
FILTERS = "the filter of a comprehension, its `if`, is ignored before Triton 3.8"
COMPREHENSION = "only comprehensions over tuples, with one name as target, are supported"
AMBIGUOUS = "Boolean value of Tensor with more than one value is ambiguous"
NESTED_FUNCTION = "nested function definition is not supported."
FOREVER = "\nhelp: write the condition here, or use tl.static_range for a loop known at compile time"
LOOP = "Only `range` and `static_range` iterators are currently supported"
LOOP_TARGET = "the target of a for loop must be one name"

# of a node, as it is written, or of a value
LIST_TARGET = "assignment to {} is not supported: use a tuple (list)"
STARRED_TARGET = "assignment to {} is not supported: it has a starred target"
PART = "assignment to {} is not supported: values of a kernel cannot be changed in place (subscript)"
AUGMENTED = "augmented assignment to {} is not supported, only to names"
PATTERN = "`case {}` is not supported: only values, names, `|` and sequences"  # which we have not either
KNOWN_CONDITION = f"the condition of a while loop must be a run-time value, this one is {{!r}}{FOREVER}"
INDEX = "unsupported tensor index: {}; a tensor takes only `:` and None"
KNOWN_AT_RUN_TIME = "{} is declared as tl.constexpr, but its value is known at run time only"
