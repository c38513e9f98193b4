// RUN: tilework opt %s -p triton-rewrite-tensor-descriptor-to-pointer

// Signatures, calls and results are flattened.
// CHECK-LABEL: tt.func private @callee
// CHECK-SAME:  (%[[P:.*]]: !tt.ptr<f16>, %[[N:.*]]: i64, %[[S:.*]]: i64, %[[Z:.*]]: i1, %[[R:.*]]: i1, %x: i32) -> (!tt.ptr<f16>, i64, i64, i1, i1)
// CHECK-NEXT:  tt.return %[[P]], %[[N]], %[[S]], %[[Z]], %[[R]] : !tt.ptr<f16>, i64, i64, i1, i1
tt.func private @callee(%d: !tt.tensordesc<tensor<16xf16>>, %x: i32) -> !tt.tensordesc<tensor<16xf16>> attributes {noinline = true} {
  tt.return %d : !tt.tensordesc<tensor<16xf16>>
}

// CHECK-LABEL: tt.func public @flow
// CHECK:       %[[C:.*]]:5 = tt.call @callee(%{{.*}}, %x) : (!tt.ptr<f16>, i64, i64, i1, i1, i32) -> (!tt.ptr<f16>, i64, i64, i1, i1)
// CHECK-NEXT:  arith.select %c, %[[C]]#0, %{{.*}} : !tt.ptr<f16>
// CHECK:       scf.if %c -> (!tt.ptr<f16>, i64, i64, i1, i1) {
// CHECK:       scf.while (%{{.*}}) : (!tt.ptr<f16>, {{.*}}i32) -> (i32, !tt.ptr<f16>
// CHECK:       tt.load
// CHECK:       tt.store
// CHECK:       scf.yield %{{.*}} : !tt.ptr<f16>, i64, i64, i1, i1, i32
tt.func public @flow(%d: !tt.tensordesc<tensor<16xf16>>, %e: !tt.tensordesc<tensor<16xf16>>, %x: i32, %y: i32, %c: i1) {
  %c4 = arith.constant 4 : i32
  %g = tt.call @callee(%d, %x) : (!tt.tensordesc<tensor<16xf16>>, i32) -> !tt.tensordesc<tensor<16xf16>>
  %q = arith.select %c, %g, %e : !tt.tensordesc<tensor<16xf16>>
  %h = scf.if %c -> (!tt.tensordesc<tensor<16xf16>>) {
    scf.yield %d : !tt.tensordesc<tensor<16xf16>>
  } else {
    %i = tt.call @callee(%q, %x) : (!tt.tensordesc<tensor<16xf16>>, i32) -> !tt.tensordesc<tensor<16xf16>>
    scf.yield %i : !tt.tensordesc<tensor<16xf16>>
  }
  %k:2 = scf.while (%a = %h, %b = %x) : (!tt.tensordesc<tensor<16xf16>>, i32) -> (i32, !tt.tensordesc<tensor<16xf16>>) {
    %t = arith.cmpi slt, %b, %y : i32
    scf.condition(%t) %b, %a : i32, !tt.tensordesc<tensor<16xf16>>
  } do {
  ^bb0(%a: i32, %b: !tt.tensordesc<tensor<16xf16>>):
    %v = tt.descriptor_load %b[%a] : !tt.tensordesc<tensor<16xf16>> -> tensor<16xf16>
    tt.descriptor_store %e[%a], %v : !tt.tensordesc<tensor<16xf16>>, tensor<16xf16>
    %z = arith.addi %a, %c4 : i32
    scf.yield %b, %z : !tt.tensordesc<tensor<16xf16>>, i32
  }
  tt.return
}

// Blocks with arguments.
// CHECK-LABEL: tt.func public @blocks
// CHECK:       cf.cond_br %c, ^bb1(%{{.*}} : !tt.ptr<i32>, i64, i64, i1, i1), ^bb1(%{{.*}} : !tt.ptr<i32>, i64, i64, i1, i1)
// CHECK:       ^bb1(%{{.*}}: !tt.ptr<i32>, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i1, %{{.*}}: i1):
tt.func public @blocks(%d: !tt.tensordesc<tensor<16xi32>>, %e: !tt.tensordesc<tensor<16xi32>>, %u: tensor<16xi32>, %y: i32, %c: i1) {
  cf.cond_br %c, ^bb1(%d : !tt.tensordesc<tensor<16xi32>>), ^bb1(%e : !tt.tensordesc<tensor<16xi32>>)
^bb1(%f: !tt.tensordesc<tensor<16xi32>>):
  tt.descriptor_store %f[%y], %u : !tt.tensordesc<tensor<16xi32>>, tensor<16xi32>
  tt.return
}

// CHECK-LABEL: tt.func public @loop
// CHECK:       scf.for %i = %x to %y step %x iter_args(%{{.*}}) -> (!tt.ptr<f16>, i64, i64, i1, i1, i32)
// CHECK:         scf.yield %{{.*}}, %i : !tt.ptr<f16>, i64, i64, i1, i1, i32
// CHECK-NEXT:  } {tt.num_stages = 3 : i32}
tt.func public @loop(%d: !tt.tensordesc<tensor<16xf16>>, %x: i32, %y: i32) -> i32 {
  %r:2 = scf.for %i = %x to %y step %x iter_args(%a = %d, %k = %x) -> (!tt.tensordesc<tensor<16xf16>>, i32) : i32 {
    %v = tt.descriptor_load %a[%k] : !tt.tensordesc<tensor<16xf16>> -> tensor<16xf16>
    tt.descriptor_store %a[%i], %v : !tt.tensordesc<tensor<16xf16>>, tensor<16xf16>
    scf.yield %a, %i : !tt.tensordesc<tensor<16xf16>>, i32
  } {tt.num_stages = 3 : i32}
  tt.return %r#1 : i32
}
