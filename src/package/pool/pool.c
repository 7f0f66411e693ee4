// The pool of tfaot_pool.h as LLVM's text, pool.ll beside this (`tools/make_glue`): libraries of clusters have it linked in, and
// tfaot itself loads it for `run`, `bench` and `verify`, where no C compiler may be. The text is for every system with POSIX
// threads, so that no header is included whose types differ between them: objects of the system are given more room than any
// wants.
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))

typedef struct { _Alignas(16) char bytes[128]; } sem_t;
typedef void *pthread_t;
extern void *calloc(size_t, size_t);
extern void free(void *);
extern int getpid(void);
extern int pthread_create(pthread_t *, const void *attributes, void *(*)(void *), void *);
extern int pthread_join(pthread_t, void **);
extern int sched_yield(void);
extern int sem_init(sem_t *, int shared, unsigned value);
extern int sem_post(sem_t *);
extern int sem_wait(sem_t *);
extern int sem_destroy(sem_t *);
HIDDEN void tfaot_relax(void); // the processor's instruction for loops that wait; tfaot writes it

// The executor of compiled code, as the headers that tfaot writes declare it.
typedef struct tfaot_executor {
  void *self;
  int32_t num_threads;
  void (*parallel_for)(void *self, int64_t n, void (*task)(void *closure, int64_t begin, int64_t end), void *closure);
} tfaot_executor;

#define TFAOT_POOL_NO_SYSTEM
#include "tfaot_pool.h"

HIDDEN tfaot_pool *tfaot_pool_start(int32_t num_threads) { return tfaot_pool_new(num_threads); }

HIDDEN void tfaot_pool_end(tfaot_pool *pool) { tfaot_pool_free(pool); }

HIDDEN void tfaot_pool_share(tfaot_pool *pool, int64_t n, void (*task)(void *closure, int64_t begin, int64_t end),
                             void *closure) {
  tfaot_pool_parallel_for(pool, n, task, closure);
}
