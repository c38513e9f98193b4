// The consumer of the second phase asks for the first one's parity: it comes too early, or never. Built for sm_90a.
#include <cstdint>
__device__ __forceinline__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void wait_for(uint32_t barrier, int parity) {
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@!p bra again;\n}" ::"r"(barrier), "r"(parity) : "memory");  // found here
}
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  __shared__ float words[64];
  __shared__ __align__(8) uint64_t full;
  int t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(address(&full)) : "memory");
  __syncthreads();
  if (t < 32) {
    words[t] = x[t];
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&full)) : "memory");
  }
  wait_for(address(&full), 0);
  float first = words[t % 32];
  __syncthreads();
  if (t < 32) {
    words[t + 32] = x[t] * 2.0f;  // found here
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&full)) : "memory");
  } else {
    wait_for(address(&full), FIXED);
    out[t - 32] = first + words[t];  // found here
  }
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
