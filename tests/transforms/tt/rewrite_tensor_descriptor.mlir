// RUN: tilework opt %s -p triton-rewrite-tensor-descriptor-to-pointer,canonicalize,cse

// Both axes are masked; padding with zeros folds to a constant. Attributes and cache modifier go to the load.
// CHECK-LABEL: tt.func public @load
// CHECK-DAG:   %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8x16xf16>
// CHECK:       %[[M:.*]] = arith.extsi %m : i32 to i64
// CHECK:       %[[N:.*]] = arith.extsi %n : i32 to i64
// CHECK:       %[[X:.*]] = arith.extsi %x : i32 to i64
// CHECK:       %[[E0:.*]] = tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<8xi64> -> tensor<8x1xi64>
// CHECK:       %[[E1:.*]] = tt.expand_dims %{{.*}} {axis = 0 : i32} : tensor<16xi64> -> tensor<1x16xi64>
// CHECK:       %[[SP:.*]] = tt.splat %s : i64 -> tensor<8x1xi64>
// CHECK-NEXT:  arith.muli %[[E0]], %[[SP]] : tensor<8x1xi64>
// CHECK:       arith.cmpi sge, %[[E0]], %{{.*}} : tensor<8x1xi64>
// CHECK-NEXT:  %[[MS:.*]] = tt.splat %[[M]] : i64 -> tensor<8x1xi64>
// CHECK-NEXT:  arith.cmpi slt, %[[E0]], %[[MS]] : tensor<8x1xi64>
// CHECK:       %[[NS:.*]] = tt.splat %[[N]] : i64 -> tensor<1x16xi64>
// CHECK-NEXT:  arith.cmpi slt, %[[E1]], %[[NS]] : tensor<1x16xi64>
// CHECK:       tt.load %{{.*}}, %{{.*}}, %[[ZERO]] cacheModifier = ca {note} : tensor<8x16x!tt.ptr<f16>>
tt.func public @load(%p: !tt.ptr<f16>, %m: i32, %n: i32, %s: i64, %x: i32, %y: i32) -> tensor<8x16xf16> {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%m, %n], [%s, %c1] : <f16>, <tensor<8x16xf16>>
  %v = tt.descriptor_load %d[%x, %y] cacheModifier = ca {note} : !tt.tensordesc<tensor<8x16xf16>> -> tensor<8x16xf16>
  tt.return %v : tensor<8x16xf16>
}

// CHECK-LABEL: tt.func public @load_nan
// CHECK:       %[[NAN:.*]] = arith.constant dense<0x7E00> : tensor<16xf16>
// CHECK:       tt.load %{{.*}}, %{{.*}}, %[[NAN]] : tensor<16x!tt.ptr<f16>>
tt.func public @load_nan(%p: !tt.ptr<f16>, %m: i32, %x: i32) -> tensor<16xf16> {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%m], [%c1] {padding = 2 : i32} : <f16>, <tensor<16xf16>>
  %v = tt.descriptor_load %d[%x] : !tt.tensordesc<tensor<16xf16>> -> tensor<16xf16>
  tt.return %v : tensor<16xf16>
}

// The leading unit axis is dropped behind the load.
// CHECK-LABEL: tt.func public @load_fewer_axes
// CHECK-SAME:  %[[P:[a-z0-9]+]]: !tt.ptr<f16> {tt.note}, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: i64, %[[PAD:[a-z0-9]+]]: i1, %{{[a-z0-9]+}}: i1, %x: i32
// CHECK:       arith.select %[[PAD]], %{{.*}}, %{{.*}} : tensor<1x16xf16>
// CHECK:       %[[V:.*]] = tt.load %{{.*}} : tensor<1x16x!tt.ptr<f16>>
// CHECK-NEXT:  tt.reshape %[[V]] : tensor<1x16xf16> -> tensor<16xf16>
tt.func public @load_fewer_axes(%d: !tt.tensordesc<tensor<1x16xf16>> {tt.note}, %x: i32) -> tensor<16xf16> {
  %v = tt.descriptor_load %d[%x, %x] : !tt.tensordesc<tensor<1x16xf16>> -> tensor<16xf16>
  tt.return %v : tensor<16xf16>
}

// CHECK-LABEL: tt.func public @store
// CHECK:       tt.store %{{.*}}, %v, %{{.*}} {note = 1 : i32} : tensor<16x!tt.ptr<i8>>
tt.func public @store(%d: !tt.tensordesc<tensor<16xui8>>, %x: i32, %v: tensor<16xi8>) {
  tt.descriptor_store %d[%x], %v {note = 1 : i32} : !tt.tensordesc<tensor<16xui8>>, tensor<16xi8>
  tt.return
}

// Rows come from the offsets, columns from the start.
// CHECK-LABEL: tt.func public @gather_scatter
// CHECK-SAME:  i64, %[[NAN:[a-z0-9]+]]: i1, %[[ROUND:[a-z0-9]+]]: i1, %rows
// CHECK:       %[[R:.*]] = tt.expand_dims %rows {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
// CHECK-NEXT:  %[[C:.*]] = arith.extsi %y : i32 to i64
// CHECK-NEXT:  %[[RX:.*]] = arith.extsi %[[R]] : tensor<8x1xi32> to tensor<8x1xi64>
// CHECK-NEXT:  tt.splat %[[C]] : i64 -> tensor<16xi64>
// CHECK:       arith.muli %[[RX]], %{{.*}} : tensor<8x1xi64>
// CHECK:       arith.cmpi slt, %[[RX]], %{{.*}} : tensor<8x1xi64>
// CHECK:       %[[OTHER:.*]] = arith.select %[[NAN]], %{{.*}}, %{{.*}} : tensor<8x16xf32>
// CHECK-NEXT:  %[[V:.*]] = tt.load %{{.*}}, %{{.*}}, %[[OTHER]] : tensor<8x16x!tt.ptr<f32>>
// CHECK:       %[[T:.*]] = arith.select %[[ROUND]], %{{.*}}, %[[V]] : tensor<8x16xf32>
// CHECK:       tt.store %{{.*}}, %[[T]], %{{.*}} : tensor<8x16x!tt.ptr<f32>>
tt.func public @gather_scatter(%d: !tt.tensordesc<tensor<1x16xf32>>, %rows: tensor<8xi32>, %y: i32) {
  %v = tt.descriptor_gather %d[%rows, %y] : (!tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  tt.descriptor_scatter %d[%rows, %y], %v : !tt.tensordesc<tensor<1x16xf32>>, tensor<8xi32>, i32, tensor<8x16xf32>
  tt.return
}

// What a descriptor of the host loads is rounded to tf32 if it says so: to nearest even, infinities and NaN are kept.
// CHECK-LABEL: tt.func public @load_rounded
// CHECK-SAME:  i64, %{{[a-z0-9]+}}: i1, %[[ROUND:[a-z0-9]+]]: i1, %x: i32
// CHECK-DAG:   %[[MASK:.*]] = arith.constant dense<-8192> : tensor<16xi32>
// CHECK-DAG:   %[[HALF:.*]] = arith.constant dense<4095> : tensor<16xi32>
// CHECK-DAG:   %[[ONE:.*]] = arith.constant dense<1> : tensor<16xi32>
// CHECK-DAG:   %[[DROPPED:.*]] = arith.constant dense<13> : tensor<16xi32>
// CHECK-DAG:   %[[EXPONENT:.*]] = arith.constant dense<2139095040> : tensor<16xi32>
// CHECK:       %[[V:.*]] = tt.load
// CHECK-NEXT:  scf.if %[[ROUND]] -> (tensor<16xf32>) {
// CHECK-NEXT:    %[[BITS:.*]] = tt.bitcast %[[V]] : tensor<16xf32> -> tensor<16xi32>
// CHECK-NEXT:    %[[E:.*]] = arith.andi %[[BITS]], %[[EXPONENT]] : tensor<16xi32>
// CHECK-NEXT:    %[[KEPT:.*]] = arith.cmpi eq, %[[E]], %[[EXPONENT]] : tensor<16xi32>
// CHECK-NEXT:    %[[SHIFTED:.*]] = arith.shrui %[[BITS]], %[[DROPPED]] : tensor<16xi32>
// CHECK-NEXT:    %[[LAST:.*]] = arith.andi %[[SHIFTED]], %[[ONE]] : tensor<16xi32>
// CHECK-NEXT:    %[[BIAS:.*]] = arith.addi %[[LAST]], %[[HALF]] : tensor<16xi32>
// CHECK-NEXT:    %[[SUM:.*]] = arith.addi %[[BITS]], %[[BIAS]] : tensor<16xi32>
// CHECK-NEXT:    %[[CUT:.*]] = arith.andi %[[SUM]], %[[MASK]] : tensor<16xi32>
// CHECK-NEXT:    %[[CHOSEN:.*]] = arith.select %[[KEPT]], %[[BITS]], %[[CUT]] : tensor<16xi1>, tensor<16xi32>
// CHECK-NEXT:    %[[R:.*]] = tt.bitcast %[[CHOSEN]] : tensor<16xi32> -> tensor<16xf32>
// CHECK-NEXT:    scf.yield %[[R]] : tensor<16xf32>
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield %[[V]] : tensor<16xf32>
tt.func public @load_rounded(%d: !tt.tensordesc<tensor<16xf32>>, %x: i32) -> tensor<16xf32> {
  %v = tt.descriptor_load %d[%x] : !tt.tensordesc<tensor<16xf32>> -> tensor<16xf32>
  tt.return %v : tensor<16xf32>
}

// Descriptors that the kernel makes never round, and other element types have nothing to round.
// CHECK-LABEL: tt.func public @load_as_it_is
// CHECK-NOT:   scf.if
// CHECK-NOT:   tt.bitcast
// CHECK:       tt.return
tt.func public @load_as_it_is(%p: !tt.ptr<f32>, %e: !tt.tensordesc<tensor<16xi32>>, %m: i32, %x: i32) -> (tensor<16xf32>, tensor<16xi32>) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%m], [%c1] : <f32>, <tensor<16xf32>>
  %v = tt.descriptor_load %d[%x] : !tt.tensordesc<tensor<16xf32>> -> tensor<16xf32>
  %w = tt.descriptor_load %e[%x] : !tt.tensordesc<tensor<16xi32>> -> tensor<16xi32>
  tt.return %v, %w : tensor<16xf32>, tensor<16xi32>
}

// CHECK-LABEL: tt.func public @reduce
// CHECK:       tt.atomic_rmw umax, release, gpu, %{{.*}}, %u, %{{.*}} :
// CHECK:       tt.atomic_rmw min, release, gpu, %{{.*}}, %u, %{{.*}} :
// CHECK:       tt.atomic_rmw fadd, release, gpu, %{{.*}}, %w, %{{.*}} :
// CHECK:       tt.atomic_rmw add, release, gpu, %{{.*}}, %u, %{{.*}} :
// CHECK:       tt.atomic_rmw xor, release, gpu, %{{.*}}, %u, %{{.*}} :
tt.func public @reduce(%d: !tt.tensordesc<tensor<16xui32>>, %e: !tt.tensordesc<tensor<16xsi32>>,
                       %f: !tt.tensordesc<tensor<16xf32>>, %u: tensor<16xi32>, %w: tensor<16xf32>, %x: i32) {
  tt.descriptor_reduce max, %d[%x], %u : !tt.tensordesc<tensor<16xui32>>, tensor<16xi32>
  tt.descriptor_reduce min, %e[%x], %u : !tt.tensordesc<tensor<16xsi32>>, tensor<16xi32>
  tt.descriptor_reduce add, %f[%x], %w : !tt.tensordesc<tensor<16xf32>>, tensor<16xf32>
  tt.descriptor_reduce add, %e[%x], %u : !tt.tensordesc<tensor<16xsi32>>, tensor<16xi32>
  tt.descriptor_reduce xor, %d[%x], %u : !tt.tensordesc<tensor<16xui32>>, tensor<16xi32>
  tt.return
}

// No descriptor, no change.
// CHECK-LABEL: tt.func public @plain
// CHECK-SAME:  (%p: !tt.ptr<f32>) -> f32
// CHECK-NEXT:  tt.load %p : !tt.ptr<f32>
tt.func public @plain(%p: !tt.ptr<f32>) -> f32 {
  %v = tt.load %p : !tt.ptr<f32>
  tt.return %v : f32
}
