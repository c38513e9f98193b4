// RUN: tilework opt %s -p tritonamdgpu-sink-layout-conversions

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
!A = tensor<64x64xf16, #a>
!B = tensor<64x64xf16, #b>
!M = !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// The scratch memory of a conversion is then that of the buffers.
// CHECK-LABEL: @below_all(
// CHECK-NEXT: ttg.local_dealloc %m :
// CHECK-NEXT: %z = arith.addf
// CHECK-NEXT: ttg.local_dealloc %n :
// CHECK-NEXT: %y = ttg.convert_layout %x
// CHECK-NEXT: tt.return
tt.func public @below_all(%x: !A, %m: !M, %n: !M) -> (!B, !A) {
  %y = ttg.convert_layout %x : !A -> !B
  ttg.local_dealloc %m : !M
  %z = arith.addf %x, %x : !A
  ttg.local_dealloc %n : !M
  tt.return %y, %z : !B, !A
}

// Not below its first use, in a branch as well.
// CHECK-LABEL: @above_its_use(
// CHECK-NEXT: ttg.local_dealloc %m :
// CHECK-NEXT: %y = ttg.convert_layout %x
// CHECK-NEXT: scf.if
// CHECK: ttg.local_dealloc %n :
tt.func public @above_its_use(%x: !A, %m: !M, %n: !M, %c: i1, %p: tensor<64x64x!tt.ptr<f16>, #b>) {
  %y = ttg.convert_layout %x : !A -> !B
  ttg.local_dealloc %m : !M
  scf.if %c {
    tt.store %p, %y : tensor<64x64x!tt.ptr<f16>, #b>
  }
  ttg.local_dealloc %n : !M
  tt.return
}

// CHECK-LABEL: @without_deallocation(
// CHECK-NEXT: %y = ttg.convert_layout %x
// CHECK-NEXT: %z = arith.addf
tt.func public @without_deallocation(%x: !A) -> (!B, !A) {
  %y = ttg.convert_layout %x : !A -> !B
  %z = arith.addf %x, %x : !A
  tt.return %y, %z : !B, !A
}
}
