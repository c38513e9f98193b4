// What a bulk copy writes to global memory is read when its source may be used again, not when it is there. Built for sm_90a.
#include <cstdint>
__device__ __forceinline__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
template <bool FIXED>
__device__ void run(float* x, float* out) {
  __shared__ __align__(128) float words[64];
  int t = threadIdx.x;
  words[t] = 2.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(x), "r"(address(words)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    if (FIXED)
      asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    else
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
  __syncthreads();
  out[t] = x[t];  // found here
}
extern "C" __global__ void bug(float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(float* x, float* out) { run<true>(x, out); }
