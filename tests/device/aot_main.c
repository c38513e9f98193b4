/* Runs on a GPU what tests/device/check_aot.py compiled ahead of time, and compares with numbers computed here. */

#include "matmul.h"
#include "scale.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static int failures = 0;

static void say(const char *what, int good) {
  printf("%s %s\n", good ? "PASS" : "FAIL", what);
  failures += !good;
}

static void need(CUresult code, const char *what) {
  if (code != CUDA_SUCCESS) {
    const char *text = NULL;
    cuGetErrorString(code, &text);
    printf("FAIL %s: %s\n", what, text ? text : "unknown");
    exit(1);
  }
}

static CUdeviceptr memory(size_t bytes, const void *from) {
  CUdeviceptr made;
  need(cuMemAlloc(&made, bytes), "cuMemAlloc");
  if (from != NULL)
    need(cuMemcpyHtoD(made, from, bytes), "cuMemcpyHtoD");
  return made;
}

static void scaled(int algo, int shift, int n, const char *what) {
  float *x = malloc(4 * (n + 1)), *out = calloc(n + 1, 4);
  for (int i = 0; i <= n; i++)
    x[i] = (float)i;
  CUdeviceptr on_x = memory(4 * (n + 1), x), on_out = memory(4 * (n + 1), out);
  CUresult code = scale(NULL, on_x + 4 * shift, on_out + 4 * shift, n - shift, 2.5f, algo);
  need(cuCtxSynchronize(), "cuCtxSynchronize");
  need(cuMemcpyDtoH(out, on_out, 4 * (n + 1)), "cuMemcpyDtoH");
  int wrong = code != CUDA_SUCCESS;
  for (int i = shift; i < n; i++)
    wrong += out[i] != 2.5f * i;
  say(what, wrong == 0 && out[n] == 0);
  cuMemFree(on_x);
  cuMemFree(on_out);
  free(x);
  free(out);
}

static void products(int m, int n, int k) {
  static const uint16_t halves[] = {0x0000, 0x3C00, 0x4000, 0x4200}; /* 0, 1, 2, 3 */
  uint16_t *a = malloc(2 * m * k), *b = malloc(2 * k * n);
  float *c = calloc(m * n, 4);
  for (int i = 0; i < m * k; i++)
    a[i] = halves[(i * 7 + i / k) % 4];
  for (int i = 0; i < k * n; i++)
    b[i] = halves[(i * 5 + i / n) % 4];
  CUdeviceptr on_a = memory(2 * m * k, a), on_b = memory(2 * k * n, b), on_c = memory(4 * m * n, c);
  CUresult code = matmul_default(NULL, on_a, on_b, on_c, m, n, k);
  need(cuCtxSynchronize(), "cuCtxSynchronize");
  need(cuMemcpyDtoH(c, on_c, 4 * m * n), "cuMemcpyDtoH");
  int wrong = code != CUDA_SUCCESS;
  for (int i = 0; i < m; i++)
    for (int j = 0; j < n; j++) {
      int sum = 0;
      for (int l = 0; l < k; l++)
        sum += (((i * k + l) * 7 + i) % 4) * (((l * n + j) * 5 + l) % 4);
      wrong += c[i * n + j] != (float)sum;
    }
  say("a product with much shared memory", wrong == 0);
}

int main(void) {
  CUdevice device;
  CUcontext context;
  need(cuInit(0), "cuInit");
  need(cuDeviceGet(&device, 0), "cuDeviceGet");
  need(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  need(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  say("two algorithms", scale_get_num_algos() == 2);
  scaled(0, 0, 100000, "aligned arrays");
  scaled(0, 1, 100000, "arrays that are not aligned");
  scaled(1, 0, 99999, "the other algorithm");
  say("an empty grid", scale(NULL, 0, 0, 0, 1.0f, 0) == CUDA_SUCCESS);
  say("no such algorithm", scale(NULL, 0, 0, 1, 1.0f, 2) == CUDA_ERROR_INVALID_VALUE);
  products(256, 384, 192);
  unload_scale();
  scaled(0, 0, 1000, "loaded again");
  unload_scale();
  unload_matmul();
  return failures;
}
