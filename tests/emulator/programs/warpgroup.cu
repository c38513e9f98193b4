// wgmma: C (64 x 64) = A (64 x 64) B^T (64 x 64), 16-bit floats in 128-byte swizzled shared memory, one warpgroup.
// Built for sm_90a.
#include <cstdint>

__device__ __forceinline__ uint64_t descriptor(const void* p) {
  uint64_t address = (uint64_t)__cvta_generic_to_shared(p);
  return ((address & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}

__device__ __forceinline__ void multiply(float (&d)[32], uint64_t a, uint64_t b, int keep) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
      "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, "
      "%32, %33, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
        "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
        "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),
        "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b), "r"(keep));
}

extern "C" __global__ void wgmma_f16(const uint16_t* a, const uint16_t* b, float* c) {
  __shared__ __align__(1024) uint16_t left[64 * 64], right[64 * 64];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  for (int i = t; i < 64 * 8; i += 128) {  // pieces of eight elements
    int row = i / 8, piece = i % 8, to = row * 64 + (piece ^ row % 8) * 8;
    *(uint4*)&left[to] = *(const uint4*)&a[row * 64 + piece * 8];
    *(uint4*)&right[to] = *(const uint4*)&b[row * 64 + piece * 8];
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float acc[32] = {};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  for (int k = 0; k < 4; k++) multiply(acc, descriptor(left + k * 16), descriptor(right + k * 16), k > 0);
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int n = 0; n < 8; n++)
    for (int i = 0; i < 4; i++) c[(warp * 16 + lane / 4 + i / 2 * 8) * 64 + n * 8 + lane % 4 * 2 + i % 2] = acc[4 * n + i];
}

// A ring of two stages that bulk copies fill and mbarriers guard: out = 2 x, by one producer thread and three warps of consumers.
__device__ __forceinline__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void wait_for(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra done;\nbra again;\ndone:\n}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

extern "C" __global__ void ring(const float* x, float* out, int tiles) {
  __shared__ __align__(128) float stage[2][96];
  __shared__ __align__(8) uint64_t full[2], empty[2];
  int t = threadIdx.x;
  if (t == 0) {
    for (int s = 0; s < 2; s++) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[s])) : "memory");
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 96;" ::"r"(address(&empty[s])) : "memory");
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (t >= 96) {
    if (t == 96)
      for (int i = 0; i < tiles; i++) {
        int s = i % 2;
        wait_for(address(&empty[s]), (i / 2 + 1) % 2);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 384;" ::"r"(address(&full[s])) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 384, [%2];" ::"r"(address(stage[s])),
                     "l"(x + i * 96), "r"(address(&full[s]))
                     : "memory");
      }
  } else {
    for (int i = 0; i < tiles; i++) {
      int s = i % 2;
      wait_for(address(&full[s]), i / 2 % 2);
      out[i * 96 + t] = 2.0f * stage[s][t];
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&empty[s])) : "memory");
    }
  }
}

// Bulk stores from shared to global memory, the buffer reused.
extern "C" __global__ void bulk_out(float* out, int tiles) {
  __shared__ __align__(128) float buffer[128];
  int t = threadIdx.x;
  for (int i = 0; i < tiles; i++) {
    buffer[t] = i * 1000.0f + t;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 512;" ::"l"(out + i * 128), "r"(address(buffer)) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
