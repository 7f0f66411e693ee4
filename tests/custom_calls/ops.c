/* The functions of ops.pbtxt. */
#include "m.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void twice(const float *x0, float *y0, const tfaot_call *call) {
  if (strcmp(call->opaque, "double") != 0) abort();
  for (int i = 0; i < 4; i++) y0[i] = 2 * x0[i];
}

int split(const float *x0, const float *x1, float *y0, float *y1, const tfaot_call *call) {
  if (call->api_version != 3 || call->opaque_bytes != 0) abort();
  for (int i = 0; i < 4; i++) y0[i] = x0[i] + x1[i];
  for (int i = 0; i < 2; i++) y1[i] = x0[i + 2];
  return 0;
}

int main(void) {
  float x[4] = {1, 2, 3, 4}, sum[4], second[2];
  m_args args = {x};
  m_results results = {sum, second};
  void *workspace = aligned_alloc(M_WORKSPACE_ALIGN, (M_WORKSPACE_BYTES / M_WORKSPACE_ALIGN + 1) * M_WORKSPACE_ALIGN);
  if (!workspace || m_run(&args, &results, workspace, NULL) != 0) return 2;
  for (int i = 0; i < 4; i++) printf("%g ", (double)sum[i]);
  for (int i = 0; i < 2; i++) printf("%g ", (double)second[i]);
  free(workspace);
  return 0;
}
