// Lanes of one warp exchange words through shared memory and rely on running in step.
template <bool FIXED>
__device__ void run(const int* x, int* out) {
  __shared__ int words[32];
  int t = threadIdx.x;
  words[t] = x[t];
  if (FIXED) __syncwarp();
  else asm volatile("" ::: "memory");
  out[t] = words[t ^ 1];  // found here
}
extern "C" __global__ void bug(const int* x, int* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const int* x, int* out) { run<true>(x, out); }
