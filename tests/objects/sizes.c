/* MODEL.h with the functions mean (the mean of n rows and all of them doubled), above (the numbers above 60, the largest first)
   and total (adds rows to the state, here the one variable v). Arrays are as long as the sizes of the call. C99 and C++17. */
#include "m.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what, long n) {
  fprintf(stderr, "sizes: %s (%ld)\n", what, n);
  exit(1);
}

static void *memory(size_t bytes) {
  void *at = malloc(bytes ? bytes : 1);
  if (!at) die("memory", (long)bytes);
  memset(at, 0x5a, bytes ? bytes : 1);
  return at;
}

static void mean(void *workspace, int64_t n) {
  float *x = (float *)memory((size_t)n * 3 * sizeof(float)), *y = (float *)memory((size_t)n * 3 * sizeof(float)), means[3];
  const m_mean_args args = {x};
  const m_mean_results results = {means, y};
  m_mean_sizes sizes = {n};
  m_state *state = (m_state *)memory(sizeof *state);
  int64_t i;
  m_init(state);
  for (i = 0; i < 3 * n; ++i) x[i] = (float)(i % 7);
  if (m_mean(&args, &results, &sizes, state, workspace, NULL) || sizes.n != n) die("mean failed", (long)n);
  for (i = 0; i < 3 * n; ++i)
    if (y[i] < 2 * x[i] || y[i] > 2 * x[i]) die("a row is not doubled", (long)i);
  for (i = 0; i < 3; ++i) {
    float sum = 0;
    int64_t row;
    for (row = 0; row < n; ++row) sum += x[3 * row + i];
    if (means[i] - sum / (float)n > 1e-5f || sum / (float)n - means[i] > 1e-5f) die("a mean is wrong", (long)n);
  }
  free(x);
  free(y);
  free(state);
}

static void above(void *workspace, int64_t n) {
  float *x = (float *)memory((size_t)n * sizeof(float)), *y = (float *)memory(100 * sizeof(float));
  const m_above_args args = {x};
  const m_above_results results = {y};
  m_above_sizes sizes = {n, -1};
  m_state *state = (m_state *)memory(sizeof *state);
  int64_t i, want = n > 60 ? n - 60 : 0;
  m_init(state);
  for (i = 0; i < n; ++i) x[i] = (float)(i + 1);
  if (m_above(&args, &results, &sizes, state, workspace, NULL)) die("above failed", (long)n);
  if (sizes.found != want) die("another count", (long)sizes.found);
  for (i = 0; i < want; ++i)
    if (y[i] < (float)(n - i) || y[i] > (float)(n - i)) die("another number", (long)i);
  for (; i < 100; ++i)
    if (((unsigned char *)(y + i))[0] != 0x5a) die("written beyond the size", (long)i);
  free(x);
  free(y);
  free(state);
}

static void total(void *workspace) {
  m_state *state = (m_state *)memory(sizeof *state), before;
  float *x = (float *)memory(16 * sizeof(float)), *y = (float *)memory(16 * sizeof(float));
  const m_total_args args = {x};
  const m_total_results results = {y};
  m_total_sizes sizes;
  int64_t i, n, sum = 0;
  m_init(state);
  for (i = 0; i < 16; ++i) x[i] = 1;
  for (n = 1; n <= 8; ++n) {
    sizes.n = n;
    if (m_total(&args, &results, &sizes, state, workspace, NULL)) die("total failed", (long)n);
    sum += n;
    if (state->v0[0] < (float)sum || state->v0[0] > (float)sum || state->v0[1] < (float)sum) die("another total", (long)n);
    if (y[2 * n - 1] < 1 + state->v0[1]) die("another result", (long)n);
  }
  before = *state;
  for (i = 0; i < 2; ++i) {
    sizes.n = i ? 9 : 0;
    memset(y, 0x5a, 16 * sizeof(float));
    if (m_total(&args, &results, &sizes, state, workspace, NULL) != TFAOT_E_SIZE) die("not refused", (long)sizes.n);
    if (memcmp(&before, state, sizeof before)) die("a refused call changed the state", 0);
    for (n = 0; n < 64; ++n)
      if (((unsigned char *)y)[n] != 0x5a) die("a refused call wrote results", (long)n);
  }
  free(x);
  free(y);
  free(state);
}

static void info(void *workspace) {
  const tfaot_model_info *model = m_info();
  const tfaot_function_info *entry;
  float x[6] = {1, 2, 3, 4, 5, 6}, means[3], y[6];
  const float *args[1];
  float *results[2];
  int64_t sizes[1] = {2};
  m_state *state = (m_state *)memory(sizeof *state);
  args[0] = x;
  results[0] = means;
  results[1] = y;
  if (model->init(state, NULL)) die("init failed", 0);
  if (model->abi_version != TFAOT_ABI_VERSION || model->function_count != 3) die("another version", (long)model->abi_version);
  entry = model->functions;
  if (strcmp(entry->name, "mean") || entry->size_count != 1 || strcmp(entry->sizes->name, "n")) die("another entry", 0);
  if (entry->sizes->least != 1 || entry->sizes->most != 9 || entry->sizes->is_result) die("other bounds", 0);
  /* of x[n,3], of mean[3], of y[n,3] */
  if (entry->axes[0] != 0 || entry->axes[1] != -1 || entry->axes[2] != -1 || entry->axes[3] != 0 || entry->axes[4] != -1)
    die("other axes", 0);
  if (entry->args[0].dims[0] != 9 || entry->args[0].bytes != 108) die("another bound", 0);
  if (entry[1].size_count != 2 || !entry[1].sizes[1].is_result || entry[1].axes[0] != 0 || entry[1].axes[1] != 1)
    die("another size of a result", 0);
  if (entry->run((const void *)args, (const void *)results, sizes, state, NULL, workspace, NULL, NULL)) die("run failed", 0);
  if (means[2] < 4.5f || means[2] > 4.5f || y[5] < 12 || y[5] > 12) die("run gives something else", 0);
  free(state);
}

int main(void) {
  unsigned char *block = (unsigned char *)malloc(M_WORKSPACE_BYTES + M_WORKSPACE_ALIGN), *workspace;
  int64_t n;
  if (!block) die("memory", 0);
  workspace = block + (M_WORKSPACE_ALIGN - (uintptr_t)block % M_WORKSPACE_ALIGN) % M_WORKSPACE_ALIGN;
  memset(workspace, 0xff, M_WORKSPACE_BYTES); /* not a number, wherever it is read */
  if (!m_supported()) die("not supported", 0);
  for (n = 1; n <= 9; ++n) mean(workspace, n);
  for (n = 0; n <= 100; n += n < 58 ? 29 : 1) above(workspace, n);
  total(workspace);
  info(workspace);
  free(block);
  return 0;
}
