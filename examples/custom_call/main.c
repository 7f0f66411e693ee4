/* Runs the layer once and looks at its result: the shares of a row add up to one, and the larger score has the larger share. */
#include "layer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  float x[4 * 8], w[8 * 10], shares[4 * 10];
  for (int i = 0; i < 4 * 8; i++) x[i] = (float)(i % 5) - 2;
  for (int i = 0; i < 8 * 10; i++) w[i] = (float)(i % 7) / 8;
  void *workspace = aligned_alloc(LAYER_WORKSPACE_ALIGN, LAYER_WORKSPACE_BYTES + LAYER_WORKSPACE_ALIGN);
  if (!workspace) return 2;
  layer_args args = {x, w};
  layer_results results = {shares};
  int code = layer_run(&args, &results, workspace, NULL);
  free(workspace);
  if (code != 0) {
    fprintf(stderr, "layer_run gives %d\n", code);
    return 1;
  }
  for (int row = 0; row < 4; row++) {
    float sum = 0;
    for (int i = 0; i < 10; i++) {
      sum += shares[10 * row + i];
      printf("%s%.4f", i ? " " : "", shares[10 * row + i]);
    }
    printf("\n");
    if (fabsf(sum - 1) > 1e-6f) return 1;
  }
  return 0;
}
