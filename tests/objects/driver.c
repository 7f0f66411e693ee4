/* Calls one model on files: driver FOLDER reads FOLDER/in.NAME and writes FOLDER/out.NAME for each argument and result.
   Built with -DHEADER="m.h" -DINFO=m_info, and with -DPOOL="tfaot_pool.h" for calls by three threads. C99 and C++17. */
#include HEADER
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef POOL
#include POOL
#endif

static void die(const char *what, const char *which) {
  fprintf(stderr, "driver: %s %s\n", what, which);
  exit(1);
}

/* FOLDER/KIND.NAME with a slash of a TensorFlow name spelt as an underscore. */
static FILE *file_of(const char *folder, const char *kind, const char *name, const char *mode) {
  char path[4096];
  size_t at = (size_t)snprintf(path, sizeof path, "%s/%s.", folder, kind);
  FILE *file;
  for (; *name && at + 1 < sizeof path; ++name) path[at++] = *name == '/' ? '_' : *name;
  path[at] = 0;
  file = fopen(path, mode);
  if (!file) die("can't open", path);
  return file;
}

/* Memory of just this size, so that a sanitizer sees the first byte beyond it. */
static void *memory(size_t bytes) {
  void *p = malloc(bytes ? bytes : 1);
  if (!p) die("no memory", "");
  return p;
}

int main(int argc, char **argv) {
  const tfaot_model_info *model = INFO();
  const tfaot_function_info *info = model->functions;
  static void *pointers[4096];
  void **args = pointers, **results = pointers + info->arg_count;
  char *block, *workspace;
  const tfaot_executor *executor = NULL;
  uint32_t i;
  int status;
#ifdef POOL
  tfaot_pool *pool = tfaot_pool_new(3);
  tfaot_executor threads = tfaot_pool_executor(pool);
  executor = &threads;
#endif
  if (argc != 2 || info->arg_count + info->result_count > 4096 || model->abi_version != TFAOT_ABI_VERSION) die("usage:", argv[0]);
  for (i = 0; i < info->arg_count; ++i) {
    FILE *file = file_of(argv[1], "in", info->args[i].name, "rb");
    args[i] = memory(info->args[i].bytes);
    if (fread(args[i], 1, info->args[i].bytes, file) != info->args[i].bytes) die("too short:", info->args[i].name);
    fclose(file);
  }
  for (i = 0; i < info->result_count; ++i) results[i] = memory(info->results[i].bytes);
  block = (char *)memory(info->workspace_bytes + info->workspace_align);
  workspace = block + (info->workspace_align - (uintptr_t)block % info->workspace_align) % info->workspace_align;
  status = info->run(args, results, NULL, NULL, NULL, workspace, executor, NULL);
  if (status) die("the call failed", "");
  for (i = 0; i < info->result_count; ++i) {
    FILE *file = file_of(argv[1], "out", info->results[i].name, "wb");
    if (fwrite(results[i], 1, info->results[i].bytes, file) != info->results[i].bytes) die("can't write", info->results[i].name);
    fclose(file);
  }
#ifdef M_SELFTEST_BYTES
  {
    char *own = (char *)memory(M_SELFTEST_BYTES + 64);
    if (m_selftest(own + (64 - (uintptr_t)own % 64) % 64)) die("the self-test fails", "");
    free(own);
  }
#endif
  for (i = 0; i < info->arg_count + info->result_count; ++i) free(pointers[i]);
#ifdef POOL
  tfaot_pool_free(pool);
#endif
  free(block);
  return 0;
}
