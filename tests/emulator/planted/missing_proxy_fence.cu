// What threads stored is read by a bulk copy without a fence between the two proxies. Built for sm_90a.
#include <cstdint>
__device__ __forceinline__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  __shared__ __align__(128) float words[64];
  int t = threadIdx.x;
  words[t] = x[t] + 1.0f;
  if (FIXED) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"(address(words)) : "memory");  // found here
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
