// Four floats are loaded at once from an address that is a multiple of four bytes only.
template <bool FIXED>
__device__ void run(const float* x, float* out) {
  int t = threadIdx.x;
  const float* from = x + 4 * t + 1;
  float4 v = FIXED ? make_float4(from[0], from[1], from[2], from[3]) : *(const float4*)from;  // found here
  out[t] = v.x + v.y + v.z + v.w;
}
extern "C" __global__ void bug(const float* x, float* out) { run<false>(x, out); }
extern "C" __global__ void fixed(const float* x, float* out) { run<true>(x, out); }
