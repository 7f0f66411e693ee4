/* Trains the classifier on images made here: digits of noise around one pattern a class. Prints the loss now and then, saves the
   state to a file half way, goes on from that file, and says how many of a last batch are right. */
#include <stdio.h>
#include <stdlib.h>

#include "digits.h"

enum { BATCH = 32, STEPS = 200 };

static uint32_t seed = 1;
static float x[BATCH * 64];
static int32_t y[BATCH], class_[BATCH];
static digits_state state;
static _Alignas(DIGITS_WORKSPACE_ALIGN) unsigned char workspace[DIGITS_WORKSPACE_BYTES];

/* A number in [0, 1). */
static float uniform(void) {
  seed = seed * 1664525u + 1013904223u;
  return (float)(seed >> 8) / 16777216.0f;
}

/* The next batch: class c lights every pixel p where p * (2 * c + 1) % 11 is below 4. */
static void next_batch(void) {
  for (int i = 0; i < BATCH; i++) {
    y[i] = (int32_t)(uniform() * 10);
    for (int p = 0; p < 64; p++) x[i * 64 + p] = (p * (2 * y[i] + 1) % 11 < 4 ? 0.6f : 0.0f) + 0.4f * uniform();
  }
}

/* The state is one block without pointers: a file is a copy of it. */
static int through_a_file(const char *path) {
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(&state, sizeof state, 1, file) != 1 || fclose(file)) return -1;
  digits_init(&state);
  file = fopen(path, "rb");
  if (!file || fread(&state, sizeof state, 1, file) != 1 || fclose(file)) return -1;
  return 0;
}

int main(void) {
  float loss, first = 0;
  int32_t right = 0;
  int64_t step = 0;
  digits_init(&state);
  for (int i = 0; i < STEPS; i++) {
    next_batch();
    const digits_train_args args = {.x = x, .y = y};
    const digits_train_results results = {.loss = &loss, .right = &right, .step = &step};
    if (digits_train(&args, &results, &state, workspace, NULL)) return 1;
    if (i == 0) first = loss;
    if (step % 50 == 0) printf("step %d: loss %.4f, %d of %d right\n", (int)step, loss, (int)right, BATCH);
    if (i == STEPS / 2 && through_a_file("digits.state")) return 1;
  }
  next_batch();
  const digits_predict_args args = {.x = x};
  const digits_predict_results results = {.class_ = class_};
  if (digits_predict(&args, &results, &state, workspace, NULL)) return 1;
  int hits = 0;
  for (int i = 0; i < BATCH; i++) hits += class_[i] == y[i];
  printf("%d of %d right\n", hits, BATCH);
  return loss < first / 4 && hits >= 28 && state.steps == STEPS ? 0 : 1;
}
