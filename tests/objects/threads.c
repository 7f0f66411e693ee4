/* Two models in one program, called by eight threads at once with a workspace each, then by one thread through executors of
   several sizes: every answer has the same bytes. Built with -DONE=... -DTWO=... (the models' info functions). */
#include "one.h"
#include "two.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLERS = 8, CALLS = 3 };

static void *memory(size_t bytes) {
  void *p = NULL;
  if (posix_memalign(&p, 64, bytes ? bytes : 64)) abort();
  return p;
}

/* Small numbers that differ from byte to byte of an f32; no other type is fed here. */
static void *argument(const tfaot_tensor_info *info) {
  size_t i, n = info->bytes / sizeof(float);
  float *values = (float *)memory(info->bytes);
  if (info->dtype != 1) abort();
  for (i = 0; i < n; ++i) values[i] = (float)(i * 37 % 101) / 101.0f - 0.4f;
  return values;
}

/* All results of one call, one after the other. */
static char *answer(const tfaot_function_info *info, void *const *args, const tfaot_executor *executor, size_t *bytes) {
  void *results[16], *workspace = memory(info->workspace_bytes);
  char *all;
  size_t at = 0;
  uint32_t i;
  if (info->result_count > 16) abort();
  for (i = 0; i < info->result_count; ++i) results[i] = memory(info->results[i].bytes), at += info->results[i].bytes;
  if (info->run(args, results, NULL, NULL, NULL, workspace, executor, NULL)) abort();
  all = (char *)memory(at);
  *bytes = at;
  for (i = 0, at = 0; i < info->result_count; at += info->results[i].bytes, ++i) {
    memcpy(all + at, results[i], info->results[i].bytes);
    free(results[i]);
  }
  free(workspace);
  return all;
}

typedef struct job { const tfaot_function_info *info; void *args[16]; const char *want; size_t bytes; int wrong; } job;

static void check(job *j, const tfaot_executor *executor) {
  size_t bytes;
  char *got = answer(j->info, j->args, executor, &bytes);
  if (bytes != j->bytes || memcmp(got, j->want, bytes)) j->wrong = 1;
  free(got);
}

static void *caller(void *data) {
  int i;
  for (i = 0; i < CALLS; ++i) check((job *)data, NULL);
  return NULL;
}

/* An executor of the simplest kind: a thread for each share. */
typedef struct share { void (*task)(void *, int64_t, int64_t); void *closure; int64_t begin, end; } share;

static void *work(void *data) {
  share *s = (share *)data;
  if (s->begin < s->end) s->task(s->closure, s->begin, s->end);
  return NULL;
}

static void parallel_for(void *self, int64_t n, void (*task)(void *, int64_t, int64_t), void *closure) {
  int32_t i, threads = *(int32_t *)self;
  pthread_t handles[16];
  share shares[16];
  for (i = 0; i < threads; ++i) {
    shares[i].task = task, shares[i].closure = closure;
    shares[i].begin = n * i / threads, shares[i].end = n * (i + 1) / threads;
    if (pthread_create(&handles[i], NULL, work, &shares[i])) abort();
  }
  for (i = 0; i < threads; ++i) pthread_join(handles[i], NULL);
}

int main(void) {
  const tfaot_function_info *infos[2];
  job jobs[CALLERS];
  pthread_t handles[CALLERS];
  int i, wrong = 0;
  int32_t threads;
  infos[0] = ONE()->functions, infos[1] = TWO()->functions;
  memset(jobs, 0, sizeof jobs);
  for (i = 0; i < CALLERS; ++i) {
    uint32_t a;
    jobs[i].info = infos[i % 2];
    if (jobs[i].info->arg_count > 16) abort();
    for (a = 0; a < jobs[i].info->arg_count; ++a) jobs[i].args[a] = argument(&jobs[i].info->args[a]);
    jobs[i].want = answer(jobs[i].info, jobs[i].args, NULL, &jobs[i].bytes);
  }
  for (i = 0; i < CALLERS; ++i) if (pthread_create(&handles[i], NULL, caller, &jobs[i])) abort();
  for (i = 0; i < CALLERS; ++i) pthread_join(handles[i], NULL);
  for (threads = 1; threads <= 8; ++threads) {
    tfaot_executor executor;
    executor.self = &threads, executor.num_threads = threads, executor.parallel_for = parallel_for;
    for (i = 0; i < 2; ++i) check(&jobs[i], &executor);
  }
  for (i = 0; i < CALLERS; ++i) wrong |= jobs[i].wrong;
  puts(wrong ? "an answer changed" : "the same bytes every time");
  return wrong;
}
