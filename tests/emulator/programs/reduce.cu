// Sums and maxima: a tree in shared memory, shuffles, redux.sync, and two levels of warps.
extern "C" __global__ void tree_sum(const float* x, float* out, int n) {
  __shared__ float part[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int step = blockDim.x / 2; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = part[0];
}

extern "C" __global__ void shuffle_sum(const float* x, float* out, int n) {
  __shared__ float part[32];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  float sum = 0.0f;
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < blockDim.x / 32 ? part[lane] : 0.0f;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0) out[blockIdx.x] = sum;
  }
}

extern "C" __global__ void integer_redux(const int* x, int* out) {
  int value = x[threadIdx.x], warp = threadIdx.x / 32;
  int sum = __reduce_add_sync(0xffffffffu, value), most = __reduce_max_sync(0xffffffffu, value);
  unsigned every = __reduce_and_sync(0xffffffffu, (unsigned)value), some = __reduce_or_sync(0xffffffffu, (unsigned)value);
  if (threadIdx.x % 32 == 0) {
    out[4 * warp] = sum;
    out[4 * warp + 1] = most;
    out[4 * warp + 2] = (int)every;
    out[4 * warp + 3] = (int)some;
  }
}

extern "C" __global__ void dot_f64(const double* x, const double* y, double* out, int n) {
  __shared__ double part[128];
  int t = threadIdx.x;
  double sum = 0.0;
  for (int i = t; i < n; i += blockDim.x) sum = fma(x[i], y[i], sum);
  part[t] = sum;
  __syncthreads();
  for (int step = 64; step > 0; step /= 2) {
    if (t < step) part[t] += part[t + step];
    __syncthreads();
  }
  if (t == 0) *out = part[0];
}
