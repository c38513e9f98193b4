// A barrier for 128 threads that half of the block never comes to.
template <bool FIXED>
__device__ void run(const int* x, int* out) {
  __shared__ int words[128];
  int t = threadIdx.x;
  words[t] = x[t];
  if (FIXED || t < 64) asm volatile("bar.sync 1, 128;" ::: "memory");  // found here
  if (t < 64) out[t] = words[127 - t];
}
extern "C" __global__ void bug(const int* x, int* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const int* x, int* out) { run<true>(x, out); }
