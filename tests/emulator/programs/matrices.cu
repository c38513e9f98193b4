// Tensor-core products: mma.sync on tiles that ldmatrix takes from shared memory. C (64 x 64) = A (64 x K) B (K x 64), four warps.
#include <cstdint>

__device__ __forceinline__ uint32_t shared_address(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }

template <int STEPS>
__device__ void gemm16(const uint16_t* a, const uint16_t* b, float* c, int depth, bool bf16) {
  __shared__ __align__(16) uint16_t left[64][24], right[16][72];
  int t = threadIdx.x, lane = t % 32, warp = t / 32;
  float acc[8][4] = {};
  for (int k = 0; k < depth; k += 16) {
    __syncthreads();
    for (int i = t; i < 64 * 16; i += 128) left[i / 16][i % 16] = a[i / 16 * depth + k + i % 16];
    for (int i = t; i < 16 * 64; i += 128) right[i / 64][i % 64] = b[(k + i / 64) * 64 + i % 64];
    __syncthreads();
    uint32_t fa[4];
    uint32_t from = shared_address(&left[warp * 16 + lane % 16][lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3]) : "r"(from) : "memory");
    for (int n = 0; n < 8; n++) {
      uint32_t fb[2];
      from = shared_address(&right[lane % 16][n * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];" : "=r"(fb[0]), "=r"(fb[1]) : "r"(from) : "memory");
      float* d = acc[n];
      if (bf16)
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
      else
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
    }
  }
  for (int n = 0; n < 8; n++) {
    int row = warp * 16 + lane / 4, column = n * 8 + lane % 4 * 2;
    c[row * 64 + column] = acc[n][0];
    c[row * 64 + column + 1] = acc[n][1];
    c[(row + 8) * 64 + column] = acc[n][2];
    c[(row + 8) * 64 + column + 1] = acc[n][3];
  }
}

extern "C" __global__ void gemm_f16(const uint16_t* a, const uint16_t* b, float* c, int depth) { gemm16<0>(a, b, c, depth, false); }
extern "C" __global__ void gemm_bf16(const uint16_t* a, const uint16_t* b, float* c, int depth) { gemm16<1>(a, b, c, depth, true); }

// 16 x 8 by one warp, straight from global memory
extern "C" __global__ void gemm_s8(const int8_t* a, const int8_t* b, int* c, int depth) {
  int lane = threadIdx.x, row = lane / 4, group = lane % 4;
  int acc[4] = {};
  for (int k = 0; k < depth; k += 32) {
    uint32_t fa[4], fb[2];
    for (int i = 0; i < 4; i++) fa[i] = *(const uint32_t*)&a[(row + i % 2 * 8) * depth + k + i / 2 * 16 + group * 4];
    for (int i = 0; i < 2; i++) fb[i] = *(const uint32_t*)&b[row * depth + k + i * 16 + group * 4];
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(acc[0]), "+r"(acc[1]), "+r"(acc[2]), "+r"(acc[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  }
  for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * 8 + group * 2 + i % 2] = acc[i];
}

extern "C" __global__ void gemm_tf32(const float* a, const float* b, float* c, int depth) {
  int lane = threadIdx.x, row = lane / 4, group = lane % 4;
  float acc[4] = {};
  for (int k = 0; k < depth; k += 8) {
    uint32_t fa[4], fb[2];
    for (int i = 0; i < 4; i++) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fa[i]) : "f"(a[(row + i % 2 * 8) * depth + k + i / 2 * 4 + group]));
    for (int i = 0; i < 2; i++) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(fb[i]) : "f"(b[row * depth + k + i * 4 + group]));
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
                 : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  }
  for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * 8 + group * 2 + i % 2] = acc[i];
}

extern "C" __global__ void gemm_f64(const double* a, const double* b, double* c, int depth) {
  int lane = threadIdx.x, row = lane / 4, group = lane % 4;
  double acc[2] = {};
  for (int k = 0; k < depth; k += 4) {
    double fa = a[row * depth + k + group], fb = b[row * depth + k + group];
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" : "+d"(acc[0]), "+d"(acc[1]) : "d"(fa), "d"(fb));
  }
  c[row * 8 + group * 2] = acc[0];
  c[row * 8 + group * 2 + 1] = acc[1];
}
