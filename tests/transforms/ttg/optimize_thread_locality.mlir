// RUN: tilework opt %s -p 'tritongpu-optimize-thread-locality'

// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [4, 1, 8], warpsPerCTA = [1, 1, 4], order = [0, 2, 1]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked5 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked6 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
// CHECK-NEXT: #blocked7 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked8 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked9 = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
// CHECK-NEXT: #blocked10 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked11 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked12 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked13 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked14 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [1, 4], order = [1, 0]}>
// CHECK-NEXT: #blocked15 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 16, 2], warpsPerCTA = [4, 1, 1], order = [1, 2, 0]}>
// CHECK-NEXT: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// A view is laid out for the reduction.
// CHECK-LABEL: @r1(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<1024x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.reshape %[[B]] allow_reorder efficient_layout : tensor<1024xf32, #blocked> -> tensor<256x4xf32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<256x4xf32, #blocked1> -> tensor<256x4xf32, #blocked2>
// CHECK-NEXT: %[[E:[^ :,)]+]] = "tt.reduce"(%[[D]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[F:[^ :,)]+]]: f32, %[[G:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[H:[^ :,)]+]] = arith.addf %[[F]], %[[G]] : f32
// CHECK-NEXT: tt.reduce.return %[[H]] : f32
// CHECK-NEXT: }) : (tensor<256x4xf32, #blocked2>) -> tensor<256xf32, #ttg.slice<{dim = 1, parent = #blocked2}>>
// CHECK-NEXT: tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %[[E]] : tensor<256xf32, #ttg.slice<{dim = 1, parent = #blocked2}>>
// CHECK-NEXT: tt.return
tt.func public @r1(%p: !tt.ptr<f32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %x = tt.load %ps : tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %v = tt.reshape %x allow_reorder : tensor<1024xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>> -> tensor<256x4xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %r0 = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<256x4xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<256xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r0 : tensor<256xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  tt.return
}

// Of rank 3.
// CHECK-LABEL: @r8(
// CHECK: {{.*}} = tt.reshape {{.*}} allow_reorder efficient_layout : tensor<4096xf32, #blocked> -> tensor<4x32x32xf32, #blocked3>
tt.func public @r8(%p: !tt.ptr<f32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %x = tt.load %ps : tensor<4096x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %v = tt.reshape %x allow_reorder : tensor<4096xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>> -> tensor<4x32x32xf32, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>
  %r0 = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<4x32x32xf32, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>) -> tensor<4x32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r0 : tensor<4x32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>}>>
  tt.return
}

// Two reductions along the same axis.
// CHECK-LABEL: @r4(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<1024x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.reshape %[[B]] allow_reorder efficient_layout : tensor<1024xf32, #blocked> -> tensor<4x256xf32, #blocked5>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<4x256xf32, #blocked5> -> tensor<4x256xf32, #blocked6>
// CHECK-NEXT: %[[E:[^ :,)]+]] = "tt.reduce"(%[[D]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[F:[^ :,)]+]]: f32, %[[G:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[H:[^ :,)]+]] = arith.addf %[[F]], %[[G]] : f32
// CHECK-NEXT: tt.reduce.return %[[H]] : f32
// CHECK-NEXT: }) : (tensor<4x256xf32, #blocked6>) -> tensor<4xf32, #ttg.slice<{dim = 1, parent = #blocked6}>>
// CHECK-NEXT: tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %[[E]] : tensor<4xf32, #ttg.slice<{dim = 1, parent = #blocked6}>>
// CHECK-NEXT: %[[I:[^ :,)]+]] = "tt.reduce"(%[[D]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[F]]: f32, %[[G]]: f32):
// CHECK-NEXT: %[[H]] = arith.addf %[[F]], %[[G]] : f32
// CHECK-NEXT: tt.reduce.return %[[H]] : f32
// CHECK-NEXT: }) : (tensor<4x256xf32, #blocked6>) -> tensor<4xf32, #ttg.slice<{dim = 1, parent = #blocked6}>>
// CHECK-NEXT: tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %[[I]] : tensor<4xf32, #ttg.slice<{dim = 1, parent = #blocked6}>>
// CHECK-NEXT: tt.return
tt.func public @r4(%p: !tt.ptr<f32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %x = tt.load %ps : tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %v = tt.reshape %x allow_reorder : tensor<1024xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>> -> tensor<4x256xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>
  %r0 = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<4x256xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>) -> tensor<4xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r0 : tensor<4xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  %r1 = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<4x256xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>) -> tensor<4xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r1 : tensor<4xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.return
}

// From an accumulator of tensor cores.
// CHECK-LABEL: @r17(
// CHECK: {{.*}} = tt.reshape {{.*}} allow_reorder efficient_layout : tensor<64x64xf32, #mma> -> tensor<32x128xf32, #blocked7>
tt.func public @r17(%p: !tt.ptr<f32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>>
  %x = tt.load %ps : tensor<64x64x!tt.ptr<f32>, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>>
  %v = tt.reshape %x allow_reorder : tensor<64x64xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>> -> tensor<32x128xf32, #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %r0 = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r0 : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  tt.return
}

// Must not fire: two axes.
// CHECK-LABEL: @r5(
// CHECK-NOT: efficient_layout
tt.func public @r5(%p: !tt.ptr<f32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %x = tt.load %ps : tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %v = tt.reshape %x allow_reorder : tensor<1024xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>> -> tensor<4x256xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>
  %r0 = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<4x256xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>) -> tensor<256xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r0 : tensor<256xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  %r1 = "tt.reduce"(%v) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<4x256xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>) -> tensor<4xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r1 : tensor<4xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.return
}

// Must not fire: already inside threads.
// CHECK-LABEL: @r12(
// CHECK-NOT: efficient_layout
tt.func public @r12(%p: !tt.ptr<f32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %x = tt.load %ps : tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %v = tt.reshape %x allow_reorder : tensor<1024xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>> -> tensor<4x256xf32, #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>
  %r0 = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<4x256xf32, #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>>) -> tensor<256xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r0 : tensor<256xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>}>>
  tt.return
}

// Must not fire: already so.
// CHECK-LABEL: @r6(
// CHECK-NOT: efficient_layout
tt.func public @r6(%p: !tt.ptr<f32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %x = tt.load %ps : tensor<128x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %v = tt.reshape %x allow_reorder : tensor<128xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>> -> tensor<4x32xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %r0 = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<4x32xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<32xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r0 : tensor<32xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  tt.return
}

// One warp gathers along its own lanes.
// CHECK-LABEL: @g1(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #blocked11>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<128x64x!tt.ptr<f32>, #blocked11>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.splat %q : !tt.ptr<i32> -> tensor<128x64x!tt.ptr<i32>, #blocked11>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.load %[[C]] : tensor<128x64x!tt.ptr<i32>, #blocked11>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %[[B]] : tensor<128x64xf32, #blocked11> -> tensor<128x64xf32, #blocked12>
// CHECK-NEXT: %[[F:[^ :,)]+]] = ttg.convert_layout %[[D]] : tensor<128x64xi32, #blocked11> -> tensor<128x64xi32, #blocked12>
// CHECK-NEXT: %[[G:[^ :,)]+]] = tt.gather %[[E]][%[[F]]] {axis = 0 : i32, efficient_layout} : (tensor<128x64xf32, #blocked12>, tensor<128x64xi32, #blocked12>) -> tensor<128x64xf32, #blocked12>
// CHECK-NEXT: %[[H:[^ :,)]+]] = ttg.convert_layout %[[G]] : tensor<128x64xf32, #blocked12> -> tensor<128x64xf32, #blocked11>
// CHECK-NEXT: tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %[[H]] : tensor<128x64xf32, #blocked11>
// CHECK-NEXT: tt.return
tt.func public @g1(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %x = tt.load %ps : tensor<128x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %qs = tt.splat %q : !tt.ptr<i32> -> tensor<128x64x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %i = tt.load %qs : tensor<128x64x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %g = tt.gather %x[%i] {axis = 0 : i32} : (tensor<128x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>, tensor<128x64xi32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<128x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %g : tensor<128x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.return
}

// Along the other axis.
// CHECK-LABEL: @g2(
// CHECK: {{.*}} = tt.gather {{.*}}[{{.*}}] {axis = 1 : i32, efficient_layout} : (tensor<128x64xf32, #blocked8>, tensor<128x64xi32, #blocked8>) -> tensor<128x64xf32, #blocked8>
tt.func public @g2(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %x = tt.load %ps : tensor<128x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %qs = tt.splat %q : !tt.ptr<i32> -> tensor<128x64x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %i = tt.load %qs : tensor<128x64x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %g = tt.gather %x[%i] {axis = 1 : i32} : (tensor<128x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>, tensor<128x64xi32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<128x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %g : tensor<128x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.return
}

// Fewer indices than elements.
// CHECK-LABEL: @g3(
// CHECK: {{.*}} = tt.gather {{.*}}[{{.*}}] {axis = 0 : i32, efficient_layout} : (tensor<128x64xf32, #blocked12>, tensor<16x64xi32, #blocked12>) -> tensor<16x64xf32, #blocked12>
tt.func public @g3(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %x = tt.load %ps : tensor<128x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %qs = tt.splat %q : !tt.ptr<i32> -> tensor<16x64x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %i = tt.load %qs : tensor<16x64x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %g = tt.gather %x[%i] {axis = 0 : i32} : (tensor<128x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>, tensor<16x64xi32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<16x64xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %g : tensor<16x64xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.return
}

// Lanes and warps that are left hold copies.
// CHECK-LABEL: @g10(
// CHECK: {{.*}} = tt.gather {{.*}}[{{.*}}] {axis = 1 : i32, efficient_layout} : (tensor<2x2xf32, #blocked14>, tensor<2x2xi32, #blocked14>) -> tensor<2x2xf32, #blocked14>
tt.func public @g10(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<2x2x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %x = tt.load %ps : tensor<2x2x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %qs = tt.splat %q : !tt.ptr<i32> -> tensor<2x2x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %i = tt.load %qs : tensor<2x2x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %g = tt.gather %x[%i] {axis = 1 : i32} : (tensor<2x2xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>>, tensor<2x2xi32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<2x2xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %g : tensor<2x2xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.return
}

// Rank 3.
// CHECK-LABEL: @g5(
// CHECK: {{.*}} = tt.gather {{.*}}[{{.*}}] {axis = 1 : i32, efficient_layout} : (tensor<8x16x32xf32, #blocked15>, tensor<8x16x32xi32, #blocked15>) -> tensor<8x16x32xf32, #blocked15>
tt.func public @g5(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<8x16x32x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>
  %x = tt.load %ps : tensor<8x16x32x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>
  %qs = tt.splat %q : !tt.ptr<i32> -> tensor<8x16x32x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>
  %i = tt.load %qs : tensor<8x16x32x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>
  %g = tt.gather %x[%i] {axis = 1 : i32} : (tensor<8x16x32xf32, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>, tensor<8x16x32xi32, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>) -> tensor<8x16x32xf32, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %g : tensor<8x16x32xf32, #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>>
  tt.return
}

// Must not fire: rank 1.
// CHECK-LABEL: @g8(
// CHECK-NOT: efficient_layout
tt.func public @g8(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %x = tt.load %ps : tensor<1024x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %qs = tt.splat %q : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %i = tt.load %qs : tensor<1024x!tt.ptr<i32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %g = tt.gather %x[%i] {axis = 0 : i32} : (tensor<1024xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>, tensor<1024xi32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>) -> tensor<1024xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %g : tensor<1024xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  tt.return
}
}
