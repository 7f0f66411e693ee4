/* A layer that is trained: MODEL.h with the functions train and predict. state FOLDER N writes FOLDER/state and FOLDER/y behind N
   steps on FOLDER/x and FOLDER/t. Checks on the way what the header says of init, info, and calls that fail. C99 and C++17. */
#include "m.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef THREADS
#include <pthread.h>
#endif

static void die(const char *what) {
  fprintf(stderr, "state: %s\n", what);
  exit(1);
}

static void read_file(const char *folder, const char *name, void *to, size_t bytes) {
  char path[4096];
  FILE *file;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  file = fopen(path, "rb");
  if (!file || fread(to, 1, bytes, file) != bytes) die(path);
  fclose(file);
}

static void write_file(const char *folder, const char *name, const void *from, size_t bytes) {
  char path[4096];
  FILE *file;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  file = fopen(path, "wb");
  if (!file || fwrite(from, 1, bytes, file) != bytes) die(path);
  fclose(file);
}

#define N_X (M_X_BYTES / sizeof(float))
#define N_Y (M_Y_BYTES / sizeof(float))
static float x[N_X], t[N_Y], y[2][N_Y];
static m_state *state;
static char *workspace[2];

#ifdef THREADS
static void *reader(void *which) {
  int i, n = which != NULL;
  for (i = 0; i < 100; ++i) {
    const m_predict_args args = {x};
    const m_predict_results results = {y[n]};
    if (m_predict(&args, &results, state, workspace[n], NULL)) die("a reader failed");
  }
  return NULL;
}
#endif

int main(int argc, char **argv) {
  const tfaot_model_info *info = m_info();
  const tfaot_function_info *train = NULL, *predict = NULL;
  m_state *again;
  float loss, loss_again;
  int i, n;
  uint32_t e;
  if (argc != 3) die("usage");
  n = atoi(argv[2]);
  if (info->abi_version != TFAOT_ABI_VERSION || info->function_count != 2 || info->state_bytes != sizeof(m_state)) die("info");
  for (e = 0; e < info->function_count; ++e) {
    if (!strcmp(info->functions[e].name, "train")) train = &info->functions[e];
    if (!strcmp(info->functions[e].name, "predict")) predict = &info->functions[e];
  }
  if (!train || !predict || !train->changes_state || predict->changes_state || train->sizes) die("functions");
  if (train->workspace_bytes != M_TRAIN_WORKSPACE_BYTES || M_WORKSPACE_BYTES < M_TRAIN_WORKSPACE_BYTES) die("sizes");
  state = (m_state *)malloc(sizeof *state);
  again = (m_state *)malloc(sizeof *again);
  for (i = 0; i < 2; ++i) workspace[i] = (char *)malloc(M_WORKSPACE_BYTES + M_WORKSPACE_ALIGN);
  memset(state, 0xff, sizeof *state);
  memset(again, 0xff, sizeof *again);
  if (m_init(state) || info->init(again, NULL)) die("init failed");
  if (memcmp(state, again, sizeof *state)) die("init");
  for (e = 0; e < info->variable_count; ++e) {
    if (info->variables[e].offset + info->variables[e].tensor.bytes > sizeof *state) die("a variable outside");
  }
  read_file(argv[1], "x", x, sizeof x);
  read_file(argv[1], "t", t, sizeof t);
  for (i = 0; i < n; ++i) {
    const m_train_args args = {x, t};
    const m_train_results results = {&loss};
    const void *pointers[2];
    void *outputs[1];
    if (m_train(&args, &results, state, workspace[0], NULL)) die("a call failed");
    pointers[0] = x;
    pointers[1] = t;
    outputs[0] = &loss_again;
    if (train->run(pointers, outputs, NULL, again, NULL, workspace[1], NULL, NULL)) die("a generic call failed");
    if (memcmp(&loss, &loss_again, sizeof loss)) die("the generic call differs");
  }
  if (memcmp(state, again, sizeof *state)) die("two states differ behind the same calls");
#ifdef THREADS
  {
    pthread_t other;
    if (pthread_create(&other, NULL, reader, y)) die("no thread");
    reader(NULL);
    pthread_join(other, NULL);
    if (memcmp(y[0], y[1], sizeof y[0])) die("two readers differ");
  }
#endif
  {
    const m_predict_args args = {x};
    const m_predict_results results = {y[0]};
    if (m_predict(&args, &results, state, workspace[0], NULL)) die("predict failed");
  }
  if (memcmp(state, again, sizeof *state)) die("predict changed the state");
  write_file(argv[1], "state", state, sizeof *state);
  write_file(argv[1], "y", y[0], sizeof y[0]);
  for (i = 0; i < 2; ++i) free(workspace[i]);
  free(state);
  free(again);
  return 0;
}
