// Transposes through shared memory, with and without bank conflicts, and one that does not coalesce its writes.
extern "C" __global__ void transpose_padded(const float* x, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += blockDim.y)
    if (row + k < rows && column < columns) tile[threadIdx.y + k][threadIdx.x] = x[(row + k) * columns + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  for (int k = 0; k < 32; k += blockDim.y)
    if (row + k < columns && column < rows) out[(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void transpose_conflicts(const float* x, float* out) {
  __shared__ float tile[32][32];
  for (int k = 0; k < 32; k += blockDim.y) tile[threadIdx.y + k][threadIdx.x] = x[(threadIdx.y + k) * 32 + threadIdx.x];
  __syncthreads();
  for (int k = 0; k < 32; k += blockDim.y) out[(threadIdx.y + k) * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y + k];
}

extern "C" __global__ void transpose_scattered(const float* x, float* out) {
  for (int k = 0; k < 32; k += blockDim.y) out[threadIdx.x * 32 + threadIdx.y + k] = x[(threadIdx.y + k) * 32 + threadIdx.x];
}
