/* The time of a call of a model that adds one to four floats, and that of adding them here: the least of many short batches,
   so that a machine that does other things in between disturbs none of them all. Prints nanoseconds a call beyond the sum. */
#define _POSIX_C_SOURCE 199309L
#include "m.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { BATCHES = 20000, CALLS = 64 };

static double now_ns(void) {
  struct timespec t;
  if (clock_gettime(CLOCK_MONOTONIC, &t)) abort();
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* What the kernel does, through a pointer that no compiler looks behind. */
static int plain(void *const *args, void *const *results) {
  const float *x = (const float *)args[0];
  float *y = (float *)results[0];
  int i;
  for (i = 0; i < 4; ++i) y[i] = x[i] + 1.0f;
  return 0;
}

int main(void) {
  static int (*volatile kernel)(void *const *, void *const *) = plain;
  const tfaot_function_info *info = m_info()->functions;
  _Alignas(64) float x[16] = {1, 2, 3, 4}, y[16] = {0};
  _Alignas(64) char workspace[4096];
  void *args[1], *results[1];
  double call = 1e9, sum = 1e9;
  int batch, i;
  args[0] = x;
  results[0] = y;
  if (info->arg_count != 1 || info->result_count != 1 || info->workspace_bytes > sizeof workspace) return 1;
  for (batch = 0; batch < BATCHES; ++batch) {
    double start = now_ns(), middle, end;
    for (i = 0; i < CALLS; ++i) if (info->run(args, results, NULL, NULL, NULL, workspace, NULL, NULL)) return 1;
    middle = now_ns();
    for (i = 0; i < CALLS; ++i) if (kernel(args, results)) return 1;
    end = now_ns();
    if (middle - start < call) call = middle - start;
    if (end - middle < sum) sum = end - middle;
  }
  for (i = 0; i < 4; ++i) if (y[i] != (float)(i + 2)) return 1;
  printf("%.2f\n", (call - sum) / CALLS);
  return 0;
}
