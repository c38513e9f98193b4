// A buffer is filled again while a bulk copy may still read it. Built for sm_90a.
#include <cstdint>
__device__ __forceinline__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
template <bool FIXED>
__device__ void run(float* out) {
  __shared__ __align__(128) float words[64];
  int t = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < 3; i++) {
    words[t] = i * 100.0f + t;  // found here
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out + i * 64), "r"(address(words)) : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
      if (FIXED) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
  if (t == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
extern "C" __global__ void bug(float* out) { run<false>(out); }
extern "C" __global__ void fixed(float* out) { run<true>(out); }
