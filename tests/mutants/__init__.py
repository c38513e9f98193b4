"""Mutation testing of the code that decides results: plant one small mistake at a time, see which no test notices.

    python -m tests.mutants reach            run the suite once, record the lines that each test executes
    python -m tests.mutants run --sample 400 run for each mutant the tests that execute its line, fastest first
    python -m tests.mutants show             print the mutants that survived, with their diffs

mutmut and cosmic-ray do not fit: mutmut skips decorated functions (every `@lowers` rule) and copies each function once
per mutant into one module, cosmic-ray runs the whole test command for each mutant.
"""
