/* Weights to start with and batches of 32 rows: a function of the step alone, so that each rank can take its rows of them. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

enum { STEPS = 20, BATCH = 32, INPUTS = 12, HIDDEN = 24, OUTPUTS = 3 };

typedef struct weights {
  float loss, w1[INPUTS * HIDDEN], b1[HIDDEN], w2[HIDDEN * OUTPUTS], b2[OUTPUTS];
} weights;

/* A number in [-1, 1). */
static float number(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return (float)(*seed >> 8) / 8388608.0f - 1.0f;
}

static void start(weights *w) {
  uint32_t seed = 1;
  for (int i = 0; i < INPUTS * HIDDEN; i++) w->w1[i] = 0.3f * number(&seed);
  for (int i = 0; i < HIDDEN; i++) w->b1[i] = 0;
  for (int i = 0; i < HIDDEN * OUTPUTS; i++) w->w2[i] = 0.3f * number(&seed);
  for (int i = 0; i < OUTPUTS; i++) w->b2[i] = 0;
}

/* Rows `from` to `from + count` of the batch of a step. */
static void rows(int step, int from, int count, float *x, float *y) {
  for (int i = 0; i < count; i++) {
    uint32_t seed = 7919u * (uint32_t)(step * BATCH + from + i) + 17u;
    for (int k = 0; k < INPUTS; k++) x[i * INPUTS + k] = number(&seed);
    for (int k = 0; k < OUTPUTS; k++) y[i * OUTPUTS + k] = sinf(x[i * INPUTS + k] + 2 * x[i * INPUTS + k + 3]);
  }
}

static void print(const weights *w) {
  printf("loss %.9g\n", w->loss);
  for (int i = 0; i < INPUTS * HIDDEN; i++) printf("%.9g ", w->w1[i]);
  for (int i = 0; i < HIDDEN; i++) printf("%.9g ", w->b1[i]);
  for (int i = 0; i < HIDDEN * OUTPUTS; i++) printf("%.9g ", w->w2[i]);
  for (int i = 0; i < OUTPUTS; i++) printf("%.9g ", w->b2[i]);
  printf("\n");
}
