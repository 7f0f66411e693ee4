/* The function that softmax.mlir calls. layer.h, which tfaot writes, has its prototype. */
#include "layer.h"

#include <math.h>
#include <string.h>

/* Along the last axis of a matrix; what is handed on must say so. */
int softmax(const float *x0, float *y0, const tfaot_call *call) {
  const tfaot_tensor_info *x = call->args;
  if (strcmp(call->opaque, "axis=1") != 0 || x->rank != 2) return 1;
  for (int64_t row = 0; row < x->dims[0]; row++) {
    const float *in = x0 + row * x->dims[1];
    float *out = y0 + row * x->dims[1];
    float most = in[0], sum = 0;
    for (int64_t i = 1; i < x->dims[1]; i++) most = fmaxf(most, in[i]);
    for (int64_t i = 0; i < x->dims[1]; i++) sum += out[i] = expf(in[i] - most);
    for (int64_t i = 0; i < x->dims[1]; i++) out[i] /= sum;
  }
  return 0;
}
