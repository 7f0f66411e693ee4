/* A small pool of threads for compiled models: C11 and POSIX threads, this one file. Optional: any executor will do.
 *
 *   tfaot_pool *pool = tfaot_pool_new(4);              // NULL when memory or threads are lacking
 *   tfaot_executor threads = tfaot_pool_executor(pool);
 *   model_run(&args, &results, workspace, &threads);
 *   tfaot_pool_free(pool);
 *
 * Include it after a model's header. A pool serves one call at a time: give each caller its own.
 */
#ifndef TFAOT_POOL_H
#define TFAOT_POOL_H

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct tfaot_pool {
  pthread_mutex_t lock;
  pthread_cond_t begin, end; /* work was given; all of it is done */
  pthread_t *threads;
  int32_t count;    /* threads besides the caller's */
  int32_t busy;     /* threads that have not seen the end of the work */
  uint64_t round;   /* pieces of work given so far */
  int stop;
  int64_t next, total; /* under the lock */
  void (*task)(void *closure, int64_t begin, int64_t end);
  void *closure;
} tfaot_pool;

/* Takes one index after another until none is left; the lock is held on entry and on return. */
static void tfaot_pool_work(tfaot_pool *pool) {
  while (pool->next < pool->total) {
    int64_t i = pool->next++;
    pthread_mutex_unlock(&pool->lock);
    pool->task(pool->closure, i, i + 1);
    pthread_mutex_lock(&pool->lock);
  }
}

static void *tfaot_pool_thread(void *self) {
  tfaot_pool *pool = (tfaot_pool *)self;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (!pool->stop && pool->round == seen) pthread_cond_wait(&pool->begin, &pool->lock);
    if (pool->stop) break;
    seen = pool->round;
    tfaot_pool_work(pool);
    if (--pool->busy == 0) pthread_cond_signal(&pool->end);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

static inline void tfaot_pool_parallel_for(void *self, int64_t n, void (*task)(void *closure, int64_t begin, int64_t end),
                                    void *closure) {
  tfaot_pool *pool = (tfaot_pool *)self;
  pthread_mutex_lock(&pool->lock);
  pool->task = task;
  pool->closure = closure;
  pool->next = 0;
  pool->total = n;
  pool->busy = pool->count;
  pool->round++;
  pthread_cond_broadcast(&pool->begin);
  tfaot_pool_work(pool);
  while (pool->busy > 0) pthread_cond_wait(&pool->end, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

/* Ends the threads; NULL is ignored. */
static inline void tfaot_pool_free(tfaot_pool *pool) {
  int32_t i;
  if (!pool) return;
  pthread_mutex_lock(&pool->lock);
  pool->stop = 1;
  pthread_cond_broadcast(&pool->begin);
  pthread_mutex_unlock(&pool->lock);
  for (i = 0; i < pool->count; i++) pthread_join(pool->threads[i], NULL);
  pthread_cond_destroy(&pool->begin);
  pthread_cond_destroy(&pool->end);
  pthread_mutex_destroy(&pool->lock);
  free(pool->threads);
  free(pool);
}

/* A pool of num_threads threads, the caller's among them. */
static inline tfaot_pool *tfaot_pool_new(int32_t num_threads) {
  tfaot_pool *pool = (tfaot_pool *)calloc(1, sizeof *pool);
  int32_t wanted = num_threads > 1 ? num_threads - 1 : 0;
  if (!pool) return NULL;
  pool->threads = (pthread_t *)calloc((size_t)wanted + 1, sizeof *pool->threads);
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->begin, NULL);
  pthread_cond_init(&pool->end, NULL);
  while (pool->threads && pool->count < wanted) {
    if (pthread_create(&pool->threads[pool->count], NULL, tfaot_pool_thread, pool) != 0) break;
    pool->count++;
  }
  if (pool->count == wanted && pool->threads) return pool;
  tfaot_pool_free(pool);
  return NULL;
}

/* What to hand to a model; it points at the pool. */
static inline tfaot_executor tfaot_pool_executor(tfaot_pool *pool) {
  tfaot_executor executor;
  executor.self = pool;
  executor.num_threads = pool->count + 1;
  executor.parallel_for = tfaot_pool_parallel_for;
  return executor;
}

#endif /* TFAOT_POOL_H */
