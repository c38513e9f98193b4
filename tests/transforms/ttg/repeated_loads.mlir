// RUN: tilework opt %s -p tritongpu-repeated-loads

#wide = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // A number is loaded by all threads before one of them stores it, and stored before all load it; other parameters are other memory.
  tt.func public @numbers(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>, %c: i1) {
    %c1 = arith.constant 1 : i32
    %n = tt.load %p : !tt.ptr<i32>
    tt.store %q, %n : !tt.ptr<i32>
    scf.if %c {
      %old = tt.atomic_rmw exch, acq_rel, gpu, %p, %c1 : (!tt.ptr<i32>, i32) -> i32
    }
    %m = tt.load %p : !tt.ptr<i32>
    tt.store %q, %m : !tt.ptr<i32>
    tt.return
  }
  // CHECK-LABEL: @numbers
  // CHECK: tt.load
  // CHECK-NEXT: tt.store
  // CHECK-NEXT: ttg.barrier all
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: tt.atomic_rmw
  // CHECK-NEXT: }
  // CHECK-NEXT: ttg.barrier all
  // CHECK-NEXT: tt.load
  // CHECK-NEXT: tt.store

  // 64 elements and 128 threads: warps load for each other. 128 are each loaded once.
  tt.func public @tiles(%p: !tt.ptr<i32>) {
    %few = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #wide>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #wide>
    %a = tt.addptr %s, %few : tensor<64x!tt.ptr<i32>, #wide>, tensor<64xi32, #wide>
    %x = tt.load %a : tensor<64x!tt.ptr<i32>, #wide>
    tt.store %a, %few : tensor<64x!tt.ptr<i32>, #wide>
    %many = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #wide>
    %t = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #wide>
    %b = tt.addptr %t, %many : tensor<128x!tt.ptr<i32>, #wide>, tensor<128xi32, #wide>
    %y = tt.load %b : tensor<128x!tt.ptr<i32>, #wide>
    tt.store %b, %y : tensor<128x!tt.ptr<i32>, #wide>
    tt.return
  }
  // CHECK-LABEL: @tiles
  // CHECK: tt.load
  // CHECK-NEXT: ttg.barrier all
  // CHECK-NEXT: tt.store
  // CHECK-NOT: ttg.barrier all
  // CHECK: tt.return
}
