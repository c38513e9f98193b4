#!/bin/sh
# Compiles gelu.py to objects for this CPU, links them into a C program, and runs it. PYTHON, CC and OUT can be set.
set -e
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/build}
mkdir -p "$out"

# two block sizes, each for arrays that are aligned to 16 bytes and for any others: gelu.h and gelu.c choose among the four
"${PYTHON:-python3}" -m tilework compile --aot "$here/gelu.py:gelu" --target cpu -o "$out/gelu" -g "(n + BLOCK - 1) / BLOCK, 1, 1" \
  -s "*fp32:16, *fp32:16, i32, fp32, 1024" -s "*fp32, *fp32, i32, fp32, 1024" \
  -s "*fp32:16, *fp32:16, i32, fp32, 4096" -s "*fp32, *fp32, i32, fp32, 4096"

"${CC:-cc}" -std=c11 -O2 -Wall -I"$out" "$here/main.c" "$out/gelu.c" "$out"/gelu.*.o -o "$out/main" -lm -lpthread
"$out/main"
