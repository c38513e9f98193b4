// The accumulator of a wgmma is stored before wgmma.wait_group. Built for sm_90a.
#include <cstdint>
__device__ __forceinline__ uint64_t descriptor(const void* p) {
  uint64_t address = (uint64_t)__cvta_generic_to_shared(p);
  return ((address & 0x3ffff) >> 4) | (uint64_t)8 << 16 | (uint64_t)16 << 32;  // no swizzle: k pieces 128 bytes, rows of 8 256 bytes apart
}
template <bool FIXED>
__device__ void run(const uint16_t* x, float* out) {
  __shared__ __align__(128) uint16_t a[64 * 16], b[8 * 16];
  int t = threadIdx.x;
  for (int i = t; i < 64 * 16; i += 128) a[i] = x[i];
  if (t < 128) b[t] = x[t];
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  float d[4];
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 0, 1, 1, 0, 0;"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : "l"(descriptor(a)), "l"(descriptor(b)));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  if (FIXED) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int i = 0; i < 4; i++) out[4 * t + i] = d[i];  // found here
  if (!FIXED) asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
extern "C" __global__ void bug(const uint16_t* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const uint16_t* x, float* out) { run<true>(x, out); }
