/* A model whose weights are in a file: weights FILE prints what it makes of ones, by its function and by the table of functions.
   Checks on the way that other weights, part of the file, and none are refused, and that nothing is written then. */
#include "net.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char *what) {
  fprintf(stderr, "weights: %s\n", what);
  exit(1);
}

int main(int argc, char **argv) {
  static float x[6] = {1, 1, 1, 1, 1, 1};
  static unsigned char none[NET_WEIGHTS_BYTES];
  float y[2] = {-1, -1}, again[2] = {-1, -1};
  const float *args[2];
  float *results[1];
  net_args in;
  net_results out;
  const tfaot_model_info *info = net_info();
  const tfaot_function_info *entry = info->functions;
  unsigned char *weights = (unsigned char *)malloc(NET_WEIGHTS_BYTES), *workspace;
  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!weights || !file || fread(weights, 1, NET_WEIGHTS_BYTES, file) != NET_WEIGHTS_BYTES || fgetc(file) != EOF) die("file");
  fclose(file);
  workspace = (unsigned char *)aligned_alloc(NET_WORKSPACE_ALIGN, (NET_WORKSPACE_BYTES + 63) / 64 * 64);
  in.x = x;
  out.y = y;
  if (net_weights_check(weights, NET_WEIGHTS_BYTES)) die("its own weights are refused");
  if (net_weights_check(weights, NET_WEIGHTS_BYTES - 1) != TFAOT_E_WEIGHTS) die("a part is taken");
  if (net_weights_check(none, sizeof none) != TFAOT_E_WEIGHTS) die("zeros are taken");
  if (net_weights_check(NULL, NET_WEIGHTS_BYTES) != TFAOT_E_WEIGHTS) die("no weights are taken");
  if (net_run(&in, &out, none, workspace, NULL) != TFAOT_E_WEIGHTS) die("a call takes zeros");
  if (net_run(&in, &out, NULL, workspace, NULL) != TFAOT_E_WEIGHTS) die("a call takes no weights");
  weights[24] ^= 1;
  if (net_run(&in, &out, weights, workspace, NULL) != TFAOT_E_WEIGHTS) die("a call takes another hash");
  weights[24] ^= 1;
  if (y[0] != -1 || y[1] != -1) die("a call that was refused wrote results");
  if (net_run(&in, &out, weights, workspace, NULL)) die("a call fails");
  if (info->abi_version != TFAOT_ABI_VERSION || info->weights_bytes != NET_WEIGHTS_BYTES) die("info");
  if (info->weights_check(weights, info->weights_bytes) || info->init || info->rank_count) die("table");
  args[0] = x;
  results[0] = again;
  if (entry->arg_count != 1 || entry->workspace_bytes != NET_WORKSPACE_BYTES) die("entry");
  if (entry->run(args, results, NULL, NULL, weights, workspace, NULL, NULL)) die("a call by the table fails");
  if (memcmp(y, again, sizeof y)) die("the table has another function");
  printf("%g %g\n", (double)y[0], (double)y[1]);
  free(weights);
  free(workspace);
  return 0;
}
