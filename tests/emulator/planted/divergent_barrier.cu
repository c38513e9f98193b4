// The halves of a warp meet at two different barriers, which need not be one.
template <bool FIXED>
__device__ void run(const int* x, int* out) {
  __shared__ int words[32];
  int t = threadIdx.x, v = x[t];
  words[t] = v;
  if (FIXED) __syncthreads();
  if (t < 16) {
    if (!FIXED) asm volatile("bar.sync 0;" ::: "memory");  // found here
    v += words[t + 16];
  } else {
    v *= 3;
    if (!FIXED) asm volatile("bar.sync 0;" ::: "memory");  // found here
    v += words[t - 16];
  }
  out[t] = v;
}
extern "C" __global__ void bug(const int* x, int* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const int* x, int* out) { run<true>(x, out); }
