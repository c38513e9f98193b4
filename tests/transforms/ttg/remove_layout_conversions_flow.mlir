// RUN: tilework opt %s -p tritongpu-remove-layout-conversions

// Through loops and branches.

// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
#c = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
#d = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#e = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Pointers that a loop carries take the layout of the load; the old ones are carried no more.
// CHECK-LABEL: tt.func public @carried_pointers(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<64> : tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = tt.splat %s : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = scf.for %[[G:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[H:[^ :,)#]+]] = %[[D]]) -> (tensor<64x64x!tt.ptr<f32>, #blocked>)  : i32 {
// CHECK-NEXT: %[[I:[^ :,)#]+]] = tt.load %[[H]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: tt.store %[[E]], %[[I]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[J:[^ :,)#]+]] = tt.addptr %[[H]], %[[C]] : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
// CHECK-NEXT: scf.yield %[[J]] : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @carried_pointers(%p: !tt.ptr<f32>, %n: i32, %s: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %step = arith.constant dense<64> : tensor<64x64xi32, #c>
  %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #c>
  %q = tt.splat %s : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #a>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%x = %p0) -> (tensor<64x64x!tt.ptr<f32>, #c>) : i32 {
    %y = ttg.convert_layout %x : tensor<64x64x!tt.ptr<f32>, #c> -> tensor<64x64x!tt.ptr<f32>, #a>
    %v = tt.load %y : tensor<64x64x!tt.ptr<f32>, #a>
    tt.store %q, %v : tensor<64x64x!tt.ptr<f32>, #a>
    %z = tt.addptr %x, %step : tensor<64x64x!tt.ptr<f32>, #c>, tensor<64x64xi32, #c>
    scf.yield %z : tensor<64x64x!tt.ptr<f32>, #c>
  }
  tt.return
}

// The accumulator of a loop has the layout of what is added to it; it is converted once, behind the loop.
// CHECK-LABEL: tt.func public @carried_sum(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = scf.for %[[E:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[F:[^ :,)#]+]] = %[[C]]) -> (tensor<64x64xf32, #blocked>)  : i32 {
// CHECK-NEXT: %[[G:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: %[[H:[^ :,)#]+]] = arith.addf %[[F]], %[[G]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: scf.yield %[[H]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: %[[I:[^ :,)#]+]] = ttg.convert_layout %[[D]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[I]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @carried_sum(%p: tensor<64x64x!tt.ptr<f32>, #a>, %n: i32, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0.0> : tensor<64x64xf32, #c>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z) -> (tensor<64x64xf32, #c>) : i32 {
    %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
    %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #c>
    %y = arith.addf %x, %w : tensor<64x64xf32, #c>
    scf.yield %y : tensor<64x64xf32, #c>
  }
  %m = ttg.convert_layout %l : tensor<64x64xf32, #c> -> tensor<64x64xf32, #b>
  tt.store %q, %m : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}

// A carried value that is wanted in two layouts is carried in both.
// CHECK-LABEL: tt.func public @carried_in_two_layouts(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<0> : tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.constant dense<0> : tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.constant dense<1> : tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[F:[^ :,)#]+]] = arith.constant dense<1> : tensor<64x64xi32, #blocked1>
// CHECK-NEXT: %[[G:[^ :,)#]+]]:2 = scf.for %[[H:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[I:[^ :,)#]+]] = %[[C]], %[[J:[^ :,)#]+]] = %[[D]]) -> (tensor<64x64xi32, #blocked>, tensor<64x64xi32, #blocked1>)  : i32 {
// CHECK-NEXT: tt.store %q, %[[I]] : tensor<64x64x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: tt.store %r, %[[J]] : tensor<64x64x!tt.ptr<i32>, #blocked1>
// CHECK-NEXT: %[[K:[^ :,)#]+]] = arith.addi %[[I]], %[[E]] : tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[L:[^ :,)#]+]] = arith.addi %[[J]], %[[F]] : tensor<64x64xi32, #blocked1>
// CHECK-NEXT: scf.yield %[[K]], %[[L]] : tensor<64x64xi32, #blocked>, tensor<64x64xi32, #blocked1>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @carried_in_two_layouts(%n: i32, %q: tensor<64x64x!tt.ptr<i32>, #a>, %r: tensor<64x64x!tt.ptr<i32>, #b>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0> : tensor<64x64xi32, #c>
  %one = arith.constant dense<1> : tensor<64x64xi32, #c>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z) -> (tensor<64x64xi32, #c>) : i32 {
    %v = ttg.convert_layout %x : tensor<64x64xi32, #c> -> tensor<64x64xi32, #a>
    tt.store %q, %v : tensor<64x64x!tt.ptr<i32>, #a>
    %w = ttg.convert_layout %x : tensor<64x64xi32, #c> -> tensor<64x64xi32, #b>
    tt.store %r, %w : tensor<64x64x!tt.ptr<i32>, #b>
    %y = arith.addi %x, %one : tensor<64x64xi32, #c>
    scf.yield %y : tensor<64x64xi32, #c>
  }
  tt.return
}

// Through two loops.
// CHECK-LABEL: tt.func public @nested_loops(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<0> : tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.constant dense<1> : tensor<64x64xi32, #blocked>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = scf.for %[[F:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[G:[^ :,)#]+]] = %[[C]]) -> (tensor<64x64xi32, #blocked>)  : i32 {
// CHECK-NEXT: %[[H:[^ :,)#]+]] = scf.for %[[I:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[J:[^ :,)#]+]] = %[[G]]) -> (tensor<64x64xi32, #blocked>)  : i32 {
// CHECK-NEXT: tt.store %q, %[[J]] : tensor<64x64x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: %[[K:[^ :,)#]+]] = arith.addi %[[J]], %[[D]] : tensor<64x64xi32, #blocked>
// CHECK-NEXT: scf.yield %[[K]] : tensor<64x64xi32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: %[[L:[^ :,)#]+]] = arith.addi %[[G]], %[[D]] : tensor<64x64xi32, #blocked>
// CHECK-NEXT: scf.yield %[[L]] : tensor<64x64xi32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @nested_loops(%n: i32, %q: tensor<64x64x!tt.ptr<i32>, #a>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0> : tensor<64x64xi32, #c>
  %one = arith.constant dense<1> : tensor<64x64xi32, #c>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z) -> (tensor<64x64xi32, #c>) : i32 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%u = %x) -> (tensor<64x64xi32, #c>) : i32 {
      %w = ttg.convert_layout %u : tensor<64x64xi32, #c> -> tensor<64x64xi32, #a>
      tt.store %q, %w : tensor<64x64x!tt.ptr<i32>, #a>
      %v = arith.addi %u, %one : tensor<64x64xi32, #c>
      scf.yield %v : tensor<64x64xi32, #c>
    }
    %y = arith.addi %x, %one : tensor<64x64xi32, #c>
    scf.yield %y : tensor<64x64xi32, #c>
  }
  tt.return
}

// What a loop results in is not computed again.
// CHECK-LABEL: tt.func public @results_of_loops_stay(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<0> : tensor<64x64xi32, #blocked2>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.constant dense<1> : tensor<64x64xi32, #blocked2>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = scf.for %[[F:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[G:[^ :,)#]+]] = %[[C]]) -> (tensor<64x64xi32, #blocked2>)  : i32 {
// CHECK-NEXT: %[[H:[^ :,)#]+]] = arith.addi %[[G]], %[[D]] : tensor<64x64xi32, #blocked2>
// CHECK-NEXT: scf.yield %[[H]] : tensor<64x64xi32, #blocked2>
// CHECK-NEXT: }
// CHECK-NEXT: %[[I:[^ :,)#]+]] = ttg.convert_layout %[[E]] : tensor<64x64xi32, #blocked2> -> tensor<64x64xi32, #blocked>
// CHECK-NEXT: tt.store %q, %[[I]] : tensor<64x64x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @results_of_loops_stay(%n: i32, %q: tensor<64x64x!tt.ptr<i32>, #a>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %z = arith.constant dense<0> : tensor<64x64xi32, #c>
  %one = arith.constant dense<1> : tensor<64x64xi32, #c>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%x = %z) -> (tensor<64x64xi32, #c>) : i32 {
    %y = arith.addi %x, %one : tensor<64x64xi32, #c>
    scf.yield %y : tensor<64x64xi32, #c>
  }
  %w = ttg.convert_layout %l : tensor<64x64xi32, #c> -> tensor<64x64xi32, #a>
  tt.store %q, %w : tensor<64x64x!tt.ptr<i32>, #a>
  tt.return
}

// Both branches are cheap: they compute in the new layout.
// CHECK-LABEL: tt.func public @out_of_a_branch(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = scf.if %b -> (tensor<512xi32, #blocked3>) {
// CHECK-NEXT: %[[B:[^ :,)#]+]] = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #blocked3>
// CHECK-NEXT: scf.yield %[[B]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.splat %n : i32 -> tensor<512xi32, #blocked3>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = arith.muli %[[C]], %[[C]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: scf.yield %[[D]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %q, %[[A]] : tensor<512x!tt.ptr<i32>, #blocked3>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @out_of_a_branch(%b: i1, %n: i32, %q: tensor<512x!tt.ptr<i32>, #e>) {
  %z = scf.if %b -> (tensor<512xi32, #d>) {
    %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #d>
    scf.yield %r : tensor<512xi32, #d>
  } else {
    %s = tt.splat %n : i32 -> tensor<512xi32, #d>
    %t = arith.muli %s, %s : tensor<512xi32, #d>
    scf.yield %t : tensor<512xi32, #d>
  }
  %w = ttg.convert_layout %z : tensor<512xi32, #d> -> tensor<512xi32, #e>
  tt.store %q, %w : tensor<512x!tt.ptr<i32>, #e>
  tt.return
}

// The result of a branch has the layout of the load in it.
// CHECK-LABEL: tt.func public @into_a_branch(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<7> : tensor<512xi32, #blocked3>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = scf.if %b -> (tensor<512xi32, #blocked3>) {
// CHECK-NEXT: %[[C:[^ :,)#]+]] = tt.load %p : tensor<512x!tt.ptr<i32>, #blocked3>
// CHECK-NEXT: scf.yield %[[C]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: } else {
// CHECK-NEXT: scf.yield %[[A]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<512x!tt.ptr<i32>, #blocked3>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @into_a_branch(%b: i1, %p: tensor<512x!tt.ptr<i32>, #e>, %q: tensor<512x!tt.ptr<i32>, #e>) {
  %c = arith.constant dense<7> : tensor<512xi32, #d>
  %z = scf.if %b -> (tensor<512xi32, #d>) {
    %v = tt.load %p : tensor<512x!tt.ptr<i32>, #e>
    %w = ttg.convert_layout %v : tensor<512xi32, #e> -> tensor<512xi32, #d>
    scf.yield %w : tensor<512xi32, #d>
  } else {
    scf.yield %c : tensor<512xi32, #d>
  }
  %w = ttg.convert_layout %z : tensor<512xi32, #d> -> tensor<512xi32, #e>
  tt.store %q, %w : tensor<512x!tt.ptr<i32>, #e>
  tt.return
}

// A `while` takes over the layout of what goes into it.
// CHECK-LABEL: tt.func public @into_a_while(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<512x!tt.ptr<i32>, #blocked3>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = scf.while (%[[C:[^ :,)#]+]] = %[[A]]) : (tensor<512xi32, #blocked3>) -> tensor<512xi32, #blocked3> {
// CHECK-NEXT: scf.condition(%b) %[[C]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%[[D:[^ :,)#]+]]: tensor<512xi32, #blocked3>):
// CHECK-NEXT: %[[E:[^ :,)#]+]] = arith.addi %[[D]], %[[D]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: scf.yield %[[E]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: }
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<512x!tt.ptr<i32>, #blocked3>
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @into_a_while(%b: i1, %p: tensor<512x!tt.ptr<i32>, #e>, %q: tensor<512x!tt.ptr<i32>, #e>) {
  %v = tt.load %p : tensor<512x!tt.ptr<i32>, #e>
  %w = ttg.convert_layout %v : tensor<512xi32, #e> -> tensor<512xi32, #d>
  %l = scf.while (%x = %w) : (tensor<512xi32, #d>) -> tensor<512xi32, #d> {
    scf.condition(%b) %x : tensor<512xi32, #d>
  } do {
  ^bb0(%y: tensor<512xi32, #d>):
    %z = arith.addi %y, %y : tensor<512xi32, #d>
    scf.yield %z : tensor<512xi32, #d>
  }
  %m = ttg.convert_layout %l : tensor<512xi32, #d> -> tensor<512xi32, #e>
  tt.store %q, %m : tensor<512x!tt.ptr<i32>, #e>
  tt.return
}

// Nothing goes out of a `while` backwards.
// CHECK-LABEL: tt.func public @not_out_of_a_while(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant dense<7> : tensor<512xi32, #blocked4>
// CHECK-NEXT: %[[B:[^ :,)#]+]] = scf.while (%[[C:[^ :,)#]+]] = %[[A]]) : (tensor<512xi32, #blocked4>) -> tensor<512xi32, #blocked4> {
// CHECK-NEXT: %[[D:[^ :,)#]+]] = ttg.convert_layout %[[C]] : tensor<512xi32, #blocked4> -> tensor<512xi32, #blocked3>
// CHECK-NEXT: tt.store %q, %[[D]] : tensor<512x!tt.ptr<i32>, #blocked3>
// CHECK-NEXT: scf.condition(%b) %[[C]] : tensor<512xi32, #blocked4>
// CHECK-NEXT: } do {
// CHECK-NEXT: ^bb0(%[[E:[^ :,)#]+]]: tensor<512xi32, #blocked4>):
// CHECK-NEXT: %[[F:[^ :,)#]+]] = arith.addi %[[E]], %[[E]] : tensor<512xi32, #blocked4>
// CHECK-NEXT: scf.yield %[[F]] : tensor<512xi32, #blocked4>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @not_out_of_a_while(%b: i1, %q: tensor<512x!tt.ptr<i32>, #e>) {
  %c = arith.constant dense<7> : tensor<512xi32, #d>
  %l = scf.while (%x = %c) : (tensor<512xi32, #d>) -> tensor<512xi32, #d> {
    %w = ttg.convert_layout %x : tensor<512xi32, #d> -> tensor<512xi32, #e>
    tt.store %q, %w : tensor<512x!tt.ptr<i32>, #e>
    scf.condition(%b) %x : tensor<512xi32, #d>
  } do {
  ^bb0(%y: tensor<512xi32, #d>):
    %z = arith.addi %y, %y : tensor<512xi32, #d>
    scf.yield %z : tensor<512xi32, #d>
  }
  tt.return
}

// A conversion that does not dominate another one does not serve it.
// CHECK-LABEL: tt.func public @conversions_in_two_branches(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = tt.load %p : tensor<64x64x!tt.ptr<f32>, #blocked>
// CHECK-NEXT: scf.if %b {
// CHECK-NEXT: %[[B:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[B]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: } else {
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.addf %[[A]], %[[A]] : tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = ttg.convert_layout %[[A]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[D]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: %[[E:[^ :,)#]+]] = ttg.convert_layout %[[C]] : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #blocked1>
// CHECK-NEXT: tt.store %q, %[[E]] : tensor<64x64x!tt.ptr<f32>, #blocked1>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @conversions_in_two_branches(%b: i1, %p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
  %v = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
  scf.if %b {
    %w = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %w : tensor<64x64x!tt.ptr<f32>, #b>
  } else {
    %x = arith.addf %v, %v : tensor<64x64xf32, #a>
    %y = ttg.convert_layout %v : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %y : tensor<64x64x!tt.ptr<f32>, #b>
    %z = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %z : tensor<64x64x!tt.ptr<f32>, #b>
  }
  tt.return
}

// A carried value that only keeps itself alive goes, conversions or not.
// CHECK-LABEL: tt.func public @dead_arguments(
// CHECK-NEXT: %[[A:[^ :,)#]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[B:[^ :,)#]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[C:[^ :,)#]+]] = arith.constant dense<1> : tensor<512xi32, #blocked3>
// CHECK-NEXT: %[[D:[^ :,)#]+]] = scf.for %[[E:[^ :,)#]+]] = %[[A]] to %n step %[[B]] iter_args(%[[F:[^ :,)#]+]] = %[[C]]) -> (tensor<512xi32, #blocked3>)  : i32 {
// CHECK-NEXT: tt.store %p, %[[F]] : tensor<512x!tt.ptr<i32>, #blocked3>
// CHECK-NEXT: %[[G:[^ :,)#]+]] = arith.addi %[[F]], %[[C]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: scf.yield %[[G]] : tensor<512xi32, #blocked3>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
// CHECK-NEXT: }
tt.func public @dead_arguments(%n: i32, %p: tensor<512x!tt.ptr<i32>, #e>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1> : tensor<512xi32, #e>
  %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%x = %one, %y = %one) -> (tensor<512xi32, #e>, tensor<512xi32, #e>) : i32 {
    tt.store %p, %y : tensor<512x!tt.ptr<i32>, #e>
    %u = arith.muli %x, %x : tensor<512xi32, #e>
    %v = arith.addi %y, %one : tensor<512xi32, #e>
    scf.yield %u, %v : tensor<512xi32, #e>, tensor<512xi32, #e>
  }
  tt.return
}
}
