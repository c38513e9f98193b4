// RUN: tilework opt %s -p 'tritongpu-optimize-thread-locality'

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [2, 16, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [2, 16, 1], warpsPerCTA = [4, 1, 1], order = [0, 2, 1]}>
// CHECK-NEXT: #blocked5 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked6 = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 32, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked7 = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked8 = #ttg.blocked<{sizePerThread = [1, 1, 1, 4], threadsPerWarp = [1, 2, 16, 1], warpsPerCTA = [2, 2, 1, 1], order = [3, 2, 1, 0]}>
// CHECK-NEXT: #blocked9 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK-NEXT: #blocked10 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// A sum, in parts of 8 elements a thread.
// CHECK-LABEL: @base(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[E:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[F:[^ :,)]+]]:2 = scf.for %[[G:[^ :,)]+]] = %[[A]] to %n step %[[B]] iter_args(%[[H:[^ :,)]+]] = %[[C]], %[[I:[^ :,)]+]] = %[[D]]) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>, tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>)  : i32 {
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.load %[[E]] : tensor<32x128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[K:[^ :,)]+]] = "tt.reduce"(%[[J]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[L:[^ :,)]+]]: f32, %[[M:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[N:[^ :,)]+]] = arith.addf %[[L]], %[[M]] : f32
// CHECK-NEXT: tt.reduce.return %[[N]] : f32
// CHECK-NEXT: }) : (tensor<32x128xf32, #blocked>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[O:[^ :,)]+]] = tt.reshape %[[J]] allow_reorder efficient_layout : tensor<32x128xf32, #blocked> -> tensor<32x16x8xf32, #blocked1>
// CHECK-NEXT: %[[P:[^ :,)]+]] = "tt.reduce"(%[[O]]) <{axis = 2 : i32}> ({
// CHECK-NEXT: ^bb0(%[[L]]: f32, %[[M]]: f32):
// CHECK-NEXT: %[[N]] = arith.addf %[[L]], %[[M]] : f32
// CHECK-NEXT: tt.reduce.return %[[N]] : f32
// CHECK-NEXT: }) : (tensor<32x16x8xf32, #blocked1>) -> tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[Q:[^ :,)]+]] = arith.addf %[[I]], %[[P]] : tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[R:[^ :,)]+]] = arith.addf %[[H]], %[[K]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: scf.yield %[[H]], %[[Q]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>, tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: }
// CHECK-NEXT: %[[S:[^ :,)]+]] = "tt.reduce"(%[[F]]#1) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[L]]: f32, %[[M]]: f32):
// CHECK-NEXT: %[[N]] = arith.addf %[[L]], %[[M]] : f32
// CHECK-NEXT: tt.reduce.return %[[N]] : f32
// CHECK-NEXT: }) : (tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #blocked1}>}>>
// CHECK-NEXT: %[[T:[^ :,)]+]] = ttg.convert_layout %[[S]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #blocked1}>}>> -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[U:[^ :,)]+]] = arith.addf %[[C]], %[[T]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %[[U]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: tt.return
tt.func public @base(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Two accumulators in one loop: a maximum and a product.
// CHECK-LABEL: @max2(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant dense<2.000000e+00> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.constant dense<0xFF800000> : tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.constant dense<1.000000e+00> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.constant dense<1.000000e+00> : tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[H:[^ :,)]+]]:4 = scf.for %[[I:[^ :,)]+]] = %[[A]] to %n step %[[B]] iter_args(%[[J:[^ :,)]+]] = %[[C]], %[[K:[^ :,)]+]] = %[[E]], %[[L:[^ :,)]+]] = %[[D]], %[[M:[^ :,)]+]] = %[[F]]) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>, tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>, tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>, tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>)  : i32 {
// CHECK-NEXT: %[[N:[^ :,)]+]] = tt.load %[[G]] : tensor<32x128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[O:[^ :,)]+]] = "tt.reduce"(%[[N]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[P:[^ :,)]+]]: f32, %[[Q:[^ :,)]+]]: f32):
// CHECK-NEXT: %[[R:[^ :,)]+]] = arith.maximumf %[[P]], %[[Q]] : f32
// CHECK-NEXT: tt.reduce.return %[[R]] : f32
// CHECK-NEXT: }) : (tensor<32x128xf32, #blocked>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[S:[^ :,)]+]] = tt.reshape %[[N]] allow_reorder efficient_layout : tensor<32x128xf32, #blocked> -> tensor<32x16x8xf32, #blocked1>
// CHECK-NEXT: %[[T:[^ :,)]+]] = "tt.reduce"(%[[S]]) <{axis = 2 : i32}> ({
// CHECK-NEXT: ^bb0(%[[P]]: f32, %[[Q]]: f32):
// CHECK-NEXT: %[[R]] = arith.maximumf %[[P]], %[[Q]] : f32
// CHECK-NEXT: tt.reduce.return %[[R]] : f32
// CHECK-NEXT: }) : (tensor<32x16x8xf32, #blocked1>) -> tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[U:[^ :,)]+]] = arith.maximumf %[[L]], %[[T]] : tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[V:[^ :,)]+]] = arith.maximumf %[[O]], %[[J]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[W:[^ :,)]+]] = tt.load %[[G]] : tensor<32x128x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[X:[^ :,)]+]] = "tt.reduce"(%[[W]]) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[P]]: f32, %[[Q]]: f32):
// CHECK-NEXT: %[[R]] = arith.mulf %[[P]], %[[Q]] : f32
// CHECK-NEXT: tt.reduce.return %[[R]] : f32
// CHECK-NEXT: }) : (tensor<32x128xf32, #blocked>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[Y:[^ :,)]+]] = tt.reshape %[[W]] allow_reorder efficient_layout : tensor<32x128xf32, #blocked> -> tensor<32x16x8xf32, #blocked1>
// CHECK-NEXT: %[[Z:[^ :,)]+]] = "tt.reduce"(%[[Y]]) <{axis = 2 : i32}> ({
// CHECK-NEXT: ^bb0(%[[P]]: f32, %[[Q]]: f32):
// CHECK-NEXT: %[[R]] = arith.mulf %[[P]], %[[Q]] : f32
// CHECK-NEXT: tt.reduce.return %[[R]] : f32
// CHECK-NEXT: }) : (tensor<32x16x8xf32, #blocked1>) -> tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[AA:[^ :,)]+]] = arith.mulf %[[M]], %[[Z]] : tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: %[[AB:[^ :,)]+]] = arith.mulf %[[K]], %[[X]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: scf.yield %[[J]], %[[K]], %[[U]], %[[AA]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>, tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>, tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>, tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK-NEXT: }
// CHECK-NEXT: %[[AC:[^ :,)]+]] = "tt.reduce"(%[[H]]#3) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[P]]: f32, %[[Q]]: f32):
// CHECK-NEXT: %[[R]] = arith.mulf %[[P]], %[[Q]] : f32
// CHECK-NEXT: tt.reduce.return %[[R]] : f32
// CHECK-NEXT: }) : (tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #blocked1}>}>>
// CHECK-NEXT: %[[AD:[^ :,)]+]] = ttg.convert_layout %[[AC]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #blocked1}>}>> -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[AE:[^ :,)]+]] = arith.mulf %[[E]], %[[AD]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[AF:[^ :,)]+]] = "tt.reduce"(%[[H]]#2) <{axis = 1 : i32}> ({
// CHECK-NEXT: ^bb0(%[[P]]: f32, %[[Q]]: f32):
// CHECK-NEXT: %[[R]] = arith.maximumf %[[P]], %[[Q]] : f32
// CHECK-NEXT: tt.reduce.return %[[R]] : f32
// CHECK-NEXT: }) : (tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #blocked1}>}>>
// CHECK-NEXT: %[[AG:[^ :,)]+]] = ttg.convert_layout %[[AF]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #blocked1}>}>> -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[AH:[^ :,)]+]] = arith.maximumf %[[C]], %[[AG]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>>
// CHECK-NEXT: %[[AI:[^ :,)]+]] = ttg.convert_layout %[[AH]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<32xf32, #blocked2>
// CHECK-NEXT: %[[AJ:[^ :,)]+]] = ttg.convert_layout %[[AE]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<32xf32, #blocked2>
// CHECK-NEXT: %[[AK:[^ :,)]+]] = arith.addf %[[AI]], %[[AJ]] : tensor<32xf32, #blocked2>
// CHECK-NEXT: %[[AL:[^ :,)]+]] = tt.splat %q : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.store %[[AL]], %[[AK]] : tensor<32x!tt.ptr<f32>, #blocked2>
// CHECK-NEXT: tt.return
tt.func public @max2(%p: !tt.ptr<f32>, %n: i32, %q: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<2.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %init2 = arith.constant dense<1.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %acc2 = %init2) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>, tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.maximumf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.maximumf %red, %acc : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %x2 = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red2 = "tt.reduce"(%x2) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.mulf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y2 = arith.mulf %acc2, %red2 : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y, %y2 : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>, tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  %f = ttg.convert_layout %r#0 : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<32xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %g = ttg.convert_layout %r#1 : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<32xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %h = arith.addf %f, %g : tensor<32xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<32x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  tt.store %qs, %h : tensor<32x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  tt.return
}

// The axis is not the fastest: the view keeps every element in its row.
// CHECK-LABEL: @order01(
// CHECK: {{.*}} = arith.constant dense<0.000000e+00> : tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked4}>>
// CHECK: {{.*}} = tt.reshape {{.*}} allow_reorder efficient_layout : tensor<32x128xf32, #blocked3> -> tensor<32x16x8xf32, #blocked4>
tt.func public @order01(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [0, 1]}>}>>
  tt.return
}

// Threads hold copies.
// CHECK-LABEL: @rep(
// CHECK: {{.*}} = arith.constant dense<0.000000e+00> : tensor<32x8xf32, #ttg.slice<{dim = 2, parent = #blocked6}>>
// CHECK: {{.*}} = tt.reshape {{.*}} allow_reorder efficient_layout : tensor<32x32xf32, #blocked5> -> tensor<32x8x4xf32, #blocked6>
tt.func public @rep(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>) : i32 {
    %x = tt.load %ps : tensor<32x32x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x32xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
  tt.return
}

// Rank 3.
// CHECK-LABEL: @rank3(
// CHECK: {{.*}} = arith.constant dense<0.000000e+00> : tensor<8x32xf32, #ttg.slice<{dim = 2, parent = #blocked7}>>
// CHECK: {{.*}} = tt.reshape {{.*}} allow_reorder efficient_layout : tensor<8x32x128xf32, #blocked7> -> tensor<8x32x16x8xf32, #blocked8>
tt.func public @rank3(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<8x32xf32, #ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<8x32x128x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<8x32xf32, #ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>>) : i32 {
    %x = tt.load %ps : tensor<8x32x128x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>>
    %red = "tt.reduce"(%x) <{axis = 2 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<8x32x128xf32, #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>>) -> tensor<8x32xf32, #ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>>
    %y = arith.addf %acc, %red : tensor<8x32xf32, #ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>>
    scf.yield %y : tensor<8x32xf32, #ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<8x32xf32, #ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>}>>
  tt.return
}

// A maximum in f16.
// CHECK-LABEL: @f16max(
// CHECK: {{.*}} = arith.constant dense<0xFC00> : tensor<32x16xf16, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK: {{.*}} = tt.reshape {{.*}} allow_reorder efficient_layout : tensor<32x128xf16, #blocked> -> tensor<32x16x8xf16, #blocked1>
tt.func public @f16max(%p: !tt.ptr<f16>, %n: i32, %z: f16) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<3.0> : tensor<32xf16, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<32x128x!tt.ptr<f16>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf16, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f16>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f16, %m: f16):
      %a = arith.maxnumf %l, %m : f16
      tt.reduce.return %a : f16
    }) : (tensor<32x128xf16, #b>) -> tensor<32xf16, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.maxnumf %acc, %red : tensor<32xf16, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf16, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf16, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Other users of what is loaded.
// CHECK-LABEL: @useload(
// CHECK: {{.*}} = arith.constant dense<0.000000e+00> : tensor<32x16xf32, #ttg.slice<{dim = 2, parent = #blocked1}>>
// CHECK: {{.*}} = tt.reshape {{.*}} allow_reorder efficient_layout : tensor<32x128xf32, #blocked> -> tensor<32x16x8xf32, #blocked1>
tt.func public @useload(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %x : tensor<32x128xf32, #b>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Must not fire: one element a thread.
// CHECK-LABEL: @one(
// CHECK-NOT: efficient_layout
tt.func public @one(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>}>>) : i32 {
    %x = tt.load %ps : tensor<32x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x64xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>}>>
  tt.return
}

// Must not fire: not the last axis.
// CHECK-LABEL: @axis0(
// CHECK-NOT: efficient_layout
tt.func public @axis0(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x32x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>}>>) : i32 {
    %x = tt.load %ps : tensor<128x32x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>>
    %red = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<128x32xf32, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>>) -> tensor<32xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>}>>
  tt.return
}

// Must not fire: integers.
// CHECK-LABEL: @int(
// CHECK-NOT: efficient_layout
tt.func public @int(%p: !tt.ptr<i32>, %n: i32, %z: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<3> : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<i32> -> tensor<32x128x!tt.ptr<i32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<i32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: i32, %m: i32):
      %a = arith.addi %l, %m : i32
      tt.reduce.return %a : i32
    }) : (tensor<32x128xi32, #b>) -> tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.addi %acc, %red : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xi32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Must not fire: a difference.
// CHECK-LABEL: @sub(
// CHECK-NOT: efficient_layout
tt.func public @sub(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.subf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.subf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Must not fire: the loop multiplies sums.
// CHECK-LABEL: @mixed(
// CHECK-NOT: efficient_layout
tt.func public @mixed(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.mulf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Must not fire: the start is not a constant.
// CHECK-LABEL: @splatinit(
// CHECK-NOT: efficient_layout
tt.func public @splatinit(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = tt.splat %z : f32 -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Must not fire: the source is not loaded directly.
// CHECK-LABEL: @elementwise(
// CHECK-NOT: efficient_layout
tt.func public @elementwise(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %w = arith.addf %x, %x : tensor<32x128xf32, #b>
    %red = "tt.reduce"(%w) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Must not fire: another op uses the accumulator.
// CHECK-LABEL: @useacc(
// CHECK-NOT: efficient_layout
tt.func public @useacc(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %acc : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Must not fire: another op uses the new accumulator.
// CHECK-LABEL: @useupd(
// CHECK-NOT: efficient_layout
tt.func public @useupd(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}

// Must not fire: not a blocked layout.
// CHECK-LABEL: @mma(
// CHECK-NOT: efficient_layout
tt.func public @mma(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>}>>) : i32 {
    %x = tt.load %ps : tensor<64x128x!tt.ptr<f32>, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<64x128xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>}>>
    %y = arith.addf %acc, %red : tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>}>>
    scf.yield %y : tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>}>>
  }
  tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>}>>
  tt.return
}

// Must not fire: the result is unused.
// CHECK-LABEL: @dead(
// CHECK-NOT: efficient_layout
tt.func public @dead(%p: !tt.ptr<f32>, %n: i32, %z: f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %init = arith.constant dense<0.0> : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x128x!tt.ptr<f32>, #b>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>) : i32 {
    %x = tt.load %ps : tensor<32x128x!tt.ptr<f32>, #b>
    %red = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %a = arith.addf %l, %m : f32
      tt.reduce.return %a : f32
    }) : (tensor<32x128xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    %y = arith.addf %acc, %red : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    scf.yield %y : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  }
  // tt.print " x: " {hex = false, isSigned = array<i32: 0>} : %r : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return
}
}
