/* Calls each function of a model once and writes its results: judge_portable RESULTS [WEIGHTS], linked with an object or C source
 * that was compiled under the name `m`. Built by tools/judge_portable beside the header m.h that `tfaot compile` wrote. */
#include "m.h"
#include "random_arguments.h"
#include <stdio.h>
#include <stdlib.h>

#define ALIGNMENT 4096

static void *memory(size_t bytes) {
  char *p = malloc(bytes + 2 * ALIGNMENT);
  if (!p) exit(3);
  memset(p, 0, bytes + 2 * ALIGNMENT);
  return p + ALIGNMENT - (size_t)((uintptr_t)p % ALIGNMENT);
}

static void *read_file(const char *path, size_t bytes) {
  void *p = memory(bytes);
  FILE *f = fopen(path, "rb");
  if (!f || fread(p, 1, bytes, f) != bytes || fclose(f)) exit(4);
  return p;
}

int main(int argc, char **argv) {
  const tfaot_model_info *info = m_info();
  void *weights = NULL, *state;
  uint32_t i, j;
  FILE *to = argc > 1 ? fopen(argv[1], "wb") : NULL;
  if (!to || (info->weights_bytes && argc < 3)) return 2;
  if (info->weights_bytes) weights = read_file(argv[2], info->weights_bytes);
  state = memory(info->state_bytes);
  if (info->init) info->init(state, weights);
  for (i = 0; i < info->function_count; i++) {
    const tfaot_function_info *f = &info->functions[i];
    void **args = memory(sizeof(void *) * f->arg_count), **results = memory(sizeof(void *) * f->result_count);
    int64_t *sizes = memory(sizeof(int64_t) * f->size_count);
    int code;
    for (j = 0; j < f->arg_count; j++) {
      args[j] = memory(f->args[j].bytes);
      fill(args[j], f->args[j].dtype, f->args[j].bytes);
    }
    for (j = 0; j < f->result_count; j++) results[j] = memory(f->results[j].bytes);
    for (j = 0; j < f->size_count; j++) sizes[j] = f->sizes[j].most;
    code = f->run(args, results, sizes, state, weights, memory(f->workspace_bytes), NULL, NULL);
    if (code) {
      fprintf(stderr, "a call returned %d\n", code);
      return 5;
    }
    for (j = 0; j < f->result_count; j++) fwrite(results[j], 1, f->results[j].bytes, to);
    fwrite(sizes, sizeof(int64_t), f->size_count, to);
  }
  return fclose(to) ? 6 : 0;
}
