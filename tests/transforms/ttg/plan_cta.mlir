// RUN: tilework opt %s -p 'triton-nvidia-gpu-plan-cta'

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0], CGALayout = [[1, 0]]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0], CGALayout = [[1, 0]]}>
#blocked2 = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#blocked3 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#blocked4 = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#blocked5 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>
#blocked6 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 4, 1], order = [2, 1, 0], CGALayout = [[1, 0, 0]]}>
#blocked7 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1], CGALayout = [[1, 0]]}>
#blocked8 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#blocked9 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [0, 1], CGALayout = [[0, 1]]}>
#blocked10 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 1]]}>
#blocked11 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1], CGALayout = [[0, 1]]}>
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0], CGALayout = {{\[\[}}1, 0]]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0], CGALayout = {{\[\[}}0, 0]]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0], CGALayout = {{\[\[}}1, 0]]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = {{\[\[}}1, 0]]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0], CGALayout = {{\[\[}}0, 0]]}>
// CHECK-NEXT: #blocked5 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0], CGALayout = {{\[\[}}0, 1]]}>
// CHECK-NEXT: #blocked6 = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = {{\[\[}}0, 1]]}>
// CHECK-NEXT: #blocked7 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = {{\[\[}}0, 0]]}>
// CHECK-NEXT: #blocked8 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = {{\[\[}}0, 1]]}>
// CHECK-NEXT: #blocked9 = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = {{\[\[}}0, 1]]}>
// CHECK-NEXT: #blocked10 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = {{\[\[}}1]]}>
// CHECK-NEXT: #blocked11 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 2, 16], warpsPerCTA = [1, 4, 1], order = [2, 1, 0], CGALayout = {{\[\[}}0, 0, 1]]}>
// CHECK-NEXT: #blocked12 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = {{\[\[}}0, 1]]}>
// CHECK-NEXT: #blocked13 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = {{\[\[}}0]]}>
// CHECK-NEXT: #blocked14 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1], CGALayout = {{\[\[}}1, 0]]}>
// CHECK-NEXT: #blocked15 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [0, 1], CGALayout = {{\[\[}}1, 0]]}>
// CHECK-NEXT: #blocked16 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = {{\[\[}}1, 0]]}>
// CHECK-NEXT: #blocked17 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1], CGALayout = {{\[\[}}0, 1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Each block computes 128 rows: its rows of A, all of B.
// CHECK-LABEL: @dot_256_128(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f16> -> tensor<256x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<256x64x!tt.ptr<f16>, #blocked>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.splat %p : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.load %[[C]] : tensor<64x128x!tt.ptr<f16>, #blocked1>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<256x128xf32, #blocked2>
// CHECK-NEXT: %[[F:[^ :,)]+]] = ttg.convert_layout %[[B]] : tensor<256x64xf16, #blocked> -> tensor<256x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked3}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[D]] : tensor<64x128xf16, #blocked1> -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked3}>>
// CHECK-NEXT: %[[H:[^ :,)]+]] = ttg.convert_layout %[[E]] : tensor<256x128xf32, #blocked2> -> tensor<256x128xf32, #blocked3>
// CHECK-NEXT: %[[I:[^ :,)]+]] = tt.dot %[[F]], %[[G]], %[[H]] : tensor<256x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked3}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked3}>> -> tensor<256x128xf32, #blocked3>
// CHECK-NEXT: %[[J:[^ :,)]+]] = ttg.convert_layout %[[I]] : tensor<256x128xf32, #blocked3> -> tensor<256x128xf32, #blocked2>
// CHECK-NEXT: %[[K:[^ :,)]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<256x128x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.store %[[K]], %[[J]] : tensor<256x128x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.return
  tt.func public @dot_256_128(%p: !tt.ptr<f16>, %q: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<256x64x!tt.ptr<f16>, #blocked>
    %a = tt.load %ps : tensor<256x64x!tt.ptr<f16>, #blocked>
    %bs = tt.splat %p : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>, #blocked1>
    %b = tt.load %bs : tensor<64x128x!tt.ptr<f16>, #blocked1>
    %c = arith.constant dense<0.000000e+00> : tensor<256x128xf32, #blocked1>
    %0 = ttg.convert_layout %a : tensor<256x64xf16, #blocked> -> tensor<256x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked2}>>
    %1 = ttg.convert_layout %b : tensor<64x128xf16, #blocked1> -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked2}>>
    %2 = ttg.convert_layout %c : tensor<256x128xf32, #blocked1> -> tensor<256x128xf32, #blocked2>
    %d = tt.dot %0, %1, %2 : tensor<256x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked2}>> -> tensor<256x128xf32, #blocked2>
    %3 = ttg.convert_layout %d : tensor<256x128xf32, #blocked2> -> tensor<256x128xf32, #blocked1>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<256x128x!tt.ptr<f32>, #blocked1>
    tt.store %qs, %3 : tensor<256x128x!tt.ptr<f32>, #blocked1>
    tt.return
  }

// 128 columns are divided.
// CHECK-LABEL: @dot_128_128(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>, #blocked4>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<128x64x!tt.ptr<f16>, #blocked4>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.splat %p : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>, #blocked5>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.load %[[C]] : tensor<64x128x!tt.ptr<f16>, #blocked5>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #blocked5>
// CHECK-NEXT: %[[F:[^ :,)]+]] = ttg.convert_layout %[[B]] : tensor<128x64xf16, #blocked4> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked6}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[D]] : tensor<64x128xf16, #blocked5> -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked6}>>
// CHECK-NEXT: %[[H:[^ :,)]+]] = ttg.convert_layout %[[E]] : tensor<128x128xf32, #blocked5> -> tensor<128x128xf32, #blocked6>
// CHECK-NEXT: %[[I:[^ :,)]+]] = tt.dot %[[F]], %[[G]], %[[H]] : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked6}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked6}>> -> tensor<128x128xf32, #blocked6>
// CHECK-NEXT: %[[J:[^ :,)]+]] = ttg.convert_layout %[[I]] : tensor<128x128xf32, #blocked6> -> tensor<128x128xf32, #blocked5>
// CHECK-NEXT: %[[K:[^ :,)]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: tt.store %[[K]], %[[J]] : tensor<128x128x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: tt.return
  tt.func public @dot_128_128(%p: !tt.ptr<f16>, %q: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>, #blocked>
    %a = tt.load %ps : tensor<128x64x!tt.ptr<f16>, #blocked>
    %bs = tt.splat %p : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>, #blocked1>
    %b = tt.load %bs : tensor<64x128x!tt.ptr<f16>, #blocked1>
    %c = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #blocked1>
    %0 = ttg.convert_layout %a : tensor<128x64xf16, #blocked> -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked2}>>
    %1 = ttg.convert_layout %b : tensor<64x128xf16, #blocked1> -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked2}>>
    %2 = ttg.convert_layout %c : tensor<128x128xf32, #blocked1> -> tensor<128x128xf32, #blocked2>
    %d = tt.dot %0, %1, %2 : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked2}>> * tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked2}>> -> tensor<128x128xf32, #blocked2>
    %3 = ttg.convert_layout %d : tensor<128x128xf32, #blocked2> -> tensor<128x128xf32, #blocked1>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>, #blocked1>
    tt.store %qs, %3 : tensor<128x128x!tt.ptr<f32>, #blocked1>
    tt.return
  }

// Nothing fits: columns are divided all the same.
// CHECK-LABEL: @dot_64_64(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>, #blocked7>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<64x32x!tt.ptr<f16>, #blocked7>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.splat %p : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>, #blocked8>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.load %[[C]] : tensor<32x64x!tt.ptr<f16>, #blocked8>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #blocked8>
// CHECK-NEXT: %[[F:[^ :,)]+]] = ttg.convert_layout %[[B]] : tensor<64x32xf16, #blocked7> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked9}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[D]] : tensor<32x64xf16, #blocked8> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked9}>>
// CHECK-NEXT: %[[H:[^ :,)]+]] = ttg.convert_layout %[[E]] : tensor<64x64xf32, #blocked8> -> tensor<64x64xf32, #blocked9>
// CHECK-NEXT: %[[I:[^ :,)]+]] = tt.dot %[[F]], %[[G]], %[[H]] : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked9}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked9}>> -> tensor<64x64xf32, #blocked9>
// CHECK-NEXT: %[[J:[^ :,)]+]] = ttg.convert_layout %[[I]] : tensor<64x64xf32, #blocked9> -> tensor<64x64xf32, #blocked8>
// CHECK-NEXT: %[[K:[^ :,)]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked8>
// CHECK-NEXT: tt.store %[[K]], %[[J]] : tensor<64x64x!tt.ptr<f32>, #blocked8>
// CHECK-NEXT: tt.return
  tt.func public @dot_64_64(%p: !tt.ptr<f16>, %q: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>, #blocked3>
    %a = tt.load %ps : tensor<64x32x!tt.ptr<f16>, #blocked3>
    %bs = tt.splat %p : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>, #blocked>
    %b = tt.load %bs : tensor<32x64x!tt.ptr<f16>, #blocked>
    %c = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #blocked>
    %0 = ttg.convert_layout %a : tensor<64x32xf16, #blocked3> -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked4}>>
    %1 = ttg.convert_layout %b : tensor<32x64xf16, #blocked> -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked4}>>
    %2 = ttg.convert_layout %c : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked4>
    %d = tt.dot %0, %1, %2 : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked4}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked4}>> -> tensor<64x64xf32, #blocked4>
    %3 = ttg.convert_layout %d : tensor<64x64xf32, #blocked4> -> tensor<64x64xf32, #blocked>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
    tt.store %qs, %3 : tensor<64x64x!tt.ptr<f32>, #blocked>
    tt.return
  }

// The axis that is reduced stays whole.
// CHECK-LABEL: @red_128x64_0(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #blocked8>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<128x64x!tt.ptr<f32>, #blocked8>
// CHECK-NEXT: %[[C:[^ :,)]+]] = "tt.reduce"(%[[B]]) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D:[^ :,)]+]]: f32, %[[E:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addf %[[D]], %[[E]] : f32
// CHECK-NEXT: tt.reduce.return %[[F]] : f32
// CHECK-NEXT: }) : (tensor<128x64xf32, #blocked8>) -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #blocked8}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<64xf32, #ttg.slice<{dim = 0, parent = #blocked8}>> -> tensor<64xf32, #blocked10>
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked10>
// CHECK-NEXT: tt.store %[[H]], %[[G]] : tensor<64x!tt.ptr<f32>, #blocked10>
// CHECK-NEXT: tt.return
  tt.func public @red_128x64_0(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>, #blocked>
    %a = tt.load %ps : tensor<128x64x!tt.ptr<f32>, #blocked>
    %d = "tt.reduce"(%a) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %x = arith.addf %l, %m : f32
      tt.reduce.return %x : f32
    }) : (tensor<128x64xf32, #blocked>) -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %0 = ttg.convert_layout %d : tensor<64xf32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<64xf32, #blocked5>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked5>
    tt.store %qs, %0 : tensor<64x!tt.ptr<f32>, #blocked5>
    tt.return
  }

// Of the other dimensions, the fastest.
// CHECK-LABEL: @red_8x16x32_1(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<8x16x32x!tt.ptr<f32>, #blocked11>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<8x16x32x!tt.ptr<f32>, #blocked11>
// CHECK-NEXT: %[[C:[^ :,)]+]] = "tt.reduce"(%[[B]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[D:[^ :,)]+]]: f32, %[[E:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.addf %[[D]], %[[E]] : f32
// CHECK-NEXT: tt.reduce.return %[[F]] : f32
// CHECK-NEXT: }) : (tensor<8x16x32xf32, #blocked11>) -> tensor<8x32xf32, #ttg.slice<{dim = 1, parent = #blocked11}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<8x32xf32, #ttg.slice<{dim = 1, parent = #blocked11}>> -> tensor<8x32xf32, #blocked12>
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<8x32x!tt.ptr<f32>, #blocked12>
// CHECK-NEXT: tt.store %[[H]], %[[G]] : tensor<8x32x!tt.ptr<f32>, #blocked12>
// CHECK-NEXT: tt.return
  tt.func public @red_8x16x32_1(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<8x16x32x!tt.ptr<f32>, #blocked6>
    %a = tt.load %ps : tensor<8x16x32x!tt.ptr<f32>, #blocked6>
    %d = "tt.reduce"(%a) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %x = arith.addf %l, %m : f32
      tt.reduce.return %x : f32
    }) : (tensor<8x16x32xf32, #blocked6>) -> tensor<8x32xf32, #ttg.slice<{dim = 1, parent = #blocked6}>>
    %0 = ttg.convert_layout %d : tensor<8x32xf32, #ttg.slice<{dim = 1, parent = #blocked6}>> -> tensor<8x32xf32, #blocked3>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<8x32x!tt.ptr<f32>, #blocked3>
    tt.store %qs, %0 : tensor<8x32x!tt.ptr<f32>, #blocked3>
    tt.return
  }

// There is no other dimension: both blocks have all of it, in the loop too.
// CHECK-LABEL: @row(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<64xf32, #blocked13>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked13>
// CHECK-NEXT: %[[E:[^ :,)]+]] = scf.for %[[F:[^ :,)]+]] = %[[A]] to %n step %[[B]] iter_args(%[[G:[^ :,)]+]] = %[[C]]) -> (tensor<64xf32, #blocked13>)  : i32 {
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.load %[[D]] : tensor<64x!tt.ptr<f32>, #blocked13>
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.addf %[[G]], %[[H]] : tensor<64xf32, #blocked13>
// CHECK-NEXT: scf.yield %[[I]] : tensor<64xf32, #blocked13>
// CHECK-NEXT: }
// CHECK-NEXT: %[[J:[^ :,)]+]] = "tt.reduce"(%[[E]]) <{axis = 0 : i32}> ({
// CHECK-NEXT: ^bb0(%[[K:[^ :,)]+]]: f32, %[[L:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[H]] = arith.addf %[[K]], %[[L]] : f32
// CHECK-NEXT: tt.reduce.return %[[H]] : f32
// CHECK-NEXT: }) : (tensor<64xf32, #blocked13>) -> f32
// CHECK-NEXT: tt.store %p, %[[J]] : !tt.ptr<f32>
// CHECK-NEXT: tt.return
  tt.func public @row(%p: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64xf32, #blocked5>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>, #blocked5>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64xf32, #blocked5>)  : i32 {
      %x = tt.load %ps : tensor<64x!tt.ptr<f32>, #blocked5>
      %y = arith.addf %acc, %x : tensor<64xf32, #blocked5>
      scf.yield %y : tensor<64xf32, #blocked5>
    }
    %d = "tt.reduce"(%s) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %x = arith.addf %l, %m : f32
      tt.reduce.return %x : f32
    }) : (tensor<64xf32, #blocked5>) -> f32
    tt.store %p, %d : !tt.ptr<f32>
    tt.return
  }

// Without a dot or a reduction, as the store.
// CHECK-LABEL: @pointers(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked13>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xi32, #blocked13> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked14}>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.expand_dims %[[B]] {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked14}>> -> tensor<64x1xi32, #blocked14>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<64x1xi32, #blocked14> -> tensor<64x1xi32, #blocked>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xi32, #blocked13> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked15}>>
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.expand_dims %[[E]] {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked15}>> -> tensor<1x64xi32, #blocked15>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[F]] : tensor<1x64xi32, #blocked15> -> tensor<1x64xi32, #blocked>
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.splat %n : i32 -> tensor<64x1xi32, #blocked>
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.muli %[[D]], %[[H]] : tensor<64x1xi32, #blocked>
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.broadcast %[[I]] : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[K:[^ :,)]+]] = ttg.convert_layout %[[J]] : tensor<64x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[L:[^ :,)]+]] = tt.broadcast %[[G]] : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[M:[^ :,)]+]] = ttg.convert_layout %[[L]] : tensor<64x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[N:[^ :,)]+]] = arith.addi %[[K]], %[[M]] : tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[O:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[P:[^ :,)]+]] = tt.addptr %[[O]], %[[N]] : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[Q:[^ :,)]+]] = tt.load %[[P]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.store %[[P]], %[[Q]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return
  tt.func public @pointers(%p: !tt.ptr<f32>, %n: i32) {
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked5>
    %0 = ttg.convert_layout %r : tensor<64xi32, #blocked5> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked7}>>
    %e = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked7}>> -> tensor<64x1xi32, #blocked7>
    %1 = ttg.convert_layout %e : tensor<64x1xi32, #blocked7> -> tensor<64x1xi32, #blocked8>
    %2 = ttg.convert_layout %r : tensor<64xi32, #blocked5> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked9}>>
    %f = tt.expand_dims %2 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked9}>> -> tensor<1x64xi32, #blocked9>
    %3 = ttg.convert_layout %f : tensor<1x64xi32, #blocked9> -> tensor<1x64xi32, #blocked10>
    %s = tt.splat %n : i32 -> tensor<64x1xi32, #blocked8>
    %m = arith.muli %1, %s : tensor<64x1xi32, #blocked8>
    %a = tt.broadcast %m : tensor<64x1xi32, #blocked8> -> tensor<64x64xi32, #blocked8>
    %4 = ttg.convert_layout %a : tensor<64x64xi32, #blocked8> -> tensor<64x64xi32, #blocked>
    %b = tt.broadcast %3 : tensor<1x64xi32, #blocked10> -> tensor<64x64xi32, #blocked10>
    %5 = ttg.convert_layout %b : tensor<64x64xi32, #blocked10> -> tensor<64x64xi32, #blocked>
    %o = arith.addi %4, %5 : tensor<64x64xi32, #blocked>
    %q = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
    %t = tt.addptr %q, %o : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
    %v = tt.load %t : tensor<64x64x!tt.ptr<f32>, #blocked>
    tt.store %t, %v : tensor<64x64x!tt.ptr<f32>, #blocked>
    tt.return
  }

// Must not fire: transposed values keep their layouts.
// CHECK-LABEL: @transposed(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>, #blocked16>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.load %[[A]] : tensor<64x32x!tt.ptr<f32>, #blocked16>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.trans %[[B]] {order = array<i32: 1, 0>} : tensor<64x32xf32, #blocked16> -> tensor<32x64xf32, #blocked17>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<32x64xf32, #blocked17> -> tensor<32x64xf32, #blocked>
// CHECK-NEXT: %[[E:[^ :,)]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.store %[[E]], %[[D]] : tensor<32x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.return
  tt.func public @transposed(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>, #blocked3>
    %a = tt.load %ps : tensor<64x32x!tt.ptr<f32>, #blocked3>
    %t = tt.trans %a {order = array<i32: 1, 0>} : tensor<64x32xf32, #blocked3> -> tensor<32x64xf32, #blocked11>
    %0 = ttg.convert_layout %t : tensor<32x64xf32, #blocked11> -> tensor<32x64xf32, #blocked>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #blocked>
    tt.store %qs, %0 : tensor<32x64x!tt.ptr<f32>, #blocked>
    tt.return
  }
}
