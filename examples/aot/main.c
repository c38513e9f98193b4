/* Calls a kernel that was compiled ahead of time: no Python, no compiler, only the object files beside. */

#define TT_PTHREADS /* tt_pthreads_run, of the header */
#include "gelu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static double worst(const float *x, const float *out, int n, double scale) {
  double most = 0;
  for (int i = 0; i < n; i++)
    most = fmax(most, fabs(out[i] - scale * 0.5 * x[i] * (1 + erf(x[i] * sqrt(0.5)))));
  return most;
}

int main(void) {
  int n = 1 << 20;
  float *x = aligned_alloc(64, n * sizeof *x), *out = aligned_alloc(64, n * sizeof *out);
  for (int i = 0; i < n; i++)
    x[i] = 6.0f * i / n - 3.0f;

  TTthreads four = {4, 0, tt_pthreads_run};
  TTstream streams[] = {NULL, &four}; /* this thread alone; four threads */
  for (int algo = 0; algo < gelu_get_num_algos(); algo++)
    for (int s = 0; s < 2; s++)
      for (int shift = 0; shift < 2; shift++) { /* arrays that are aligned to 16 bytes, and arrays that are not */
        TTresult code = gelu(streams[s], x + shift, out + shift, n - shift, 2.0f, algo);
        if (code != TT_SUCCESS) {
          fprintf(stderr, "gelu: %s\n", gelu_error_string(code));
          return 1;
        }
        double error = worst(x + shift, out + shift, n - shift, 2.0);
        printf("algorithm %d, %s, offset %d: largest error %.1e\n", algo, s ? "four threads" : "one thread", shift, error);
        if (error > 1e-5)
          return 1;
      }
  puts("all right");
  free(x);
  free(out);
  return 0;
}
