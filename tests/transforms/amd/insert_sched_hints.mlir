// RUN: tilework opt %s -p triton-amdgpu-insert-instruction-sched-hints{variant=attention}

#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-LABEL: @chained
// CHECK:      scf.for
// CHECK-NEXT:   amdg.instruction_sched_hint {variant = #amdg.SchedHintVariant<attention>}
// CHECK-NEXT:   tt.dot
// CHECK:      scf.for
// CHECK-NEXT:   tt.dot
tt.func public @chained(%q: tensor<128x32xf16, #a>, %k: tensor<32x32xf16, #b>, %n: i32) -> (tensor<128x32xf32, #mma>, tensor<128x32xf32, #mma>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<128x32xf32, #mma>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
    %s = tt.dot %q, %k, %zero : tensor<128x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<128x32xf32, #mma>
    %t = arith.truncf %s : tensor<128x32xf32, #mma> to tensor<128x32xf16, #mma>
    %p = ttg.convert_layout %t : tensor<128x32xf16, #mma> -> tensor<128x32xf16, #a>
    %d = tt.dot %p, %k, %acc : tensor<128x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<128x32xf32, #mma>
    scf.yield %d : tensor<128x32xf32, #mma>
  }
  %u = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
    %d = tt.dot %q, %k, %acc : tensor<128x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<128x32xf32, #mma>
    scf.yield %d : tensor<128x32xf32, #mma>
  }
  tt.return %r, %u : tensor<128x32xf32, #mma>, tensor<128x32xf32, #mma>
}
}
