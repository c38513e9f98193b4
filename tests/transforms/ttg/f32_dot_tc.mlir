// RUN: tilework opt %s -p 'tritongpu-F32DotTC{emu-tf32=1}'

#b = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
// CHECK:      #blocked = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Two parts in tf32, three products.
// CHECK-LABEL: @tf32x3(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = tt.elementwise_inline_asm "cvt.rna.tf32.f32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> -> tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.subf %a, %[[B]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[D:[^ :,)]+]] = tt.elementwise_inline_asm "cvt.rna.tf32.f32 $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %b : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.subf %b, %[[D]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[F:[^ :,)]+]] = tt.dot %[[C]], %[[D]], %[[A]], inputPrecision = tf32 {maxNumImpreciseAcc = 64 : i32} : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[G:[^ :,)]+]] = tt.dot %[[B]], %[[E]], %[[F]], inputPrecision = tf32 {maxNumImpreciseAcc = 64 : i32} : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[H:[^ :,)]+]] = arith.cmpf uno, %[[G]], %[[G]] : tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.select %[[H]], %[[A]], %[[G]] : tensor<16x16xi1, #blocked>, tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.dot %[[B]], %[[D]], %[[I]], inputPrecision = tf32 {maxNumImpreciseAcc = 64 : i32} : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[K:[^ :,)]+]] = arith.addf %[[J]], %c : tensor<16x16xf32, #blocked>
// CHECK-NEXT: tt.return %[[K]] : tensor<16x16xf32, #blocked>
tt.func public @tf32x3(%a: tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>>, %b: tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>>, %c: tensor<16x16xf32, #b>) -> tensor<16x16xf32, #b> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32x3 {maxNumImpreciseAcc = 64 : i32} : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>> -> tensor<16x16xf32, #b>
  tt.return %d : tensor<16x16xf32, #b>
}

// Two parts in bf16, three products.
// CHECK-LABEL: @bf16x3(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.truncf %a : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.extf %[[B]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.subf %a, %[[C]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.truncf %[[D]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.truncf %b : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = arith.extf %[[F]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[H:[^ :,)]+]] = arith.subf %b, %[[G]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.truncf %[[H]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[J:[^ :,)]+]] = tt.dot %[[E]], %[[F]], %[[A]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[K:[^ :,)]+]] = tt.dot %[[B]], %[[I]], %[[J]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[L:[^ :,)]+]] = arith.cmpf uno, %[[K]], %[[K]] : tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[M:[^ :,)]+]] = arith.select %[[L]], %[[A]], %[[K]] : tensor<16x16xi1, #blocked>, tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[N:[^ :,)]+]] = tt.dot %[[B]], %[[F]], %[[M]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[O:[^ :,)]+]] = arith.addf %[[N]], %c : tensor<16x16xf32, #blocked>
// CHECK-NEXT: tt.return %[[O]] : tensor<16x16xf32, #blocked>
tt.func public @bf16x3(%a: tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>>, %b: tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>>, %c: tensor<16x16xf32, #b>) -> tensor<16x16xf32, #b> {
  %d = tt.dot %a, %b, %c, inputPrecision = bf16x3 : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>> -> tensor<16x16xf32, #b>
  tt.return %d : tensor<16x16xf32, #b>
}

// Three parts in bf16, six products.
// CHECK-LABEL: @bf16x6(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.truncf %a : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.extf %[[B]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[D:[^ :,)]+]] = arith.subf %a, %[[C]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[E:[^ :,)]+]] = arith.truncf %[[D]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[F:[^ :,)]+]] = arith.extf %[[E]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[G:[^ :,)]+]] = arith.subf %[[D]], %[[F]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[H:[^ :,)]+]] = arith.truncf %[[G]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.truncf %b : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[J:[^ :,)]+]] = arith.extf %[[I]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[K:[^ :,)]+]] = arith.subf %b, %[[J]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[L:[^ :,)]+]] = arith.truncf %[[K]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[M:[^ :,)]+]] = arith.extf %[[L]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[N:[^ :,)]+]] = arith.subf %[[K]], %[[M]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[O:[^ :,)]+]] = arith.truncf %[[N]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[P:[^ :,)]+]] = tt.dot %[[E]], %[[L]], %[[A]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[Q:[^ :,)]+]] = tt.dot %[[H]], %[[I]], %[[P]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[R:[^ :,)]+]] = tt.dot %[[B]], %[[O]], %[[Q]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[S:[^ :,)]+]] = tt.dot %[[E]], %[[I]], %[[R]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[T:[^ :,)]+]] = tt.dot %[[B]], %[[L]], %[[S]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[U:[^ :,)]+]] = arith.cmpf uno, %[[T]], %[[T]] : tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[V:[^ :,)]+]] = arith.select %[[U]], %[[A]], %[[T]] : tensor<16x16xi1, #blocked>, tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[W:[^ :,)]+]] = tt.dot %[[B]], %[[I]], %[[V]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[X:[^ :,)]+]] = arith.addf %[[W]], %c : tensor<16x16xf32, #blocked>
// CHECK-NEXT: tt.return %[[X]] : tensor<16x16xf32, #blocked>
tt.func public @bf16x6(%a: tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>>, %b: tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>>, %c: tensor<16x16xf32, #b>) -> tensor<16x16xf32, #b> {
  %d = tt.dot %a, %b, %c, inputPrecision = bf16x6 : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>> -> tensor<16x16xf32, #b>
  tt.return %d : tensor<16x16xf32, #b>
}

// The zero is at the start of the function.
// CHECK-LABEL: @in_a_loop(
// CHECK-NEXT: %[[A:[^ :,)]+]] = arith.constant dense<0.000000e+00> : tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[B:[^ :,)]+]] = arith.constant 0 : i32
// CHECK-NEXT: %[[C:[^ :,)]+]] = arith.constant 1 : i32
// CHECK-NEXT: %[[D:[^ :,)]+]] = scf.for %[[E:[^ :,)]+]] = %[[B]] to %n step %[[C]] iter_args(%[[F:[^ :,)]+]] = %c) -> (tensor<16x16xf32, #blocked>)  : i32 {
// CHECK-NEXT: %[[G:[^ :,)]+]] = arith.truncf %a : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[H:[^ :,)]+]] = arith.extf %[[G]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[I:[^ :,)]+]] = arith.subf %a, %[[H]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[J:[^ :,)]+]] = arith.truncf %[[I]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>>
// CHECK-NEXT: %[[K:[^ :,)]+]] = arith.truncf %b : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[L:[^ :,)]+]] = arith.extf %[[K]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[M:[^ :,)]+]] = arith.subf %b, %[[L]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[N:[^ :,)]+]] = arith.truncf %[[M]] : tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> to tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>>
// CHECK-NEXT: %[[O:[^ :,)]+]] = tt.dot %[[J]], %[[K]], %[[A]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[P:[^ :,)]+]] = tt.dot %[[G]], %[[N]], %[[O]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[Q:[^ :,)]+]] = arith.cmpf uno, %[[P]], %[[P]] : tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[R:[^ :,)]+]] = arith.select %[[Q]], %[[A]], %[[P]] : tensor<16x16xi1, #blocked>, tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[S:[^ :,)]+]] = tt.dot %[[G]], %[[K]], %[[R]] : tensor<16x16xbf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xbf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: %[[T:[^ :,)]+]] = arith.addf %[[S]], %[[F]] : tensor<16x16xf32, #blocked>
// CHECK-NEXT: scf.yield %[[T]] : tensor<16x16xf32, #blocked>
// CHECK-NEXT: }
// CHECK-NEXT: tt.return %[[D]] : tensor<16x16xf32, #blocked>
tt.func public @in_a_loop(%a: tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>>, %b: tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>>, %c: tensor<16x16xf32, #b>, %n: i32) -> tensor<16x16xf32, #b> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<16x16xf32, #b>) : i32 {
    %d = tt.dot %a, %b, %acc, inputPrecision = bf16x3 : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>> -> tensor<16x16xf32, #b>
    scf.yield %d : tensor<16x16xf32, #b>
  }
  tt.return %r : tensor<16x16xf32, #b>
}

// Must not fire: one product is enough.
// CHECK-LABEL: @tf32(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: tt.return %[[A]] : tensor<16x16xf32, #blocked>
tt.func public @tf32(%a: tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>>, %b: tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>>, %c: tensor<16x16xf32, #b>) -> tensor<16x16xf32, #b> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #b}>> * tensor<16x16xf32, #ttg.dot_op<{opIdx = 1, parent = #b}>> -> tensor<16x16xf32, #b>
  tt.return %d : tensor<16x16xf32, #b>
}

// Must not fire: the operands are f16.
// CHECK-LABEL: @of_f16(
// CHECK-NEXT: %[[A:[^ :,)]+]] = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked}>> * tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked}>> -> tensor<16x16xf32, #blocked>
// CHECK-NEXT: tt.return %[[A]] : tensor<16x16xf32, #blocked>
tt.func public @of_f16(%a: tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #b}>>, %b: tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #b}>>, %c: tensor<16x16xf32, #b>) -> tensor<16x16xf32, #b> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<16x16xf16, #ttg.dot_op<{opIdx = 0, parent = #b}>> * tensor<16x16xf16, #ttg.dot_op<{opIdx = 1, parent = #b}>> -> tensor<16x16xf32, #b>
  tt.return %d : tensor<16x16xf32, #b>
}
}
