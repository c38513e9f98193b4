// RUN: tilework opt %s -p tritongpu-remove-layout-conversions

// Ops with layouts of their own, and ops that have any.

// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK-NEXT: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-NEXT: #smem = #ttg.shared_memory

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#c = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
#d = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#e = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#m3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#sh = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The wait of an asynchronous dot passes layouts on.
// CHECK-LABEL: tt.func public @dot_wait(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttng.warp_group_dot %a, %b, %[[A]] {isAsync = true} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[C:[^ :,)#]+]]:2 = ttng.warp_group_dot_wait %[[B]], %a {pendings = 0 : i32} : tensor<64x64xf32, #mma>, !ttg.memdesc<64x64xf16, #shared, #smem>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = math.exp2 %[[C]]#0 : tensor<64x64xf32, #mma>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = ttg.convert_layout %[[D]] : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.store %q, %[[E]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @dot_wait(%a: !ttg.memdesc<64x64xf16, #sh, #smem>, %b: !ttg.memdesc<64x64xf16, #sh, #smem>, %q: tensor<64x64x!tt.ptr<f32>, #a>) {
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #m3>
  %d = ttng.warp_group_dot %a, %b, %z {isAsync = true} : !ttg.memdesc<64x64xf16, #sh, #smem> * !ttg.memdesc<64x64xf16, #sh, #smem> -> tensor<64x64xf32, #m3>
  %c = ttg.convert_layout %d : tensor<64x64xf32, #m3> -> tensor<64x64xf32, #a>
  %w:2 = ttng.warp_group_dot_wait %c, %a {pendings = 0 : i32} : tensor<64x64xf32, #a>, !ttg.memdesc<64x64xf16, #sh, #smem>
  %e = math.exp2 %w#0 : tensor<64x64xf32, #a>
  tt.store %q, %e : tensor<64x64x!tt.ptr<f32>, #a>
  tt.return
}

// Memory is read in the layout that is wanted.
// CHECK-LABEL: tt.func public @local_load(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = ttg.local_load %a : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.addf %[[A]], %[[A]] : tensor<64x64xf16, #blocked>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<64x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @local_load(%a: !ttg.memdesc<64x64xf16, #sh, #smem>, %q: tensor<64x64x!tt.ptr<f16>, #a>) {
  %v = ttg.local_load %a : !ttg.memdesc<64x64xf16, #sh, #smem> -> tensor<64x64xf16, #c>
  %w = arith.addf %v, %v : tensor<64x64xf16, #c>
  %x = ttg.convert_layout %w : tensor<64x64xf16, #c> -> tensor<64x64xf16, #a>
  tt.store %q, %x : tensor<64x64x!tt.ptr<f16>, #a>
  tt.return
}

// A histogram gives its result in any layout, and takes any.
// CHECK-LABEL: tt.func public @histogram(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<512x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.histogram %[[A]] : tensor<512xi32, #blocked1> -> tensor<512xi32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<512x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @histogram(%p: tensor<512x!tt.ptr<i32>, #e>, %q: tensor<512x!tt.ptr<i32>, #e>) {
  %v = tt.load %p : tensor<512x!tt.ptr<i32>, #e>
  %w = ttg.convert_layout %v : tensor<512xi32, #e> -> tensor<512xi32, #d>
  %h = tt.histogram %w : tensor<512xi32, #d> -> tensor<512xi32, #d>
  %i = ttg.convert_layout %h : tensor<512xi32, #d> -> tensor<512xi32, #e>
  tt.store %q, %i : tensor<512x!tt.ptr<i32>, #e>
  tt.return
}

// `tt.cat` may reorder, so that its result cannot be computed again.
// CHECK-LABEL: tt.func public @cat(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<512x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.cat %[[A]], %[[A]] : tensor<512xi32, #blocked1> -> tensor<1024xi32, #blocked2>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.addi %[[B]], %[[B]] : tensor<1024xi32, #blocked2>
// CHECK-NEXT: tt.store %q, %[[C]] : tensor<1024x!tt.ptr<i32>, #blocked2>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @cat(%p: tensor<512x!tt.ptr<i32>, #e>, %q: tensor<1024x!tt.ptr<i32>, #d>) {
  %v = tt.load %p : tensor<512x!tt.ptr<i32>, #e>
  %c = tt.cat %v, %v : tensor<512xi32, #e> -> tensor<1024xi32, #e>
  %s = arith.addi %c, %c : tensor<1024xi32, #e>
  %w = ttg.convert_layout %s : tensor<1024xi32, #e> -> tensor<1024xi32, #d>
  tt.store %q, %w : tensor<1024x!tt.ptr<i32>, #d>
  tt.return
}

// Atomics have the layout they should have.
// CHECK-LABEL: tt.func public @atomics(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<true> : tensor<512xi1, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %p : tensor<512x!tt.ptr<i32>, #blocked2> -> tensor<512x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.splat %n : i32 -> tensor<512xi32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = tt.atomic_rmw add, acq_rel, gpu, %[[B]], %[[C]], %[[A]] : (tensor<512x!tt.ptr<i32>, #blocked1>, tensor<512xi32, #blocked1>, tensor<512xi1, #blocked1>) -> tensor<512xi32, #blocked1>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = ttg.convert_layout %[[D]] : tensor<512xi32, #blocked1> -> tensor<512xi32, #blocked2>
// CHECK-NEXT: tt.store %q, %[[E]] : tensor<512x!tt.ptr<i32>, #blocked2>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @atomics(%p: tensor<512x!tt.ptr<i32>, #d>, %q: tensor<512x!tt.ptr<i32>, #d>, %n: i32) {
  %m = arith.constant dense<true> : tensor<512xi1, #e>
  %pe = ttg.convert_layout %p : tensor<512x!tt.ptr<i32>, #d> -> tensor<512x!tt.ptr<i32>, #e>
  %s = tt.splat %n : i32 -> tensor<512xi32, #e>
  %o = tt.atomic_rmw add, acq_rel, gpu, %pe, %s, %m : (tensor<512x!tt.ptr<i32>, #e>, tensor<512xi32, #e>, tensor<512xi1, #e>) -> tensor<512xi32, #e>
  %w = ttg.convert_layout %o : tensor<512xi32, #e> -> tensor<512xi32, #d>
  tt.store %q, %w : tensor<512x!tt.ptr<i32>, #d>
  tt.return
}

// One element: every thread has it.
// CHECK-LABEL: tt.func public @one_element(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.load %[[A]] : tensor<1x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.store %[[C]], %[[B]] : tensor<1x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @one_element(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  %s = tt.splat %p : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>, #d>
  %v = tt.load %s : tensor<1x!tt.ptr<f32>, #d>
  %w = ttg.convert_layout %v : tensor<1xf32, #d> -> tensor<1xf32, #e>
  %t = tt.splat %q : !tt.ptr<f32> -> tensor<1x!tt.ptr<f32>, #e>
  tt.store %t, %w : tensor<1x!tt.ptr<f32>, #e>
  tt.return
}

// Values from blocks and calls stay as they are; poison is made anew.
// CHECK-LABEL: tt.func public @blocks_calls_poison(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = ub.poison : tensor<512xi32, #blocked1>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ub.poison : tensor<512xi32, #blocked2>
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.call @callee(%[[B]]) : (tensor<512xi32, #blocked2>) -> tensor<512xi32, #blocked2>
// CHECK-NEXT: cf.cond_br %b, ^bb1(%[[C]] : tensor<512xi32, #blocked2>), ^bb2
// CHECK-NEXT: ^bb1(%[[D:[^ :,)#]+]]: tensor<512xi32, #blocked2>):  // pred: ^bb0
// CHECK-NEXT: %[[E:[^ :,)#]+]] = ttg.convert_layout %[[D]] : tensor<512xi32, #blocked2> -> tensor<512xi32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[E]] : tensor<512x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = ttg.convert_layout %[[C]] : tensor<512xi32, #blocked2> -> tensor<512xi32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[F]] : tensor<512x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: tt.store %q, %[[A]] : tensor<512x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: cf.br ^bb2
// CHECK-NEXT: ^bb2:  // 2 preds: ^bb0, ^bb1
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @blocks_calls_poison(%b: i1, %q: tensor<512x!tt.ptr<i32>, #e>) {
  %u = ub.poison : tensor<512xi32, #d>
  %v = tt.call @callee(%u) : (tensor<512xi32, #d>) -> tensor<512xi32, #d>
  cf.cond_br %b, ^bb1(%v : tensor<512xi32, #d>), ^bb2
^bb1(%x: tensor<512xi32, #d>):
  %y = ttg.convert_layout %x : tensor<512xi32, #d> -> tensor<512xi32, #e>
  tt.store %q, %y : tensor<512x!tt.ptr<i32>, #e>
  %z = ttg.convert_layout %v : tensor<512xi32, #d> -> tensor<512xi32, #e>
  tt.store %q, %z : tensor<512x!tt.ptr<i32>, #e>
  %w = ttg.convert_layout %u : tensor<512xi32, #d> -> tensor<512xi32, #e>
  tt.store %q, %w : tensor<512x!tt.ptr<i32>, #e>
  cf.br ^bb2
^bb2:
  tt.return
}

// CHECK-LABEL: tt.func private @callee(
// CHECK-NEXT: tt.return %x : tensor<512xi32, #blocked2>
// CHECK-NEXT: }
tt.func private @callee(%x: tensor<512xi32, #d>) -> tensor<512xi32, #d> {
  tt.return %x : tensor<512xi32, #d>
}

// There is nothing to do.
// CHECK-LABEL: tt.func public @no_conversions(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.addf %[[A]], %[[A]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @no_conversions(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #a>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  %w = arith.addf %v, %v : tensor<64x64xf32, #a>
  tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #a>
  tt.return
}
}
