// Whole kernels: softmax of rows, a stencil on a two-dimensional grid, a product of matrices in tiles.
extern "C" __global__ void softmax(const float* x, float* out, int columns) {
  __shared__ float part[4];
  const float* row = x + blockIdx.x * columns;
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  float most = -INFINITY, sum = 0.0f;
  for (int i = t; i < columns; i += blockDim.x) most = fmaxf(most, row[i]);
  for (int step = 16; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
  if (lane == 0) part[warp] = most;
  __syncthreads();
  most = fmaxf(fmaxf(part[0], part[1]), fmaxf(part[2], part[3]));
  __syncthreads();
  for (int i = t; i < columns; i += blockDim.x) sum += expf(row[i] - most);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0) part[warp] = sum;
  __syncthreads();
  sum = part[0] + part[1] + part[2] + part[3];
  for (int i = t; i < columns; i += blockDim.x) out[blockIdx.x * columns + i] = expf(row[i] - most) / sum;
}

extern "C" __global__ void stencil(const float* x, float* out, int width, int height) {
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= height) return;
  float center = x[row * width + column];
  float left = column > 0 ? x[row * width + column - 1] : center, right = column < width - 1 ? x[row * width + column + 1] : center;
  float up = row > 0 ? x[(row - 1) * width + column] : center, down = row < height - 1 ? x[(row + 1) * width + column] : center;
  out[row * width + column] = 0.5f * center + 0.125f * (left + right + up + down);
}

extern "C" __global__ void tiled_product(const float* a, const float* b, float* c, int n) {
  __shared__ float left[16][16], right[16][16];
  int column = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
  float sum = 0.0f;
  for (int k = 0; k < n; k += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum = fmaf(left[threadIdx.y][i], right[i][threadIdx.x], sum);
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void sort_bitonic(int* x) {
  extern __shared__ int keys[];
  int t = threadIdx.x;
  keys[t] = x[t];
  __syncthreads();
  for (int size = 2; size <= blockDim.x; size *= 2)
    for (int step = size / 2; step > 0; step /= 2) {
      int other = t ^ step;
      if (other > t) {
        int a = keys[t], b = keys[other];
        if ((a > b) == ((t & size) == 0)) {
          keys[t] = b;
          keys[other] = a;
        }
      }
      __syncthreads();
    }
  x[t] = keys[t];
}
