/* The functions of loop.hlo, and what they must have done. */
#include "m.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds i + 1 to element i of a row in round i. */
void step(const float *x0, const int32_t *x1, float *y0, const tfaot_call *call) {
  if (call->api_version != 1 || call->opaque_bytes != 4 || memcmp(call->opaque, "a\"b\001", 5) != 0) abort();
  for (int i = 0; i < 6; i++) y0[i] = x0[i] + (float)(i % 3 == *x1 ? *x1 + 1 : 0);
}

/* Column by column: running sums, and whether the last of a column is above the limit; a negative limit is an error. */
int columns(const float *x0, const float *x1, float *y0, uint8_t *y1, const tfaot_call *call) {
  const tfaot_tensor_info *x = call->args;
  if (call->api_version != 4 || call->arg_count != 2 || call->result_count != 2 || call->opaque_bytes != 0) abort();
  if (x->rank != 2 || x->dims[0] != 3 || x->dims[1] != 2 || call->results[1].bytes != 3) abort();
  if (*x1 < 0) return 7;
  for (int column = 0; column < 3; column++) {
    y0[2 * column] = x0[2 * column];
    y0[2 * column + 1] = x0[2 * column] + x0[2 * column + 1];
    y1[column] = y0[2 * column + 1] > *x1;
  }
  return 0;
}

int main(void) {
  float x[6] = {1, 2, 3, -4, -5, -6}, limit = -1, y[6];
  uint8_t large[3];
  m_args args = {x, &limit};
  m_results results = {y, large};
  void *workspace = aligned_alloc(M_WORKSPACE_ALIGN, (M_WORKSPACE_BYTES / M_WORKSPACE_ALIGN + 1) * M_WORKSPACE_ALIGN);
  if (!workspace || m_run(&args, &results, workspace, NULL) != TFAOT_E_CALL) return 2;
  limit = -0.5f + 1;
  if (m_run(&args, &results, workspace, NULL) != 0) return 3;
  for (int i = 0; i < 6; i++) printf("%g ", (double)y[i]);
  for (int i = 0; i < 3; i++) printf("%d ", large[i]);
  free(workspace);
  return 0;
}
