// Prefix sums: doubling steps in two shared buffers, shuffles, and the work-efficient tree.
extern "C" __global__ void doubling_scan(const int* x, int* out) {
  __shared__ int buffer[2][256];
  int t = threadIdx.x, from = 0;
  buffer[0][t] = x[t];
  __syncthreads();
  for (int step = 1; step < 256; step *= 2) {
    buffer[1 - from][t] = buffer[from][t] + (t >= step ? buffer[from][t - step] : 0);
    from = 1 - from;
    __syncthreads();
  }
  out[t] = buffer[from][t];
}

extern "C" __global__ void warp_scan(const float* x, float* out) {
  int t = threadIdx.x, lane = t % 32;
  float sum = x[t];
  for (int step = 1; step < 32; step *= 2) {
    float other = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += other;
  }
  out[t] = sum;
}

extern "C" __global__ void tree_scan(const unsigned* x, unsigned* out) {
  extern __shared__ unsigned tree[];
  int t = threadIdx.x, n = 2 * blockDim.x;
  tree[2 * t] = x[2 * t];
  tree[2 * t + 1] = x[2 * t + 1];
  int offset = 1;
  for (int d = n / 2; d > 0; d /= 2) {
    __syncthreads();
    if (t < d) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
    offset *= 2;
  }
  if (t == 0) tree[n - 1] = 0;
  for (int d = 1; d < n; d *= 2) {
    offset /= 2;
    __syncthreads();
    if (t < d) {
      int a = offset * (2 * t + 1) - 1, b = offset * (2 * t + 2) - 1;
      unsigned left = tree[a];
      tree[a] = tree[b];
      tree[b] += left;
    }
  }
  __syncthreads();
  out[2 * t] = tree[2 * t];
  out[2 * t + 1] = tree[2 * t + 1];
}
