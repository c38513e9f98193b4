// RUN: tilework opt %s -p tritonamdgpu-reorder-instructions

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
!T = tensor<64x64xf16, #a>
!A = tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
!B = tensor<64x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>
!C = tensor<64x64xf32, #mma>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// A conversion to a dot operand moves into the loop that alone uses it; one with two users stays.
// CHECK-LABEL: @into_loop(
// CHECK-NEXT: %a = ttg.convert_layout %x :
// CHECK-NEXT: %r:2 = scf.for
// CHECK-NEXT:   %b = ttg.convert_layout %x :
// CHECK-NEXT:   %d = tt.dot %a, %b, %c :
tt.func public @into_loop(%x: !T, %y: !B, %acc: !C, %n: i32) -> (!C, !C) {
  %a = ttg.convert_layout %x : !T -> !A
  %b = ttg.convert_layout %x : !T -> !B
  %r:2 = scf.for %i = %n to %n step %n iter_args(%c = %acc, %e = %acc) -> (!C, !C) : i32 {
    %d = tt.dot %a, %b, %c : !A * !B -> !C
    %f = tt.dot %a, %y, %e : !A * !B -> !C
    scf.yield %d, %f : !C, !C
  }
  tt.return %r#0, %r#1 : !C, !C
}
}
