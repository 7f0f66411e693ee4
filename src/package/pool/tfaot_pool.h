/* A small pool of threads for compiled models: C or C++ by GCC or Clang, POSIX threads, this one file. Optional: any executor will do.
 *
 *   tfaot_pool *pool = tfaot_pool_new(4);              // NULL when memory or threads are lacking
 *   tfaot_executor threads = tfaot_pool_executor(pool); // of NULL: one that runs all on the calling thread
 *   model_run(&args, &results, workspace, &threads);
 *   tfaot_pool_free(pool);
 *
 * Include it after a model's header. The threads serve one call at a time: what else is called meanwhile, by other threads or by
 * the tasks of that call, runs on its own thread alone, with the same results. The child of a fork has no threads of the pool:
 * calls run alone there too, and tfaot_pool_free frees the memory; a task must not fork and return in the child.
 */
#ifndef TFAOT_POOL_H
#define TFAOT_POOL_H

#ifndef TFAOT_POOL_NO_SYSTEM /* defined by who declares what follows of POSIX, and tfaot_relax */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static inline void tfaot_relax(void) {
#if defined(__x86_64__) || defined(__i386__)
  __asm__ volatile("pause");
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}
#endif

/* Looks before a thread sleeps, some 50 us: the next kernel mostly begins before that, and to be woken takes ten. */
#define TFAOT_POOL_LOOKS 4000

/* What one thread does, on a line of its own. */
typedef struct tfaot_pool_line {
  /* The round in the upper half, and how much of this thread's part of that round is taken. Each thread begins with its own part,
   * which is near since the round before, and then helps the others. */
  uint64_t taken;
  /* Of threads but the caller's: twice the round that it was last done with, or that was over before it came; one more while it
   * works. It comes, or the caller tells it that all is over: whoever is first. */
  uint64_t at;
  char apart[112];
} tfaot_pool_line;

/* What one thread is told. */
typedef struct tfaot_pool_place {
  struct tfaot_pool *pool;
  int32_t number;
} tfaot_pool_place;

typedef struct tfaot_pool {
  sem_t begin; /* for those that sleep; unlike a mutex, no thread holds it when another one forks */
  pthread_t *threads;
  tfaot_pool_place *places; /* of each thread */
  tfaot_pool_line *lines;   /* of each thread, the caller's first */
  int32_t count;            /* threads besides the caller's */
  int32_t process;          /* in which they run */
  char apart[128];          /* what changes often lies on lines of its own */
  /* The work, with its round; without task threads end. */
  uint64_t round;
  void (*task)(void *closure, int64_t begin, int64_t end);
  void *closure;
  int64_t total, unit; /* indices, and how many of them are counted as one */
  char apart_too[128];
  int32_t asleep; /* threads that sleep or are about to, and that nobody has woken yet */
  char apart_at_last[128];
  int32_t busy; /* whether a call has the threads */
} tfaot_pool;

/* Where a part begins, in units: what remains goes one each to the first parts. */
static inline uint64_t tfaot_pool_first(uint64_t units, uint64_t parts, uint64_t part) {
  uint64_t more = units % parts;
  return units / parts * part + (part < more ? part : more);
}

/* Takes pieces of all parts, its own first, until none is left. */
static inline void tfaot_pool_work(tfaot_pool *pool, uint64_t round, uint64_t self) {
  const uint64_t parts = (uint64_t)pool->count + 1, tag = round << 32;
  const uint64_t units = ((uint64_t)pool->total + (uint64_t)pool->unit - 1) / (uint64_t)pool->unit;
  uint64_t i;
  for (i = 0; i < parts; i++) {
    const uint64_t part = (self + i) % parts;
    const uint64_t first = tfaot_pool_first(units, parts, part), all = tfaot_pool_first(units, parts, part + 1) - first;
    uint64_t *line = &pool->lines[part].taken;
    uint64_t was = __atomic_load_n(line, __ATOMIC_RELAXED);
    if (all == 0 && i == 0) __atomic_store_n(line, tag, __ATOMIC_RELAXED); /* so that rounds may begin again */
    for (;;) {
      /* with another round nobody has been here yet */
      const uint64_t taken = was >> 32 == tag >> 32 ? was & 0xffffffffu : 0, left = all - taken;
      /* most of one's own at first, since kernels go on with what they have of the index before; then half of what is left, so
       * that threads that are done early find something */
      const uint64_t piece = i == 0 && taken == 0 ? left - left / 4 : left - left / 2;
      int64_t begin, end;
      if (taken >= all) break;
      if (!__atomic_compare_exchange_n(line, &was, tag | (taken + piece), 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) continue;
      begin = (int64_t)(first + taken) * pool->unit;
      end = first + taken + piece == units ? pool->total : (int64_t)(first + taken + piece) * pool->unit;
      pool->task(pool->closure, begin, end);
      was = __atomic_load_n(line, __ATOMIC_RELAXED);
    }
  }
}

/* Sleeps until there is another round. A thread counts itself among those asleep before it looks for the last time, and the
 * caller looks at that count after it began a round, so that one sees the other. */
static inline void tfaot_pool_sleep(tfaot_pool *pool, uint64_t seen) {
  int32_t asleep = __atomic_add_fetch(&pool->asleep, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool->round, __ATOMIC_SEQ_CST) != seen) {
    while (asleep > 0)
      if (__atomic_compare_exchange_n(&pool->asleep, &asleep, asleep - 1, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
  }
  while (sem_wait(&pool->begin) != 0) continue; /* a signal came */
}

static inline void *tfaot_pool_thread(void *place) {
  tfaot_pool *pool = ((tfaot_pool_place *)place)->pool;
  const int32_t self = ((tfaot_pool_place *)place)->number;
  uint64_t *at = &pool->lines[self].at, seen = 0;
  for (;;) {
    int looks;
    uint64_t was;
    for (looks = 0; looks < TFAOT_POOL_LOOKS && __atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) == seen; looks++) tfaot_relax();
    while (__atomic_load_n(&pool->round, __ATOMIC_ACQUIRE) == seen) tfaot_pool_sleep(pool, seen);
    seen = __atomic_load_n(&pool->round, __ATOMIC_ACQUIRE);
    was = __atomic_load_n(at, __ATOMIC_RELAXED);
    if (was >= 2 * seen) continue;
    if (!__atomic_compare_exchange_n(at, &was, 2 * seen + 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) continue;
    /* the caller waits from here on, so that the work is that of this round */
    if (!pool->task) return NULL;
    tfaot_pool_work(pool, seen, (uint64_t)self);
    __atomic_store_n(at, 2 * seen, __ATOMIC_RELEASE);
  }
}

static inline uint64_t tfaot_pool_announce(tfaot_pool *pool) {
  const uint64_t round = __atomic_load_n(&pool->round, __ATOMIC_RELAXED) + 1;
  __atomic_store_n(&pool->round, round, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool->asleep, __ATOMIC_SEQ_CST) > 0) {
    int32_t asleep = __atomic_exchange_n(&pool->asleep, 0, __ATOMIC_SEQ_CST);
    for (; asleep > 0; asleep--) sem_post(&pool->begin);
  }
  return round;
}

/* Waits for a thread that came to a round, and keeps one that did not come from coming. */
static inline void tfaot_pool_end_round(tfaot_pool_line *line, uint64_t round) {
  uint64_t was = __atomic_load_n(&line->at, __ATOMIC_ACQUIRE);
  int looks = 0;
  if (was < 2 * round && __atomic_compare_exchange_n(&line->at, &was, 2 * round, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
    /* what it would have done, so that rounds may begin again; only a part of nothing has another round still */
    if (__atomic_load_n(&line->taken, __ATOMIC_RELAXED) >> 32 != (round & 0xffffffffu))
      __atomic_store_n(&line->taken, round << 32, __ATOMIC_RELAXED);
    return;
  }
  while (__atomic_load_n(&line->at, __ATOMIC_ACQUIRE) != 2 * round) {
    if (looks++ < TFAOT_POOL_LOOKS) tfaot_relax();
    else sched_yield();
  }
}

static inline void tfaot_pool_parallel_for(void *self, int64_t n, void (*task)(void *closure, int64_t begin, int64_t end),
                                           void *closure) {
  tfaot_pool *pool = (tfaot_pool *)self;
  uint64_t round;
  int32_t i;
  if (!pool || pool->count == 0 || n < 2 || __atomic_load_n(&pool->busy, __ATOMIC_RELAXED) ||
      __atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE)) {
    if (n > 0) task(closure, 0, n);
    return;
  }
  pool->task = task;
  pool->closure = closure;
  pool->total = n;
  pool->unit = (n >> 31) + 1;
  round = tfaot_pool_announce(pool);
  tfaot_pool_work(pool, round, 0);
  for (i = 1; i <= pool->count; i++) tfaot_pool_end_round(&pool->lines[i], round);
  __atomic_store_n(&pool->busy, 0, __ATOMIC_RELEASE);
}

/* Ends the threads, when no call has them; NULL is ignored. */
static inline void tfaot_pool_free(tfaot_pool *pool) {
  int32_t i;
  if (!pool) return;
  if (pool->count > 0 && pool->process == (int32_t)getpid()) {
    pool->task = NULL;
    tfaot_pool_announce(pool);
    for (i = 0; i < pool->count; i++) pthread_join(pool->threads[i], NULL);
  }
  sem_destroy(&pool->begin);
  free(pool->threads);
  free(pool->places);
  free(pool->lines);
  free(pool);
}

/* A pool of num_threads threads, the caller's among them; NULL where the system has no memory for it or starts fewer. */
static inline tfaot_pool *tfaot_pool_new(int32_t num_threads) {
  tfaot_pool *pool = (tfaot_pool *)calloc(1, sizeof *pool);
  int32_t wanted = num_threads > 1 ? num_threads - 1 : 0, made;
  if (!pool) return NULL;
  if (sem_init(&pool->begin, 0, 0) != 0) {
    free(pool);
    return NULL;
  }
  pool->process = (int32_t)getpid();
  pool->threads = (pthread_t *)calloc((size_t)wanted + 1, sizeof *pool->threads);
  pool->places = (tfaot_pool_place *)calloc((size_t)wanted + 1, sizeof *pool->places);
  pool->lines = (tfaot_pool_line *)calloc((size_t)wanted + 1, sizeof *pool->lines);
  made = pool->threads && pool->places && pool->lines;
  while (made && pool->count < wanted) {
    tfaot_pool_place *place = &pool->places[pool->count];
    place->pool = pool;
    place->number = pool->count + 1;
    if (pthread_create(&pool->threads[pool->count], NULL, tfaot_pool_thread, place) != 0) break;
    pool->count++;
  }
  if (made && pool->count == wanted) return pool;
  tfaot_pool_free(pool);
  return NULL;
}

/* What to hand to a model; it points at the pool. */
static inline tfaot_executor tfaot_pool_executor(tfaot_pool *pool) {
  tfaot_executor executor;
  executor.self = pool;
  executor.num_threads = pool ? pool->count + 1 : 1;
  executor.parallel_for = tfaot_pool_parallel_for;
  return executor;
}

#endif /* TFAOT_POOL_H */
