// 16-bit floats, alone and in pairs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void half_math(const __half* x, const __half* y, __half* out, int n) {
  int i = threadIdx.x;
  __half a = x[i], b = y[i];
  out[i] = __hadd(a, b);
  out[i + n] = __hmul(a, b);
  out[i + 2 * n] = __hfma(a, b, a);
  out[i + 3 * n] = __hmax(a, b);
  out[i + 4 * n] = __hsub(a, __hneg(b));
  out[i + 5 * n] = __float2half_rn(__half2float(a) * 3.3f);
  out[i + 6 * n] = __hdiv(a, b);
  out[i + 7 * n] = hsqrt(__habs(a));
  out[i + 8 * n] = __int2half_rn((int)(__half2float(a) * 100.0f));
  out[i + 9 * n] = __hlt(a, b) ? a : b;
}

extern "C" __global__ void half_pairs(const __half2* x, const __half2* y, __half2* out, int n) {
  int i = threadIdx.x;
  __half2 a = x[i], b = y[i];
  out[i] = __hfma2(a, b, __hadd2(a, b));
  out[i + n] = __hmul2(a, __lowhigh2highlow(b));
  out[i + 2 * n] = __hmin2(a, b);
  out[i + 3 * n] = __halves2half2(__low2half(a), __high2half(b));
}

extern "C" __global__ void bfloat_math(const __nv_bfloat16* x, const __nv_bfloat16* y, __nv_bfloat16* out, int n) {
  int i = threadIdx.x;
  __nv_bfloat16 a = x[i], b = y[i];
  out[i] = __hadd(a, b);
  out[i + n] = __hmul(a, b);
  out[i + 2 * n] = __hfma(a, b, b);
  out[i + 3 * n] = __float2bfloat16_rn(__bfloat162float(a) * 1.7f);
  out[i + 4 * n] = __hmax(a, b);
}
