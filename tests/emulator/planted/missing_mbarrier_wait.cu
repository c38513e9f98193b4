// Threads read what a bulk copy brings without waiting at its mbarrier. Built for sm_90a.
#include <cstdint>
__device__ __forceinline__ uint32_t address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  __shared__ __align__(128) float words[64];
  __shared__ __align__(8) uint64_t full;
  int t = threadIdx.x;
  words[t] = 0.0f;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  if (t == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\nfence.mbarrier_init.release.cluster;" ::"r"(address(&full)) : "memory");
  __syncthreads();
  if (t == 0) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" ::"r"(address(&full)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" ::"r"(address(words)), "l"(x),
                 "r"(address(&full))
                 : "memory");
  }
  if (FIXED)
    asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(address(&full)) : "memory");
  else
    __syncthreads();
  out[t] = words[t];  // found here
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
