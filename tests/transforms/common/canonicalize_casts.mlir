// RUN: tilework opt %s -p canonicalize

// Casts and floating point.

// CHECK-LABEL: tt.func public @extension_of_extension(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.extsi %b : i8 to i64
// CHECK-NEXT: tt.return %[[A]] : i64
tt.func public @extension_of_extension(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i64 {
  %a = arith.extsi %b : i8 to i32
  %r = arith.extsi %a : i32 to i64
  tt.return %r : i64
}

// CHECK-LABEL: tt.func public @sign_of_zero_extended(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.extui %p : i1 to i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @sign_of_zero_extended(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i32 {
  %a = arith.extui %p : i1 to i8
  %r = arith.extsi %a : i8 to i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @truncate_back(
// CHECK-NEXT: tt.return %x : i32
tt.func public @truncate_back(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i32 {
  %a = arith.extsi %x : i32 to i64
  %r = arith.trunci %a : i64 to i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @truncate_further(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.trunci %x : i32 to i16
// CHECK-NEXT: tt.return %[[A]] : i16
tt.func public @truncate_further(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i16 {
  %a = arith.extsi %x : i32 to i64
  %r = arith.trunci %a : i64 to i16
  tt.return %r : i16
}

// CHECK-LABEL: tt.func public @truncate_less(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.extui %b : i8 to i16
// CHECK-NEXT: tt.return %[[A]] : i16
tt.func public @truncate_less(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i16 {
  %a = arith.extui %b : i8 to i32
  %r = arith.trunci %a : i32 to i16
  tt.return %r : i16
}

// CHECK-LABEL: tt.func public @truncate_twice(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.trunci %q : i64 to i8
// CHECK-NEXT: tt.return %[[A]] : i8
tt.func public @truncate_twice(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i8 {
  %a = arith.trunci %q : i64 to i32
  %r = arith.trunci %a : i32 to i8
  tt.return %r : i8
}

// CHECK-LABEL: tt.func public @cast_constants(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant -1 : i64
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 255 : i64
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant 44 : i8
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.constant 3.000000e+02 : f32
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.constant -1 : i32
// CHECK-NEXT: tt.return %[[A]], %[[B]], %[[C]], %[[D]], %[[E]] : i64, i64, i8, f32, i32
tt.func public @cast_constants(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> (i64, i64, i8, f32, i32) {
  %a = arith.constant -1 : i8
  %c300 = arith.constant 300 : i32
  %s = arith.extsi %a : i8 to i64
  %u = arith.extui %a : i8 to i64
  %t = arith.trunci %c300 : i32 to i8
  %f1 = arith.sitofp %c300 : i32 to f32
  %h1 = arith.constant -1.5 : f32
  %i1 = arith.fptosi %h1 : f32 to i32
  tt.return %s, %u, %t, %f1, %i1 : i64, i64, i8, f32, i32
}

// CHECK-LABEL: tt.func public @cast_splat(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<3.000000e+00> : tensor<4xf32>
// CHECK-NEXT: tt.return %[[A]] : tensor<4xf32>
tt.func public @cast_splat(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> tensor<4xf32> {
  %a = arith.constant dense<3> : tensor<4xi32>
  %r = arith.sitofp %a : tensor<4xi32> to tensor<4xf32>
  tt.return %r : tensor<4xf32>
}

// CHECK-LABEL: tt.func public @bitcast_there_and_back(
// CHECK-NEXT: tt.return %f : f32
tt.func public @bitcast_there_and_back(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> f32 {
  %a = arith.bitcast %f : f32 to i32
  %r = arith.bitcast %a : i32 to f32
  tt.return %r : f32
}

// CHECK-LABEL: tt.func public @bitcast_same_type(
// CHECK-NEXT: tt.return %x : i32
tt.func public @bitcast_same_type(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i32 {
  %r = arith.bitcast %x : i32 to i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @bitcast_constant(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1065353216 : i32
// CHECK-NEXT: tt.return %[[A]] : i32
tt.func public @bitcast_constant(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i32 {
  %a = arith.constant 1.0 : f32
  %r = arith.bitcast %a : f32 to i32
  tt.return %r : i32
}

// CHECK-LABEL: tt.func public @widen_and_narrow(
// CHECK-NEXT: tt.return %h : f16
tt.func public @widen_and_narrow(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> f16 {
  %a = arith.extf %h : f16 to f32
  %r = arith.truncf %a : f32 to f16
  tt.return %r : f16
}

// CHECK-LABEL: tt.func public @narrow_exact(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 5.000000e-01 : f16
// CHECK-NEXT: tt.return %[[A]] : f16
tt.func public @narrow_exact(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> f16 {
  %a = arith.constant 0.5 : f32
  %r = arith.truncf %a : f32 to f16
  tt.return %r : f16
}

// CHECK-LABEL: tt.func public @narrow_inexact_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 1.100000e+00 : f32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.truncf %[[A]] : f32 to f16
// CHECK-NEXT: tt.return %[[B]] : f16
tt.func public @narrow_inexact_stays(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> f16 {
  %a = arith.constant 1.1 : f32
  %r = arith.truncf %a : f32 to f16
  tt.return %r : f16
}

// CHECK-LABEL: tt.func public @narrow_converted(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.sitofp %x : i32 to f16
// CHECK-NEXT: tt.return %[[A]] : f16
tt.func public @narrow_converted(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> f16 {
  %a = arith.sitofp %x : i32 to f32
  %r = arith.truncf %a : f32 to f16
  tt.return %r : f16
}

// CHECK-LABEL: tt.func public @identities(
// CHECK-NEXT: tt.return %f, %f, %f, %f : f32, f32, f32, f32
tt.func public @identities(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> (f32, f32, f32, f32) {
  %z = arith.constant 0.0 : f32
  %n = arith.constant -0.0 : f32
  %o = arith.constant 1.0 : f32
  %a = arith.addf %f, %n : f32
  %s = arith.subf %f, %z : f32
  %m = arith.mulf %f, %o : f32
  %d = arith.divf %f, %o : f32
  tt.return %a, %s, %m, %d : f32, f32, f32, f32
}

// -0.0 + 0.0 is 0.0; infinity times 0.0 is NaN
// CHECK-LABEL: tt.func public @not_identities_stay(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.addf %f, %[[A]] : f32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.mulf %f, %[[A]] : f32
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.subf %f, %f : f32
// CHECK-NEXT: tt.return %[[B]], %[[C]], %[[D]] : f32, f32, f32
tt.func public @not_identities_stay(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> (f32, f32, f32) {
  %z = arith.constant 0.0 : f32
  %a = arith.addf %f, %z : f32
  %m = arith.mulf %f, %z : f32
  %d = arith.subf %f, %f : f32
  tt.return %a, %m, %d : f32, f32, f32
}

// CHECK-LABEL: tt.func public @float_constants(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 2.200000e+00 : f32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 0.366666675 : f32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant -0.366666675 : f32
// CHECK-NEXT: tt.return %[[A]], %[[B]], %[[C]] : f32, f32, f32
tt.func public @float_constants(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> (f32, f32, f32) {
  %o = arith.constant 1.1 : f32
  %t = arith.constant 3.0 : f32
  %a = arith.addf %o, %o : f32
  %d = arith.divf %o, %t : f32
  %n = arith.negf %d : f32
  tt.return %a, %d, %n : f32, f32, f32
}

// CHECK-LABEL: tt.func public @negate_twice(
// CHECK-NEXT: tt.return %f : f32
tt.func public @negate_twice(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> f32 {
  %a = arith.negf %f : f32
  %r = arith.negf %a : f32
  tt.return %r : f32
}

// CHECK-LABEL: tt.func public @product_of_negated(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.mulf %f, %g : f32
// CHECK-NEXT: tt.return %[[A]] : f32
tt.func public @product_of_negated(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> f32 {
  %a = arith.negf %f : f32
  %b1 = arith.negf %g : f32
  %r = arith.mulf %a, %b1 : f32
  tt.return %r : f32
}

// CHECK-LABEL: tt.func public @extremes(
// CHECK-NEXT: tt.return %f, %f, %f : f32, f32, f32
tt.func public @extremes(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> (f32, f32, f32) {
  %i = arith.constant 0xFF800000 : f32
  %n = arith.constant 0x7FC00000 : f32
  %a = arith.maximumf %f, %i : f32
  %m = arith.maxnumf %f, %n : f32
  %s = arith.minimumf %f, %f : f32
  tt.return %a, %m, %s : f32, f32, f32
}

// a NaN would become -inf
// CHECK-LABEL: tt.func public @maxnum_of_infinity_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 0xFF800000 : f32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.maxnumf %f, %[[A]] : f32
// CHECK-NEXT: tt.return %[[B]] : f32
tt.func public @maxnum_of_infinity_stays(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> f32 {
  %i = arith.constant 0xFF800000 : f32
  %r = arith.maxnumf %f, %i : f32
  tt.return %r : f32
}

// CHECK-LABEL: tt.func public @compare_floats(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant true
// CHECK-NEXT: tt.return %[[A]], %[[A]] : i1, i1
tt.func public @compare_floats(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> (i1, i1) {
  %o = arith.constant 1.0 : f32
  %t = arith.constant 2.0 : f32
  %n = arith.constant 0x7FC00000 : f32
  %a = arith.cmpf olt, %o, %t : f32
  %u = arith.cmpf une, %f, %n : f32
  tt.return %a, %u : i1, i1
}

// false for a NaN
// CHECK-LABEL: tt.func public @compare_with_itself_stays(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.cmpf oeq, %f, %f : f32
// CHECK-NEXT: tt.return %[[A]] : i1
tt.func public @compare_with_itself_stays(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> i1 {
  %r = arith.cmpf oeq, %f, %f : f32
  tt.return %r : i1
}

// CHECK-LABEL: tt.func public @functions(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant 2.250000e+00 : f32
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 1.500000e+00 : f32
// CHECK-NEXT: tt.return %[[A]], %[[B]] : f32, f32
tt.func public @functions(%x: i32, %b: i8, %p: i1, %h: f16, %f: f32, %g: f32, %q: i64) -> (f32, f32) {
  %o = arith.constant -2.25 : f32
  %a = math.absf %o : f32
  %r = math.sqrt %a : f32
  tt.return %a, %r : f32, f32
}

// CHECK-LABEL: tt.func public @bitcasts_in_a_row(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.bitcast %h : f16 to bf16
// CHECK-NEXT: tt.return %[[A]], %h : bf16, f16
tt.func public @bitcasts_in_a_row(%h: f16) -> (bf16, f16) {
  %a = arith.bitcast %h : f16 to i16
  %b = arith.bitcast %a : i16 to bf16
  %c = arith.bitcast %a : i16 to f16
  tt.return %b, %c : bf16, f16
}

// CHECK-LABEL: tt.func public @divide_by_zeros(
// CHECK-DAG: %[[P:[^ :,)]+]] = arith.constant 0x7F800000 : f32
// CHECK-DAG: %[[N:[^ :,)]+]] = arith.constant 0xFF800000 : f32
// CHECK: %[[Q:[^ :,)]+]] = arith.divf
// CHECK-NEXT: tt.return %[[P]], %[[N]], %[[N]], %[[P]], %[[Q]] : f32, f32, f32, f32, f32
tt.func public @divide_by_zeros() -> (f32, f32, f32, f32, f32) {
  %t = arith.constant 2.0 : f32
  %m = arith.constant -2.0 : f32
  %z = arith.constant 0.0 : f32
  %n = arith.constant -0.0 : f32
  %a = arith.divf %t, %z : f32
  %b = arith.divf %t, %n : f32
  %c = arith.divf %m, %z : f32
  %d = arith.divf %m, %n : f32
  %e = arith.divf %z, %n : f32
  tt.return %a, %b, %c, %d, %e : f32, f32, f32, f32, f32
}
