/* As much of TensorFlow's C ABI as a library of compiled clusters calls: loads one, and calls its first cluster.
 *
 *     fake_tensorflow LIBRARY IN OUT DIM...      one float argument of these sizes, one float result
 *     fake_tensorflow --sized LIBRARY IN OUT DIM...      the same of a cluster that takes other sizes too: only the answer
 *
 * The cluster must fit its shape and no other, refuse to run another, take an argument that is not aligned, answer eight
 * threads alike, and tell the shape that it allocates. Ends with 1 and a sentence if not. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(good, ...) do { if (!(good)) { fprintf(stderr, __VA_ARGS__); fputc('\n', stderr); exit(1); } } while (0)
enum { MOST = 8 };

typedef struct { int code; char text[256]; } TF_Status;
typedef struct { int dtype, rank; int64_t dims[MOST]; void *data; } TF_Tensor;
typedef struct { int rank; int64_t dims[MOST]; } TF_ShapeHandle;
typedef struct { TF_ShapeHandle out; } TF_ShapeInferenceContext;
typedef struct { TF_Tensor in, out; TF_Status failed; } TF_OpKernelContext;
typedef struct { char name[128]; int inputs, outputs; void (*shape)(TF_ShapeInferenceContext *, TF_Status *); } Op;
typedef struct { char name[128]; void *(*create)(void *); void (*compute)(void *, TF_OpKernelContext *); void (*destroy)(void *); } Kernel;
static Op ops[64];
static Kernel kernels[64];
static int op_count, kernel_count;
static _Atomic int held; /* tensors and statuses that the library has not given back */

TF_Status *TF_NewStatus(void) { held++; return calloc(1, sizeof(TF_Status)); }
void TF_DeleteStatus(TF_Status *s) { held--; free(s); }
void TF_SetStatus(TF_Status *s, int32_t code, const char *text) { s->code = code; snprintf(s->text, sizeof s->text, "%s", text); }
int32_t TF_GetCode(const TF_Status *s) { return s->code; }
const char *TF_Message(const TF_Status *s) { return s->text; }
Op *TF_NewOpDefinitionBuilder(const char *name) { snprintf(ops[op_count].name, 128, "%s", name); return &ops[op_count]; }
void TF_OpDefinitionBuilderAddInput(Op *op, const char *spec) { CHECK(!strcmp(spec, "a0: float"), "input %s", spec); op->inputs++; }
void TF_OpDefinitionBuilderAddOutput(Op *op, const char *spec) { (void)spec; op->outputs++; }
void TF_OpDefinitionBuilderSetShapeInferenceFunction(Op *op, void (*f)(TF_ShapeInferenceContext *, TF_Status *)) { op->shape = f; }
void TF_RegisterOpDefinition(Op *op, TF_Status *s) { (void)op; (void)s; op_count++; }
Kernel *TF_NewKernelBuilder(const char *op, const char *device, void *(*create)(void *), void (*compute)(void *, TF_OpKernelContext *), void (*destroy)(void *)) {
  CHECK(!strcmp(device, "CPU"), "device %s", device);
  Kernel *k = &kernels[kernel_count];
  snprintf(k->name, 128, "%s", op);
  k->create = create, k->compute = compute, k->destroy = destroy;
  return k;
}
void TF_RegisterKernelBuilder(const char *name, Kernel *k, TF_Status *s) { (void)name; (void)k; (void)s; kernel_count++; }
void TF_GetInput(TF_OpKernelContext *c, int32_t i, TF_Tensor **t, TF_Status *s) { (void)i; (void)s; held++; *t = malloc(sizeof **t); **t = c->in; }
TF_Tensor *TF_AllocateOutput(TF_OpKernelContext *c, int32_t i, int32_t dtype, const int64_t *dims, int32_t rank, size_t bytes, TF_Status *s) {
  (void)i; (void)s;
  c->out.dtype = dtype, c->out.rank = rank, c->out.data = calloc(1, bytes + 1);
  if (rank) memcpy(c->out.dims, dims, 8 * rank);
  TF_Tensor *t = malloc(sizeof *t);
  *t = c->out;
  held++;
  return t;
}
void TF_OpKernelContext_Failure(TF_OpKernelContext *c, TF_Status *s) { c->failed = *s; }
int32_t TF_NumDims(const TF_Tensor *t) { return t->rank; }
int64_t TF_Dim(const TF_Tensor *t, int32_t i) { return t->dims[i]; }
void *TF_TensorData(const TF_Tensor *t) { return t->data; }
void TF_DeleteTensor(TF_Tensor *t) { held--; free(t); }
TF_ShapeHandle *TF_NewShapeHandle(void) { return calloc(1, sizeof(TF_ShapeHandle)); }
TF_ShapeHandle *TF_ShapeInferenceContextScalar(TF_ShapeInferenceContext *c) { (void)c; return TF_NewShapeHandle(); }
TF_ShapeHandle *TF_ShapeInferenceContextVectorFromSize(TF_ShapeInferenceContext *c, size_t n) {
  TF_ShapeHandle *h = TF_ShapeInferenceContextScalar(c);
  h->rank = 1, h->dims[0] = (int64_t)n;
  return h;
}
void TF_DeleteShapeHandle(TF_ShapeHandle *h) { free(h); }
void TF_ShapeInferenceContextConcatenateShapes(TF_ShapeInferenceContext *c, TF_ShapeHandle *a, TF_ShapeHandle *b, TF_ShapeHandle *both, TF_Status *s) {
  (void)c; (void)s;
  *both = *a;
  for (int i = 0; i < b->rank; i++) both->dims[both->rank++] = b->dims[i];
}
void TF_ShapeInferenceContextSetOutput(TF_ShapeInferenceContext *c, int32_t i, TF_ShapeHandle *h, TF_Status *s) { (void)i; (void)s; c->out = *h; }

void TF_ShapeInferenceContextSetUnknownShape(TF_ShapeInferenceContext *c, TF_Status *s) { (void)s; c->out.rank = -1; }

static TF_OpKernelContext call(const Kernel *k, TF_Tensor in) {
  TF_OpKernelContext c = {.in = in};
  void *state = k->create(NULL);
  k->compute(state, &c);
  k->destroy(state);
  return c;
}

static const Kernel *native, *fits;
static TF_Tensor good;
static TF_OpKernelContext first;
static size_t out_bytes;

static void *again(void *unused) {
  for (int i = 0; i < 50; i++) {
    TF_OpKernelContext c = call(native, good);
    CHECK(c.failed.code == 0 && !memcmp(c.out.data, first.out.data, out_bytes), "a call among others answers otherwise");
    free(c.out.data);
  }
  return unused;
}

/* Keeps the first answer, and gives the shape that is told of it. */
static TF_ShapeHandle answered(void) {
  first = call(native, good);
  CHECK(first.failed.code == 0, "%s", first.failed.text);
  out_bytes = 4;
  for (int i = 0; i < first.out.rank; i++) out_bytes *= (size_t)first.out.dims[i];
  TF_ShapeInferenceContext shape;
  TF_Status status = {0, ""};
  ops[0].shape(&shape, &status);
  return shape.out;
}

static void write_answer(const char *path) {
  FILE *out = fopen(path, "wb");
  CHECK(out && fwrite(first.out.data, 1, out_bytes, out) == out_bytes && fclose(out) == 0, "no output");
}

int main(int argc, char **argv) {
  const int sized = argc > 1 && !strcmp(argv[1], "--sized");
  argc -= sized, argv += sized;
  CHECK(argc > 4, "usage: fake_tensorflow LIBRARY IN OUT DIM...");
  CHECK(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), "%s", dlerror());
  CHECK(op_count >= 2 && op_count == kernel_count, "%d ops, %d kernels", op_count, kernel_count);
  native = &kernels[0], fits = &kernels[1];
  size_t count = 1;
  good.dtype = 1, good.rank = argc - 4;
  for (int i = 0; i < good.rank; i++) count *= (size_t)(good.dims[i] = atoll(argv[4 + i]));
  char *room = malloc(4 * count + 64);
  good.data = room;
  FILE *in = fopen(argv[2], "rb");
  CHECK(in && fread(good.data, 4, count, in) == count, "no input");
  fclose(in);

  TF_OpKernelContext c = call(fits, good);
  CHECK(c.failed.code == 0 && *(char *)c.out.data == 1, "its own shape does not fit");
  if (sized) {
    CHECK(answered().rank == -1, "a shape is told that is not known");
    CHECK(held == 0, "%d tensors or statuses were not given back", held);
    write_answer(argv[3]);
    return 0;
  }
  TF_Tensor other = good;
  other.dims[0]--;
  c = call(fits, other);
  CHECK(c.failed.code == 0 && *(char *)c.out.data == 0, "another shape fits");
  c = call(native, other);
  CHECK(c.failed.code != 0 && strstr(c.failed.text, "another shape"), "it runs another shape");

  TF_ShapeHandle told = answered();
  CHECK(told.rank == first.out.rank && !memcmp(told.dims, first.out.dims, 8 * (size_t)told.rank), "another shape is told");

  TF_Tensor askew = good;
  askew.data = memmove(room + 1, room, 4 * count);
  c = call(native, askew);
  CHECK(c.failed.code == 0 && !memcmp(c.out.data, first.out.data, out_bytes), "an argument that is not aligned");
  memmove(room, room + 1, 4 * count);

  pthread_t threads[8];
  for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, again, NULL);
  for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
  CHECK(held == 0, "%d tensors or statuses were not given back", held);
  write_answer(argv[3]);
  return 0;
}
