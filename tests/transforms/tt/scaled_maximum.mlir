// RUN: tilework opt %s -p tt-scaled-maximum

// CHECK-LABEL: tt.func public @scores
// CHECK:         %[[NEGATIVE:.*]] = arith.cmpf olt, %scale, %{{.*}} : f32
// CHECK:         %[[SIGN:.*]] = arith.select %[[NEGATIVE]], %{{.*}}, %{{.*}} : f16
// CHECK:         %[[SIGNS:.*]] = tt.splat %[[SIGN]] : f16 -> tensor<16x16xf16>
// CHECK-NEXT:    %[[Q:.*]] = arith.mulf %q, %[[SIGNS]] : tensor<16x16xf16>
// CHECK-NEXT:    %[[POSITIVE:.*]] = math.absf %scale : f32
// CHECK-NEXT:    %[[WHOLE:.*]] = tt.splat %[[POSITIVE]] : f32 -> tensor<16x16xf32>
// CHECK-NEXT:    scf.for
// CHECK:           %[[SUMS:.*]] = tt.dot %[[Q]], %k
// CHECK:           arith.mulf %[[SUMS]], %[[WHOLE]] : tensor<16x16xf32>
// CHECK:           %[[MOST:.*]] = "tt.reduce"(%[[SUMS]])
// CHECK:           %[[LINES:.*]] = tt.splat %{{.*}} : f32 -> tensor<16xf32>
// CHECK-NEXT:      %[[M:.*]] = arith.mulf %[[MOST]], %[[LINES]] : tensor<16xf32>
// CHECK-NEXT:      tt.expand_dims %[[M]]
tt.func public @scores(%out: !tt.ptr<f32>, %q: tensor<16x16xf16>, %k: tensor<16x16xf16>, %scale: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %sums = tt.dot %q, %k, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %scales = tt.splat %scale : f32 -> tensor<16x16xf32>
    %s = arith.mulf %sums, %scales : tensor<16x16xf32>
    %m = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %x = arith.maxnumf %a, %b : f32
      tt.reduce.return %x : f32
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
    %mb = tt.broadcast %m1 : tensor<16x1xf32> -> tensor<16x16xf32>
    %d = arith.subf %s, %mb : tensor<16x16xf32>
    %next = arith.addf %acc, %d : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %ps = tt.splat %out : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %ps, %r : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @scale_of_each_round
// CHECK-NOT:     math.absf
// CHECK:         tt.return
tt.func public @scale_of_each_round(%out: !tt.ptr<f32>, %q: tensor<16x16xf16>, %k: tensor<16x16xf16>, %scale: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %f = arith.sitofp %i : i32 to f32
    %sums = tt.dot %q, %k, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %scales = tt.splat %f : f32 -> tensor<16x16xf32>
    %s = arith.mulf %sums, %scales : tensor<16x16xf32>
    %m = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %x = arith.maxnumf %a, %b : f32
      tt.reduce.return %x : f32
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
    %mb = tt.broadcast %m1 : tensor<16x1xf32> -> tensor<16x16xf32>
    %d = arith.subf %s, %mb : tensor<16x16xf32>
    %next = arith.addf %acc, %d : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %ps = tt.splat %out : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %ps, %r : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @scaled_sums_are_also_used_otherwise
// CHECK-NOT:     math.absf
// CHECK:         tt.return
tt.func public @scaled_sums_are_also_used_otherwise(%out: !tt.ptr<f32>, %q: tensor<16x16xf16>, %k: tensor<16x16xf16>, %scale: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %sums = tt.dot %q, %k, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %scales = tt.splat %scale : f32 -> tensor<16x16xf32>
    %s = arith.mulf %sums, %scales : tensor<16x16xf32>
    %m = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %x = arith.maxnumf %a, %b : f32
      tt.reduce.return %x : f32
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
    %mb = tt.broadcast %m1 : tensor<16x1xf32> -> tensor<16x16xf32>
    %d = arith.addf %s, %mb : tensor<16x16xf32>
    %next = arith.addf %acc, %d : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %ps = tt.splat %out : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %ps, %r : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// The loop behind has the same left factor, in the same buffer.
// CHECK-LABEL: tt.func public @two_loops
// CHECK-NOT:     tt.dot %q
// CHECK:         tt.return
tt.func public @two_loops(%out: !tt.ptr<f32>, %q: tensor<16x16xf16>, %k: tensor<16x16xf16>, %scale: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %scales = tt.splat %scale : f32 -> tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %sums = tt.dot %q, %k, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %s = arith.mulf %sums, %scales : tensor<16x16xf32>
    %m = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %x = arith.maxnumf %a, %b : f32
      tt.reduce.return %x : f32
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
    %mb = tt.broadcast %m1 : tensor<16x1xf32> -> tensor<16x16xf32>
    %d = arith.subf %s, %mb : tensor<16x16xf32>
    %next = arith.addf %acc, %d : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %behind = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %r) -> (tensor<16x16xf32>) : i32 {
    %sums = tt.dot %q, %k, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %s = arith.mulf %scales, %sums : tensor<16x16xf32>
    %next = arith.maxnumf %acc, %s : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %ps = tt.splat %out : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %ps, %behind : tensor<16x16x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func public @also_without_scale
// CHECK-NOT:     math.absf
// CHECK:         tt.return
tt.func public @also_without_scale(%out: !tt.ptr<f32>, %q: tensor<16x16xf16>, %k: tensor<16x16xf16>, %scale: f32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.000000e+00> : tensor<16x16xf32>
  %scales = tt.splat %scale : f32 -> tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<16x16xf32>) : i32 {
    %sums = tt.dot %q, %k, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %s = arith.mulf %sums, %scales : tensor<16x16xf32>
    %m = "tt.reduce"(%s) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %x = arith.maxnumf %a, %b : f32
      tt.reduce.return %x : f32
    }) : (tensor<16x16xf32>) -> tensor<16xf32>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
    %mb = tt.broadcast %m1 : tensor<16x1xf32> -> tensor<16x16xf32>
    %d = arith.subf %s, %mb : tensor<16x16xf32>
    %next = arith.addf %acc, %d : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %behind = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %r) -> (tensor<16x16xf32>) : i32 {
    %sums = tt.dot %q, %k, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %s = arith.addf %scales, %sums : tensor<16x16xf32>
    %next = arith.maxnumf %acc, %s : tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %ps = tt.splat %out : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  tt.store %ps, %behind : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
