// RUN: tilework opt %s -p 'tritongpu-coalesce'

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#blocked2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked3 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [0, 1]}>
#blocked4 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
#blocked5 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [0, 1]}>
#blocked6 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>
#blocked7 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked8 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 2, 2], order = [2, 1, 0]}>
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-NEXT: #blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-NEXT: #blocked2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked3 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked4 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK-NEXT: #blocked5 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked6 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [0, 1]}>
// CHECK-NEXT: #blocked7 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-NEXT: #blocked8 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>
// CHECK-NEXT: #blocked9 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked10 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked11 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-NEXT: #blocked12 = #ttg.blocked<{sizePerThread = [1, 1, 16], threadsPerWarp = [1, 8, 4], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
// CHECK-NEXT: #blocked13 = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 1, 32], warpsPerCTA = [1, 2, 2], order = [2, 1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Rows first where rows are contiguous, columns first where columns are: 16 bytes a thread of f32 at a multiple of 16 bytes, 8 bytes of f16 at a multiple of 8. Atomics, and accesses of scalars.
// CHECK-LABEL: @a(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xi32, #blocked> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.expand_dims %[[B]] {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64x1xi32, #blocked1>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<64x1xi32, #blocked1> -> tensor<64x1xi32, #blocked2>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xi32, #blocked> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>>
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.expand_dims %[[E]] {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>> -> tensor<1x64xi32, #blocked3>
// CHECK-NEXT: %[[G:[^ :,)]+]] = ttg.convert_layout %[[F]] : tensor<1x64xi32, #blocked3> -> tensor<1x64xi32, #blocked4>
// CHECK-NEXT: %[[H:[^ :,)]+]] = tt.splat %n : i32 -> tensor<64x1xi32, #blocked2>
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.muli %[[D]], %[[H]] : tensor<64x1xi32, #blocked2>
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.broadcast %[[I]] : tensor<64x1xi32, #blocked2> -> tensor<64x64xi32, #blocked2>
// CHECK-NEXT: %[[K:[^ :,)]+]] = ttg.convert_layout %[[J]] : tensor<64x64xi32, #blocked2> -> tensor<64x64xi32, #blocked4>
// CHECK-NEXT: %[[L:[^ :,)]+]] = tt.broadcast %[[G]] : tensor<1x64xi32, #blocked4> -> tensor<64x64xi32, #blocked4>
// CHECK-NEXT: %[[M:[^ :,)]+]] = arith.addi %[[K]], %[[L]] : tensor<64x64xi32, #blocked4>
// CHECK-NEXT: %[[N:[^ :,)]+]] = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked4>
// CHECK-NEXT: %[[O:[^ :,)]+]] = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #blocked4>
// CHECK-NEXT: %[[P:[^ :,)]+]] = tt.addptr %[[N]], %[[M]] : tensor<64x64x!tt.ptr<f32>, #blocked4>, tensor<64x64xi32, #blocked4>
// CHECK-NEXT: %[[Q:[^ :,)]+]] = tt.addptr %[[O]], %[[M]] : tensor<64x64x!tt.ptr<f16>, #blocked4>, tensor<64x64xi32, #blocked4>
// CHECK-NEXT: %[[R:[^ :,)]+]] = ttg.convert_layout %[[P]] : tensor<64x64x!tt.ptr<f32>, #blocked4> -> tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: %[[S:[^ :,)]+]] = tt.load %[[R]] : tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: %[[T:[^ :,)]+]] = ttg.convert_layout %[[S]] : tensor<64x64xf32, #blocked5> -> tensor<64x64xf32, #blocked4>
// CHECK-NEXT: %[[U:[^ :,)]+]] = ttg.convert_layout %[[Q]] : tensor<64x64x!tt.ptr<f16>, #blocked4> -> tensor<64x64x!tt.ptr<f16>, #blocked5>
// CHECK-NEXT: %[[V:[^ :,)]+]] = tt.load %[[U]] : tensor<64x64x!tt.ptr<f16>, #blocked5>
// CHECK-NEXT: %[[W:[^ :,)]+]] = ttg.convert_layout %[[V]] : tensor<64x64xf16, #blocked5> -> tensor<64x64xf16, #blocked4>
// CHECK-NEXT: %[[X:[^ :,)]+]] = arith.extf %[[W]] : tensor<64x64xf16, #blocked4> to tensor<64x64xf32, #blocked4>
// CHECK-NEXT: %[[Y:[^ :,)]+]] = arith.addf %[[T]], %[[X]] : tensor<64x64xf32, #blocked4>
// CHECK-NEXT: %[[Z:[^ :,)]+]] = arith.truncf %[[Y]] : tensor<64x64xf32, #blocked4> to tensor<64x64xf16, #blocked4>
// CHECK-NEXT: %[[AA:[^ :,)]+]] = ttg.convert_layout %[[P]] : tensor<64x64x!tt.ptr<f32>, #blocked4> -> tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: %[[AB:[^ :,)]+]] = ttg.convert_layout %[[Y]] : tensor<64x64xf32, #blocked4> -> tensor<64x64xf32, #blocked5>
// CHECK-NEXT: tt.store %[[AA]], %[[AB]] : tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: %[[AC:[^ :,)]+]] = ttg.convert_layout %[[Q]] : tensor<64x64x!tt.ptr<f16>, #blocked4> -> tensor<64x64x!tt.ptr<f16>, #blocked5>
// CHECK-NEXT: %[[AD:[^ :,)]+]] = ttg.convert_layout %[[Z]] : tensor<64x64xf16, #blocked4> -> tensor<64x64xf16, #blocked5>
// CHECK-NEXT: tt.store %[[AC]], %[[AD]] : tensor<64x64x!tt.ptr<f16>, #blocked5>
// CHECK-NEXT: %[[AE:[^ :,)]+]] = arith.constant dense<true> : tensor<64x64xi1, #blocked4>
// CHECK-NEXT: %[[AF:[^ :,)]+]] = ttg.convert_layout %[[P]] : tensor<64x64x!tt.ptr<f32>, #blocked4> -> tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: %[[AG:[^ :,)]+]] = ttg.convert_layout %[[Y]] : tensor<64x64xf32, #blocked4> -> tensor<64x64xf32, #blocked5>
// CHECK-NEXT: %[[AH:[^ :,)]+]] = ttg.convert_layout %[[AE]] : tensor<64x64xi1, #blocked4> -> tensor<64x64xi1, #blocked5>
// CHECK-NEXT: %[[AI:[^ :,)]+]] = tt.atomic_rmw fadd, acq_rel, gpu, %[[AF]], %[[AG]], %[[AH]] : (tensor<64x64x!tt.ptr<f32>, #blocked5>, tensor<64x64xf32, #blocked5>, tensor<64x64xi1, #blocked5>) -> tensor<64x64xf32, #blocked5>
// CHECK-NEXT: %[[AJ:[^ :,)]+]] = ttg.convert_layout %[[AI]] : tensor<64x64xf32, #blocked5> -> tensor<64x64xf32, #blocked4>
// CHECK-NEXT: %[[AK:[^ :,)]+]] = tt.trans %[[AJ]] {order = array<i32: 1, 0>} : tensor<64x64xf32, #blocked4> -> tensor<64x64xf32, #blocked6>
// CHECK-NEXT: %[[AL:[^ :,)]+]] = ttg.convert_layout %[[AK]] : tensor<64x64xf32, #blocked6> -> tensor<64x64xf32, #blocked4>
// CHECK-NEXT: %[[AM:[^ :,)]+]] = ttg.convert_layout %[[P]] : tensor<64x64x!tt.ptr<f32>, #blocked4> -> tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: %[[AN:[^ :,)]+]] = ttg.convert_layout %[[AL]] : tensor<64x64xf32, #blocked4> -> tensor<64x64xf32, #blocked5>
// CHECK-NEXT: tt.store %[[AM]], %[[AN]] : tensor<64x64x!tt.ptr<f32>, #blocked5>
// CHECK-NEXT: %[[AO:[^ :,)]+]] = tt.trans %[[P]] {order = array<i32: 1, 0>} : tensor<64x64x!tt.ptr<f32>, #blocked4> -> tensor<64x64x!tt.ptr<f32>, #blocked6>
// CHECK-NEXT: %[[AP:[^ :,)]+]] = ttg.convert_layout %[[AO]] : tensor<64x64x!tt.ptr<f32>, #blocked6> -> tensor<64x64x!tt.ptr<f32>, #blocked4>
// CHECK-NEXT: %[[AQ:[^ :,)]+]] = ttg.convert_layout %[[AP]] : tensor<64x64x!tt.ptr<f32>, #blocked4> -> tensor<64x64x!tt.ptr<f32>, #blocked7>
// CHECK-NEXT: %[[AR:[^ :,)]+]] = ttg.convert_layout %[[AL]] : tensor<64x64xf32, #blocked4> -> tensor<64x64xf32, #blocked7>
// CHECK-NEXT: tt.store %[[AQ]], %[[AR]] : tensor<64x64x!tt.ptr<f32>, #blocked7>
// CHECK-NEXT: %[[AS:[^ :,)]+]] = arith.addf %[[AL]], %[[AL]] : tensor<64x64xf32, #blocked4>
// CHECK-NEXT: %[[AT:[^ :,)]+]] = arith.constant dense<0> : tensor<64xi32, #blocked>
// CHECK-NEXT: %[[AU:[^ :,)]+]] = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i32>
// CHECK-NEXT: %[[AV:[^ :,)]+]] = tt.splat %[[AU]] : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: %[[AW:[^ :,)]+]] = tt.addptr %[[AV]], %[[A]] : tensor<64x!tt.ptr<i32>, #blocked>, tensor<64xi32, #blocked>
// CHECK-NEXT: %[[AX:[^ :,)]+]] = ttg.convert_layout %[[AW]] : tensor<64x!tt.ptr<i32>, #blocked> -> tensor<64x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: %[[AY:[^ :,)]+]] = ttg.convert_layout %[[AT]] : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked>
// CHECK-NEXT: %[[AZ:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked>
// CHECK-NEXT: %[[BA:[^ :,)]+]] = tt.atomic_cas acq_rel, gpu, %[[AX]], %[[AY]], %[[AZ]] : (tensor<64x!tt.ptr<i32>, #blocked>, tensor<64xi32, #blocked>, tensor<64xi32, #blocked>) -> tensor<64xi32, #blocked>
// CHECK-NEXT: %[[BB:[^ :,)]+]] = ttg.convert_layout %[[BA]] : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked>
// CHECK-NEXT: %[[BC:[^ :,)]+]] = ttg.convert_layout %[[AW]] : tensor<64x!tt.ptr<i32>, #blocked> -> tensor<64x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: %[[BD:[^ :,)]+]] = ttg.convert_layout %[[BB]] : tensor<64xi32, #blocked> -> tensor<64xi32, #blocked>
// CHECK-NEXT: tt.store %[[BC]], %[[BD]] : tensor<64x!tt.ptr<i32>, #blocked>
// CHECK-NEXT: %[[BE:[^ :,)]+]] = tt.load %p : !tt.ptr<f32>
// CHECK-NEXT: tt.store %p, %[[BE]] : !tt.ptr<f32>
// CHECK-NEXT: tt.return
  tt.func public @a(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 8 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #blocked>
    %0 = ttg.convert_layout %r : tensor<64xi32, #blocked> -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>>
    %e = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked1}>> -> tensor<64x1xi32, #blocked1>
    %1 = ttg.convert_layout %e : tensor<64x1xi32, #blocked1> -> tensor<64x1xi32, #blocked2>
    %2 = ttg.convert_layout %r : tensor<64xi32, #blocked> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>>
    %f = tt.expand_dims %2 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>> -> tensor<1x64xi32, #blocked3>
    %3 = ttg.convert_layout %f : tensor<1x64xi32, #blocked3> -> tensor<1x64xi32, #blocked4>
    %ns = tt.splat %n : i32 -> tensor<64x1xi32, #blocked2>
    %es = arith.muli %1, %ns : tensor<64x1xi32, #blocked2>
    %eb = tt.broadcast %es : tensor<64x1xi32, #blocked2> -> tensor<64x64xi32, #blocked2>
    %4 = ttg.convert_layout %eb : tensor<64x64xi32, #blocked2> -> tensor<64x64xi32, #blocked4>
    %fb = tt.broadcast %3 : tensor<1x64xi32, #blocked4> -> tensor<64x64xi32, #blocked4>
    %o = arith.addi %4, %fb : tensor<64x64xi32, #blocked4>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked4>
    %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #blocked4>
    %pp = tt.addptr %ps, %o : tensor<64x64x!tt.ptr<f32>, #blocked4>, tensor<64x64xi32, #blocked4>
    %qq = tt.addptr %qs, %o : tensor<64x64x!tt.ptr<f16>, #blocked4>, tensor<64x64xi32, #blocked4>
    %x = tt.load %pp : tensor<64x64x!tt.ptr<f32>, #blocked4>
    %y = tt.load %qq : tensor<64x64x!tt.ptr<f16>, #blocked4>
    %z = arith.extf %y : tensor<64x64xf16, #blocked4> to tensor<64x64xf32, #blocked4>
    %w = arith.addf %x, %z : tensor<64x64xf32, #blocked4>
    %v = arith.truncf %w : tensor<64x64xf32, #blocked4> to tensor<64x64xf16, #blocked4>
    tt.store %pp, %w : tensor<64x64x!tt.ptr<f32>, #blocked4>
    tt.store %qq, %v : tensor<64x64x!tt.ptr<f16>, #blocked4>
    %m = arith.constant dense<true> : tensor<64x64xi1, #blocked4>
    %at = tt.atomic_rmw fadd, acq_rel, gpu, %pp, %w, %m : (tensor<64x64x!tt.ptr<f32>, #blocked4>, tensor<64x64xf32, #blocked4>, tensor<64x64xi1, #blocked4>) -> tensor<64x64xf32, #blocked4>
    %t = tt.trans %at {order = array<i32: 1, 0>} : tensor<64x64xf32, #blocked4> -> tensor<64x64xf32, #blocked5>
    %5 = ttg.convert_layout %t : tensor<64x64xf32, #blocked5> -> tensor<64x64xf32, #blocked4>
    tt.store %pp, %5 : tensor<64x64x!tt.ptr<f32>, #blocked4>
    %ptr2 = tt.trans %pp {order = array<i32: 1, 0>} : tensor<64x64x!tt.ptr<f32>, #blocked4> -> tensor<64x64x!tt.ptr<f32>, #blocked5>
    %6 = ttg.convert_layout %ptr2 : tensor<64x64x!tt.ptr<f32>, #blocked5> -> tensor<64x64x!tt.ptr<f32>, #blocked4>
    tt.store %6, %5 : tensor<64x64x!tt.ptr<f32>, #blocked4>
    %t3 = arith.addf %5, %5 : tensor<64x64xf32, #blocked4>
    %cas = arith.constant dense<0> : tensor<64xi32, #blocked>
    %pi = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i32>
    %pis = tt.splat %pi : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #blocked>
    %pip = tt.addptr %pis, %r : tensor<64x!tt.ptr<i32>, #blocked>, tensor<64xi32, #blocked>
    %c = tt.atomic_cas acq_rel, gpu, %pip, %cas, %r : (tensor<64x!tt.ptr<i32>, #blocked>, tensor<64xi32, #blocked>, tensor<64xi32, #blocked>) -> tensor<64xi32, #blocked>
    tt.store %pip, %c : tensor<64x!tt.ptr<i32>, #blocked>
    %sc = tt.load %p : !tt.ptr<f32>
    tt.store %p, %sc : !tt.ptr<f32>
    tt.return
  }

// Descriptors: 16 bytes of a row a thread; rows to gather keep their layout.
// CHECK-LABEL: @desc(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<32xi32, #blocked> -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked8}>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = tt.descriptor_gather %d[%[[B]], %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked8}>>, i32) -> tensor<32x64xf16, #blocked9>
// CHECK-NEXT: %[[D:[^ :,)]+]] = ttg.convert_layout %[[C]] : tensor<32x64xf16, #blocked9> -> tensor<32x64xf16, #blocked4>
// CHECK-NEXT: %[[E:[^ :,)]+]] = ttg.convert_layout %[[A]] : tensor<32xi32, #blocked> -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked8}>>
// CHECK-NEXT: %[[F:[^ :,)]+]] = ttg.convert_layout %[[D]] : tensor<32x64xf16, #blocked4> -> tensor<32x64xf16, #blocked9>
// CHECK-NEXT: tt.descriptor_scatter %d[%[[E]], %y], %[[F]] : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked8}>>, i32, tensor<32x64xf16, #blocked9>
// CHECK-NEXT: %[[G:[^ :,)]+]] = tt.descriptor_load %e[%y, %y] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #blocked9>
// CHECK-NEXT: %[[H:[^ :,)]+]] = ttg.convert_layout %[[G]] : tensor<64x64xf16, #blocked9> -> tensor<64x64xf16, #blocked4>
// CHECK-NEXT: %[[I:[^ :,)]+]] = ttg.convert_layout %[[H]] : tensor<64x64xf16, #blocked4> -> tensor<64x64xf16, #blocked9>
// CHECK-NEXT: tt.descriptor_store %e[%y, %y], %[[I]] : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16, #blocked9>
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.descriptor_load %g[%y, %y] : !tt.tensordesc<tensor<64x4xf32>> -> tensor<64x4xf32, #blocked10>
// CHECK-NEXT: %[[K:[^ :,)]+]] = ttg.convert_layout %[[J]] : tensor<64x4xf32, #blocked10> -> tensor<64x4xf32, #blocked11>
// CHECK-NEXT: %[[L:[^ :,)]+]] = ttg.convert_layout %[[K]] : tensor<64x4xf32, #blocked11> -> tensor<64x4xf32, #blocked10>
// CHECK-NEXT: tt.descriptor_reduce add, %g[%y, %y], %[[L]] : !tt.tensordesc<tensor<64x4xf32>>, tensor<64x4xf32, #blocked10>
// CHECK-NEXT: %[[M:[^ :,)]+]] = tt.descriptor_load %h[%y] : !tt.tensordesc<tensor<16xi8>> -> tensor<16xi8, #blocked>
// CHECK-NEXT: %[[N:[^ :,)]+]] = ttg.convert_layout %[[M]] : tensor<16xi8, #blocked> -> tensor<16xi8, #blocked>
// CHECK-NEXT: %[[O:[^ :,)]+]] = ttg.convert_layout %[[N]] : tensor<16xi8, #blocked> -> tensor<16xi8, #blocked>
// CHECK-NEXT: tt.descriptor_store %h[%y], %[[O]] : !tt.tensordesc<tensor<16xi8>>, tensor<16xi8, #blocked>
// CHECK-NEXT: %[[P:[^ :,)]+]] = tt.descriptor_load %k[%y, %y, %y] : !tt.tensordesc<tensor<2x64x64xf8E5M2>> -> tensor<2x64x64xf8E5M2, #blocked12>
// CHECK-NEXT: %[[Q:[^ :,)]+]] = ttg.convert_layout %[[P]] : tensor<2x64x64xf8E5M2, #blocked12> -> tensor<2x64x64xf8E5M2, #blocked13>
// CHECK-NEXT: %[[R:[^ :,)]+]] = ttg.convert_layout %[[Q]] : tensor<2x64x64xf8E5M2, #blocked13> -> tensor<2x64x64xf8E5M2, #blocked12>
// CHECK-NEXT: tt.descriptor_store %k[%y, %y, %y], %[[R]] : !tt.tensordesc<tensor<2x64x64xf8E5M2>>, tensor<2x64x64xf8E5M2, #blocked12>
// CHECK-NEXT: tt.return
  tt.func public @desc(%d: !tt.tensordesc<tensor<1x64xf16>>, %x: !tt.ptr<i32>, %y: i32, %e: !tt.tensordesc<tensor<64x64xf16>>, %g: !tt.tensordesc<tensor<64x4xf32>>, %h: !tt.tensordesc<tensor<16xi8>>, %k: !tt.tensordesc<tensor<2x64x64xf8E5M2>>) {
    %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #blocked>
    %0 = ttg.convert_layout %r : tensor<32xi32, #blocked> -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked6}>>
    %1 = tt.descriptor_gather %d[%0, %y] : (!tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked6}>>, i32) -> tensor<32x64xf16, #blocked4>
    %2 = ttg.convert_layout %r : tensor<32xi32, #blocked> -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked6}>>
    tt.descriptor_scatter %d[%2, %y], %1 : !tt.tensordesc<tensor<1x64xf16>>, tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked6}>>, i32, tensor<32x64xf16, #blocked4>
    %3 = tt.descriptor_load %e[%y, %y] : !tt.tensordesc<tensor<64x64xf16>> -> tensor<64x64xf16, #blocked4>
    tt.descriptor_store %e[%y, %y], %3 : !tt.tensordesc<tensor<64x64xf16>>, tensor<64x64xf16, #blocked4>
    %4 = tt.descriptor_load %g[%y, %y] : !tt.tensordesc<tensor<64x4xf32>> -> tensor<64x4xf32, #blocked7>
    tt.descriptor_reduce add, %g[%y, %y], %4 : !tt.tensordesc<tensor<64x4xf32>>, tensor<64x4xf32, #blocked7>
    %5 = tt.descriptor_load %h[%y] : !tt.tensordesc<tensor<16xi8>> -> tensor<16xi8, #blocked>
    tt.descriptor_store %h[%y], %5 : !tt.tensordesc<tensor<16xi8>>, tensor<16xi8, #blocked>
    %6 = tt.descriptor_load %k[%y, %y, %y] : !tt.tensordesc<tensor<2x64x64xf8E5M2>> -> tensor<2x64x64xf8E5M2, #blocked8>
    tt.descriptor_store %k[%y, %y, %y], %6 : !tt.tensordesc<tensor<2x64x64xf8E5M2>>, tensor<2x64x64xf8E5M2, #blocked8>
    tt.return
  }
}
