// RUN: tilework opt %s -p tritonamdgpu-schedule-loops{num-stages=2},tritonamdgpu-pipeline,canonicalize

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// Two stages are one buffer: this iteration reads it, the next one's value waits in registers and is stored behind the product. The last
// iteration is peeled, its product in a branch.
// CHECK-LABEL: @one_buffer
// CHECK:      %[[M:.*]] = ttg.local_alloc : () -> !ttg.memdesc<1x64x32xf16, #shared, #smem, mutable>
// CHECK:      %[[ANY:.*]] = arith.cmpi slt, %lb, %ub : i32
// CHECK:      tt.load %p, %{{.*}} {amd.pipeliner_part = "prologue"}
// CHECK:      ttg.local_store
// CHECK:      %[[BEFORE:.*]] = arith.subi %ub, %s : i32
// CHECK:      %[[END:.*]] = arith.select %{{.*}}, %[[BEFORE]], %lb : i32
// CHECK-NEXT: %[[R:.*]]:4 = scf.for %{{.*}} = %lb to %[[END]] step %s iter_args(%[[ACC:.*]] = %{{.*}}, %[[Q:.*]] = %p, %{{.*}}, %[[V:.*]] = %{{.*}})
// CHECK-NEXT:   %[[NEXT:.*]] = tt.addptr %[[Q]]
// CHECK-NEXT:   %[[X:.*]] = tt.load %[[NEXT]] :
// CHECK-NEXT:   %[[A:.*]] = ttg.local_load %[[V]]
// CHECK-NEXT:   tt.dot %[[A]]
// CHECK:        %[[W:.*]] = ttg.memdesc_index %[[M]]
// CHECK-NEXT:   ttg.local_store %[[X]], %[[W]]
// CHECK-NEXT:   scf.yield
// CHECK:      %[[Z:.*]] = ttg.local_load %[[R]]#3
// CHECK-NEXT: %[[IF:.*]] = scf.if %[[ANY]]
// CHECK-NEXT:   tt.dot %[[Z]], %b, %[[R]]#0
// CHECK:      %[[LAST:.*]] = arith.select %[[ANY]], %[[IF]], %[[R]]#0
// CHECK-NEXT: ttg.local_dealloc %[[M]]
// CHECK-NEXT: tt.return %[[LAST]]
tt.func public @one_buffer(%p: tensor<64x32x!tt.ptr<f16>, #blocked> {tt.divisibility = dense<[16, 16]> : tensor<2xi32>, tt.contiguity = dense<[1, 32]> : tensor<2xi32>}, %b: tensor<32x64xf16, #b>, %lb: i32, %ub: i32, %s: i32) -> tensor<64x64xf32, #mma> {
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
  %step = arith.constant dense<32> : tensor<64x32xi32, #blocked>
  %r:2 = scf.for %k = %lb to %ub step %s iter_args(%acc = %zero, %q = %p) -> (tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #blocked>) : i32 {
    %x = tt.load %q : tensor<64x32x!tt.ptr<f16>, #blocked>
    %a = ttg.convert_layout %x : tensor<64x32xf16, #blocked> -> tensor<64x32xf16, #a>
    %d = tt.dot %a, %b, %acc : tensor<64x32xf16, #a> * tensor<32x64xf16, #b> -> tensor<64x64xf32, #mma>
    %n = tt.addptr %q, %step : tensor<64x32x!tt.ptr<f16>, #blocked>, tensor<64x32xi32, #blocked>
    scf.yield %d, %n : tensor<64x64xf32, #mma>, tensor<64x32x!tt.ptr<f16>, #blocked>
  }
  tt.return %r#0 : tensor<64x64xf32, #mma>
}

// The loop asks for three stages: what no product needs waits in registers, two of them.
// CHECK-LABEL: @in_registers
// CHECK-NOT:  ttg.local_alloc
// CHECK:      %[[R:.*]]:3 = scf.for %{{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[OLD:.*]] = %{{.*}}, %[[NEW:.*]] = %{{.*}})
// CHECK:        %[[X:.*]] = tt.load
// CHECK-NEXT:   %[[T:.*]] = arith.addi %[[S]], %[[OLD]] : i32
// CHECK-NEXT:   scf.yield %[[T]], %[[NEW]], %[[X]]
tt.func public @in_registers(%p: !tt.ptr<i32>, %ub: i32) -> i32 {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %k = %zero to %ub step %one iter_args(%s = %zero) -> (i32) : i32 {
    %q = tt.addptr %p, %k : !tt.ptr<i32>, i32
    %x = tt.load %q : !tt.ptr<i32>
    %t = arith.addi %s, %x : i32
    scf.yield %t : i32
  } {tt.num_stages = 3 : i32}
  tt.return %r : i32
}
}
