// What a library of clusters needs beside the clusters: it registers their ops and kernels with TensorFlow and calls
// the compiled code. It speaks TensorFlow's C ABI and POSIX and includes no header of either; both are
// found in the process that loads the library. `tools/make_glue` turns this file into glue.ll, which tfaot carries.
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))

// TensorFlow's C ABI (tensorflow/c/{ops,kernels,tf_tensor,tf_status}.h of 2.21).
typedef struct TF_Status TF_Status;
typedef struct TF_Tensor TF_Tensor;
typedef struct TF_OpKernelContext TF_OpKernelContext;
typedef struct TF_OpKernelConstruction TF_OpKernelConstruction;
typedef struct TF_KernelBuilder TF_KernelBuilder;
typedef struct TF_OpDefinitionBuilder TF_OpDefinitionBuilder;
typedef struct TF_ShapeInferenceContext TF_ShapeInferenceContext;
typedef struct TF_ShapeHandle TF_ShapeHandle;
extern TF_Status *TF_NewStatus(void);
extern void TF_DeleteStatus(TF_Status *);
extern void TF_SetStatus(TF_Status *, int32_t code, const char *message);
extern int32_t TF_GetCode(const TF_Status *);
extern const char *TF_Message(const TF_Status *);
extern TF_OpDefinitionBuilder *TF_NewOpDefinitionBuilder(const char *name);
extern void TF_OpDefinitionBuilderAddInput(TF_OpDefinitionBuilder *, const char *spec);
extern void TF_OpDefinitionBuilderAddOutput(TF_OpDefinitionBuilder *, const char *spec);
extern void TF_OpDefinitionBuilderSetShapeInferenceFunction(TF_OpDefinitionBuilder *,
                                                            void (*)(TF_ShapeInferenceContext *, TF_Status *));
extern void TF_RegisterOpDefinition(TF_OpDefinitionBuilder *, TF_Status *);
extern TF_KernelBuilder *TF_NewKernelBuilder(const char *op, const char *device, void *(*create)(TF_OpKernelConstruction *),
                                             void (*compute)(void *, TF_OpKernelContext *), void (*destroy)(void *));
extern void TF_RegisterKernelBuilder(const char *name, TF_KernelBuilder *, TF_Status *);
extern void TF_GetInput(TF_OpKernelContext *, int32_t i, TF_Tensor **, TF_Status *);
extern TF_Tensor *TF_AllocateOutput(TF_OpKernelContext *, int32_t i, int32_t dtype, const int64_t *dims, int32_t rank,
                                    size_t bytes, TF_Status *);
extern void TF_OpKernelContext_Failure(TF_OpKernelContext *, TF_Status *);
extern int32_t TF_NumDims(const TF_Tensor *);
extern int64_t TF_Dim(const TF_Tensor *, int32_t i);
extern void *TF_TensorData(const TF_Tensor *);
extern void TF_DeleteTensor(TF_Tensor *);
extern TF_ShapeHandle *TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext *);
extern TF_ShapeHandle *TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext *, size_t);
extern TF_ShapeHandle *TF_NewShapeHandle(void);
extern void TF_DeleteShapeHandle(TF_ShapeHandle *);
extern void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext *, TF_ShapeHandle *, TF_ShapeHandle *,
                                                      TF_ShapeHandle *, TF_Status *);
extern void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext *, int32_t i, TF_ShapeHandle *, TF_Status *);
extern void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext *, TF_Status *); // of every output

typedef struct { const void *data; size_t length; void (*deallocate)(void *, size_t); } TF_Buffer;
__attribute__((weak)) extern TF_Buffer *TF_GetRegisteredKernelsForOp(const char *op, TF_Status *);
__attribute__((weak)) extern void TF_DeleteBuffer(TF_Buffer *);

enum { INTERNAL = 13, RESOURCE_EXHAUSTED = 8 };

// POSIX. Mutexes are given more room than any system wants.
typedef struct { _Alignas(16) char bytes[128]; } Opaque;
extern int posix_memalign(void **, size_t align, size_t bytes);
extern void *malloc(size_t);
extern void free(void *);
extern void *memcpy(void *, const void *, size_t);
extern int memcmp(const void *, const void *, size_t);
extern size_t strlen(const char *);
extern long write(int file, const void *, size_t);
extern int pthread_mutex_init(Opaque *, const void *);
extern int pthread_mutex_lock(Opaque *);
extern int pthread_mutex_unlock(Opaque *);
__attribute__((weak)) extern int sched_getaffinity(int, size_t, void *); // Linux

// The executor of compiled code, as the headers that tfaot writes declare it.
typedef void (*Task)(void *closure, int64_t begin, int64_t end);
typedef struct {
  void *self;
  int32_t threads;
  void (*parallel_for)(void *self, int64_t n, Task, void *closure);
} Executor;

// The table of clusters, which tfaot writes beside this. A size is one that varies from call to call: those that the shapes of
// arguments say come first, those that the call itself says behind them.
typedef struct { int64_t least, most; } Size;
typedef struct {
  const char *spec;           // for TensorFlow's op definition: "a0: float"
  const int64_t *dims;        // the largest where they vary
  const int32_t *axes;        // for each dimension the number of its size, -1 where it is fixed; NULL: all are
  const void *value;          // what an argument must hold that the code was compiled for; NULL: anything
  const int32_t *value_sizes; // for each element of the value the number of the size that it is, -1: none; NULL: none is one
  uint64_t bytes;             // for these dims
  uint32_t align;             // of one element: its bytes
  int32_t dtype, rank;
} Tensor;
typedef struct Cluster {
  const char *op, *fits;
  const Tensor *args, *results;
  void *(*create)(TF_OpKernelConstruction *); // gives this cluster
  void (*shapes)(TF_ShapeInferenceContext *, TF_Status *);
  void *run; // Run, or RunSized where there are sizes
  int32_t (*supported)(void);
  const Size *sizes;
  int32_t arg_count, result_count, size_count, given_count;
  int32_t by_rows; // whether calls beyond the bound may be done in pieces: the one size is the first dimension of what varies
} Cluster;
typedef int32_t (*Run)(const void *args, const void *results, void *workspace, const Executor *);
typedef int32_t (*RunSized)(const void *args, const void *results, int64_t *sizes, void *workspace, const Executor *);
HIDDEN extern const Cluster *const tfaot_clusters[];
HIDDEN extern const int64_t tfaot_cluster_count, tfaot_workspace_bytes, tfaot_threads;

// src/package/pool/pool.c
typedef struct tfaot_pool tfaot_pool;
HIDDEN tfaot_pool *tfaot_pool_start(int32_t num_threads); // NULL where the system has not so many
HIDDEN void tfaot_pool_share(tfaot_pool *, int64_t n, Task task, void *closure);

// --- Threads: one pool for all clusters of the library, started when the first has work for it. A call that finds it taken, by
// another or by the one that starts it, runs alone; so does one in the child of a fork.
static _Atomic(tfaot_pool *) pool;
static atomic_int pool_is_asked_for;

static int32_t processors(void) {
  uint64_t mask[16] = {0};
  int32_t n = 0;
  if (sched_getaffinity && sched_getaffinity(0, sizeof mask, mask) == 0)
    for (int i = 0; i < 16; i++)
      for (uint64_t m = mask[i]; m; m &= m - 1) n++;
  return n > 0 ? n : 1;
}

// The pool; NULL while another call starts it, and where there are no threads to be had. Where the system has fewer than
// wanted, half as many are tried.
static tfaot_pool *threads(void) {
  tfaot_pool *made = atomic_load_explicit(&pool, memory_order_acquire);
  if (made || atomic_load_explicit(&pool_is_asked_for, memory_order_relaxed) || atomic_exchange(&pool_is_asked_for, 1)) return made;
  for (int32_t n = tfaot_threads > 0 ? (int32_t)tfaot_threads : processors(); n > 1 && !made; n /= 2) made = tfaot_pool_start(n);
  atomic_store_explicit(&pool, made, memory_order_release);
  return made;
}

static void parallel_for(void *self, int64_t n, Task task, void *closure) {
  (void)self;
  tfaot_pool_share(n > 1 ? threads() : NULL, n, task, closure);
}

static const Executor executor = {NULL, 0, parallel_for};

// --- Workspaces: as many as calls were ever under way at once, each large enough for every cluster, kept warm.
typedef struct Workspace { struct Workspace *next; } Workspace;
static Opaque workspace_mutex;
static Workspace *workspaces;

static void *take_workspace(void) {
  pthread_mutex_lock(&workspace_mutex);
  Workspace *found = workspaces;
  if (found) workspaces = found->next;
  pthread_mutex_unlock(&workspace_mutex);
  void *made = found;
  if (!made && posix_memalign(&made, 4096, (size_t)tfaot_workspace_bytes) != 0) return NULL;
  return made;
}

static void give_workspace(Workspace *done) {
  pthread_mutex_lock(&workspace_mutex);
  done->next = workspaces;
  workspaces = done;
  pthread_mutex_unlock(&workspace_mutex);
}

// --- Kernels.

// Whether a dimension is as the code has it. A size is what the first dimension says that has it; it is -1 before.
static int dim_fits(const Cluster *c, const Tensor *want, int32_t i, int64_t got, int64_t *sizes) {
  int32_t size = want->axes ? want->axes[i] : -1;
  if (size < 0) return got == want->dims[i];
  if (sizes[size] < 0) sizes[size] = got;
  return got == sizes[size] && got >= c->sizes[size].least && (c->by_rows || got <= c->sizes[size].most);
}

static int shape_fits(const Cluster *c, const Tensor *want, const TF_Tensor *got, int64_t *sizes) {
  if (TF_NumDims(got) != want->rank) return 0;
  for (int32_t i = 0; i < want->rank; i++)
    if (!dim_fits(c, want, i, TF_Dim(got, i), sizes)) return 0;
  return 1;
}

static int value_fits(const Tensor *want, const char *got, const int64_t *sizes) {
  if (!want->value || want->bytes == 0) return 1;
  if (!want->value_sizes) return memcmp(want->value, got, want->bytes) == 0;
  for (uint64_t i = 0; i < want->bytes / want->align; i++) {
    int64_t number = 0, other = 0;
    int32_t small = 0, small_other = 0;
    const char *mine = (const char *)want->value + i * want->align, *its = got + i * want->align;
    if (want->align == 8) memcpy(&number, mine, 8), memcpy(&other, its, 8);
    else memcpy(&small, mine, 4), memcpy(&small_other, its, 4), number = small, other = small_other;
    if (other != (want->value_sizes[i] < 0 ? number : sizes[want->value_sizes[i]])) return 0;
  }
  return 1;
}

// Whether the code can take the arguments; `sizes` become what they say.
static int fits(const Cluster *c, TF_Tensor *const *args, int64_t *sizes) {
  for (int32_t i = 0; i < c->size_count; i++) sizes[i] = -1;
  for (int32_t i = 0; i < c->arg_count; i++)
    if (!shape_fits(c, &c->args[i], args[i], sizes)) return 0;
  for (int32_t i = 0; i < c->given_count; i++)
    if (sizes[i] < 0) return 0;
  for (int32_t i = 0; i < c->arg_count; i++)
    if (!value_fits(&c->args[i], TF_TensorData(args[i]), sizes)) return 0;
  return 1;
}

static void take(const Cluster *c, TF_OpKernelContext *ctx, TF_Tensor **args, TF_Status *status) {
  for (int32_t i = 0; i < c->arg_count && TF_GetCode(status) == 0; i++) TF_GetInput(ctx, i, &args[i], status);
}

static void give_back(TF_Tensor **tensors, int32_t count) {
  for (int32_t i = 0; i < count; i++)
    if (tensors[i]) TF_DeleteTensor(tensors[i]);
}

static void fits_compute(void *state, TF_OpKernelContext *ctx) {
  const Cluster *c = state;
  TF_Status *status = TF_NewStatus();
  TF_Tensor *args[c->arg_count + 1], *out = NULL;
  int64_t sizes[c->size_count + 1];
  for (int32_t i = 0; i < c->arg_count; i++) args[i] = NULL;
  int yes = c->supported() != 0;
  if (yes) take(c, ctx, args, status);
  if (TF_GetCode(status) == 0) {
    yes = yes && fits(c, args, sizes);
    out = TF_AllocateOutput(ctx, 0, 10 /* bool */, NULL, 0, 1, status);
  }
  if (TF_GetCode(status) == 0) *(char *)TF_TensorData(out) = (char)yes;
  else TF_OpKernelContext_Failure(ctx, status);
  if (out) TF_DeleteTensor(out);
  give_back(args, c->arg_count);
  TF_DeleteStatus(status);
}

// What one call holds.
typedef struct {
  TF_Tensor **held;   // arguments, then results
  const void **args;  // of those that the code takes
  void **results;
  void **copies;      // of arguments that were not aligned, then results that are as large as the call says; NULL for all others
  int64_t *sizes;
  void *workspace;
} Call;

// The bytes of a tensor for the sizes of a call; its dimensions go to `dims`.
static size_t dims_of(const Tensor *t, const int64_t *sizes, int64_t *dims) {
  uint64_t bytes = t->align;
  for (int32_t i = 0; i < t->rank; i++) {
    int32_t size = t->axes ? t->axes[i] : -1;
    dims[i] = size < 0 ? t->dims[i] : sizes[size];
    bytes *= (uint64_t)dims[i];
  }
  return (size_t)bytes;
}

// Whether the call says how large a result is.
static int is_found(const Cluster *c, const Tensor *r) {
  for (int32_t i = 0; r->axes && i < r->rank; i++)
    if (r->axes[i] >= c->given_count) return 1;
  return 0;
}

static const void *aligned(const Tensor *want, const void *data, Call *call, int32_t i, TF_Status *status) {
  if (((uintptr_t)data & (want->align - 1)) == 0) return data;
  int64_t dims[want->rank + 1];
  size_t bytes = dims_of(want, call->sizes, dims);
  void *copy = call->copies[i] = malloc(bytes);
  if (!copy) TF_SetStatus(status, RESOURCE_EXHAUSTED, "tfaot: no memory for an argument");
  return copy ? memcpy(copy, data, bytes) : NULL;
}

static TF_Tensor *allocated(const Tensor *r, TF_OpKernelContext *ctx, int32_t i, const int64_t *sizes, TF_Status *status) {
  int64_t dims[r->rank + 1];
  size_t bytes = dims_of(r, sizes, dims);
  return TF_AllocateOutput(ctx, i, r->dtype, dims, r->rank, bytes, status);
}

static void hold_results(const Cluster *c, TF_OpKernelContext *ctx, Call *call, TF_Status *status) {
  for (int32_t i = 0; i < c->result_count; i++) {
    const Tensor *r = &c->results[i];
    if (is_found(c, r)) {
      call->results[i] = call->copies[c->arg_count + i] = malloc((size_t)r->bytes + 1);
      if (!call->results[i]) return TF_SetStatus(status, RESOURCE_EXHAUSTED, "tfaot: no memory for a result");
      continue;
    }
    TF_Tensor *out = allocated(r, ctx, i, call->sizes, status);
    if (TF_GetCode(status) != 0) return;
    call->held[c->arg_count + i] = out;
    call->results[i] = TF_TensorData(out);
  }
}

// Hands over results of which the call has said how large they are.
static void hand_over(const Cluster *c, TF_OpKernelContext *ctx, Call *call, TF_Status *status) {
  for (int32_t i = 0; i < c->result_count; i++) {
    const void *made = call->copies[c->arg_count + i];
    if (!made) continue;
    TF_Tensor *out = allocated(&c->results[i], ctx, i, call->sizes, status);
    if (TF_GetCode(status) != 0) return;
    call->held[c->arg_count + i] = out;
    int64_t dims[c->results[i].rank + 1];
    memcpy(TF_TensorData(out), made, dims_of(&c->results[i], call->sizes, dims));
  }
}

// The bytes of one row of a tensor; 0 where it has none.
static size_t row_bytes(const Tensor *t) {
  if (!t->axes || t->dims[0] == 0) return 0;
  return (size_t)(t->bytes / (uint64_t)t->dims[0]);
}

// Calls the code for as many rows at a time as it takes. Of arguments and results `args` and `results` are moved on.
static int32_t run_pieces(const Cluster *c, Call *call) {
  int64_t left = call->sizes[0], piece = left;
  int32_t code = 0;
  do {
    int64_t sizes[1] = {piece = left < c->sizes[0].most ? left : c->sizes[0].most};
    code = ((RunSized)c->run)(call->args, call->results, sizes, call->workspace, &executor);
    for (int32_t i = 0, taken = 0; i < c->arg_count; i++)
      if (!c->args[i].value) call->args[taken] = (const char *)call->args[taken] + row_bytes(&c->args[i]) * (size_t)piece, taken++;
    for (int32_t i = 0; i < c->result_count; i++)
      call->results[i] = (char *)call->results[i] + row_bytes(&c->results[i]) * (size_t)piece;
    left -= piece;
  } while (code == 0 && left > 0);
  return code;
}

static int32_t run_code(const Cluster *c, Call *call) {
  if (c->size_count == 0) return ((Run)c->run)(call->args, call->results, call->workspace, &executor);
  if (c->by_rows) return run_pieces(c, call);
  return ((RunSized)c->run)(call->args, call->results, call->sizes, call->workspace, &executor);
}

static void run(const Cluster *c, TF_OpKernelContext *ctx, Call *call, TF_Status *status) {
  take(c, ctx, call->held, status);
  if (TF_GetCode(status) != 0) return;
  if (!fits(c, call->held, call->sizes))
    return TF_SetStatus(status, INTERNAL, "tfaot: the cluster was compiled for another shape or value of an argument");
  for (int32_t i = 0, taken = 0; i < c->arg_count; i++) {
    if (c->args[i].value) continue;
    call->args[taken++] = aligned(&c->args[i], TF_TensorData(call->held[i]), call, i, status);
    if (TF_GetCode(status) != 0) return;
  }
  hold_results(c, ctx, call, status);
  if (TF_GetCode(status) != 0) return;
  call->workspace = take_workspace();
  if (!call->workspace) return TF_SetStatus(status, RESOURCE_EXHAUSTED, "tfaot: no memory for the workspace of a cluster");
  int32_t code = run_code(c, call);
  if (code == 1) return TF_SetStatus(status, INTERNAL, "tfaot: this processor lacks instructions that the cluster was compiled for");
  if (code != 0) return TF_SetStatus(status, INTERNAL, "tfaot: a size is outside of what the cluster was compiled for");
  hand_over(c, ctx, call, status);
}

static void compute(void *state, TF_OpKernelContext *ctx) {
  const Cluster *c = state;
  int32_t args = c->arg_count, all = args + c->result_count;
  TF_Tensor *held[all + 1];
  const void *inputs[args + 1];
  void *outputs[c->result_count + 1], *copies[all + 1];
  int64_t sizes[c->size_count + 1];
  for (int32_t i = 0; i <= all; i++) held[i] = NULL, copies[i] = NULL;
  Call call = {held, inputs, outputs, copies, sizes, NULL};
  TF_Status *status = TF_NewStatus();
  run(c, ctx, &call, status);
  if (TF_GetCode(status) != 0) TF_OpKernelContext_Failure(ctx, status);
  if (call.workspace) give_workspace(call.workspace);
  for (int32_t i = 0; i < all; i++) free(copies[i]);
  give_back(held, all);
  TF_DeleteStatus(status);
}

static void destroy(void *state) { (void)state; }

// --- Registration.
static void set_shape(TF_ShapeInferenceContext *ctx, int32_t i, const Tensor *r, TF_Status *status) {
  TF_ShapeHandle *whole = TF_ShapeInferenceContextScalar(ctx);
  for (int32_t d = 0; d < r->rank && TF_GetCode(status) == 0; d++) {
    TF_ShapeHandle *more = TF_ShapeInferenceContextVectorFromSize(ctx, (size_t)r->dims[d]), *both = TF_NewShapeHandle();
    TF_ShapeInferenceContextConcatenateShapes(ctx, whole, more, both, status);
    TF_DeleteShapeHandle(whole);
    TF_DeleteShapeHandle(more);
    whole = both;
  }
  if (TF_GetCode(status) == 0) TF_ShapeInferenceContextSetOutput(ctx, i, whole, status);
  TF_DeleteShapeHandle(whole);
}

// The shape function of a cluster; what TensorFlow calls has no state, so tfaot writes one function for each. The C ABI has no
// shapes that are known in part.
HIDDEN void tfaot_set_shapes(const Cluster *c, TF_ShapeInferenceContext *ctx, TF_Status *status) {
  TF_ShapeInferenceContextSetUnknownShape(ctx, status);
  for (int32_t i = 0; i < c->result_count && TF_GetCode(status) == 0; i++)
    if (!c->results[i].axes) set_shape(ctx, i, &c->results[i], status);
}

static void scalar_shape(TF_ShapeInferenceContext *ctx, TF_Status *status) {
  const Tensor scalar = {NULL, NULL, NULL, NULL, NULL, 1, 1, 10, 0};
  set_shape(ctx, 0, &scalar, status);
}

// Whether a copy of this library, under another name, was loaded before: two kernels of one op are none to TensorFlow.
static int has_kernel(const char *op, TF_Status *status) {
  if (!TF_GetRegisteredKernelsForOp || !TF_DeleteBuffer) return 0;
  TF_Buffer *kernels = TF_GetRegisteredKernelsForOp(op, status);
  if (!kernels) return 0;
  int any = kernels->length > 0;
  TF_DeleteBuffer(kernels);
  return any;
}

static int register_op(const Cluster *c, const char *name, int native, TF_Status *status) {
  TF_OpDefinitionBuilder *op = TF_NewOpDefinitionBuilder(name);
  for (int32_t i = 0; i < c->arg_count; i++) TF_OpDefinitionBuilderAddInput(op, c->args[i].spec);
  for (int32_t i = 0; native && i < c->result_count; i++) TF_OpDefinitionBuilderAddOutput(op, c->results[i].spec);
  if (!native) TF_OpDefinitionBuilderAddOutput(op, "fits: bool");
  TF_OpDefinitionBuilderSetShapeInferenceFunction(op, native ? c->shapes : scalar_shape);
  TF_RegisterOpDefinition(op, status);
  if (TF_GetCode(status) != 0) return 0;
  if (has_kernel(name, status)) return 1;
  TF_KernelBuilder *kernel = TF_NewKernelBuilder(name, "CPU", c->create, native ? compute : fits_compute, destroy);
  TF_RegisterKernelBuilder(name, kernel, status);
  return TF_GetCode(status) == 0;
}

static void complain(const char *text) { (void)!write(2, text, strlen(text)); }

// Called when the library is loaded; tfaot writes the entry that asks for it, whose place differs between systems.
HIDDEN void tfaot_load(void) {
  pthread_mutex_init(&workspace_mutex, NULL);
  TF_Status *status = TF_NewStatus();
  for (int64_t i = 0; i < tfaot_cluster_count; i++) {
    const Cluster *c = tfaot_clusters[i];
    if (register_op(c, c->op, 1, status) && register_op(c, c->fits, 0, status)) continue;
    complain("tfaot: TensorFlow refuses an op: ");
    complain(TF_Message(status));
    complain("\n");
    break;
  }
  TF_DeleteStatus(status);
}
