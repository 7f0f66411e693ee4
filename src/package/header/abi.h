#ifndef TFAOT_ABI_VERSION
#define TFAOT_ABI_VERSION 1

/* What a call returns when it is not 0. */
#define TFAOT_E_CPU 1     /* this machine lacks instructions that the code was compiled for; nothing was written */
#define TFAOT_E_SIZE 2    /* a size of the caller is outside of its bounds; nothing was written */
#define TFAOT_E_BOUND 3   /* a data-dependent size exceeds its bound; results hold anything */
#define TFAOT_E_WEIGHTS 4 /* the weights are not those of this object; nothing was written */
#define TFAOT_E_CALL 5    /* a function that the model calls failed; results hold anything */
#define TFAOT_E_RANKS 6   /* no communicator, one of another size, or a rank failed or did not come; results hold anything */
#define TFAOT_E_CHECK 7   /* a run-time check failed: NAME_failed_check of the sizes names the node; results hold anything */
#define TFAOT_E_SELFTEST 8 /* NAME_selftest: a result is not the stored answer */

/* Runs task(closure, begin, end) on pieces that cover [0, n), and returns when all are done. */
typedef struct tfaot_executor {
  void *self;
  int32_t num_threads;
  void (*parallel_for)(void *self, int64_t n, void (*task)(void *closure, int64_t begin, int64_t end), void *closure);
} tfaot_executor;

/* How a rank reaches the others; declared in full by the headers of models that several ranks run together. */
typedef struct tfaot_communicator tfaot_communicator;

typedef struct tfaot_tensor_info {
  const char *name;  /* TensorFlow's name: "input:0" */
  const char *field; /* its member in the args or results struct */
  int32_t dtype;     /* TensorFlow's DataType number: DT_FLOAT is 1 */
  int32_t rank;
  const int64_t *dims; /* the largest, where sizes vary from call to call */
  size_t bytes;
} tfaot_tensor_info;

/* A size that varies from call to call. */
typedef struct tfaot_size_info {
  const char *name;
  int64_t least, most;
  uint32_t is_result, reserved; /* 0: set by the caller; 1: set by the call; 2: set by the call, to 1 where a run-time check failed */
} tfaot_size_info;

/* A variable: memory of the state, from byte `offset` on. */
typedef struct tfaot_variable_info {
  tfaot_tensor_info tensor;
  size_t offset;
} tfaot_variable_info;

/* A function of the model. */
typedef struct tfaot_function_info {
  const char *name; /* the signature's, or the model's where it has one function */
  uint32_t arg_count, result_count, size_count;
  uint32_t changes_state; /* 0: it only reads the state, and calls at the same time may share it */
  const tfaot_tensor_info *args, *results;
  const tfaot_size_info *sizes;
  const int32_t *axes; /* for each axis of args, then of results, the index of its size, or -1 if fixed; NULL: all are fixed */
  size_t workspace_bytes, workspace_align;
  int64_t flops; /* of one call */
  /* args and results are arrays of pointers, in the order of the structs, and sizes is an array. What the function does not take is
   * ignored and may be NULL: sizes where size_count is 0, state where state_bytes is 0, weights where weights_bytes is 0, and the
   * communicator where rank_count is 0. */
  int (*run)(const void *args, const void *results, int64_t *sizes, void *state, const void *weights, void *workspace,
      const tfaot_executor *executor, const tfaot_communicator *communicator);
} tfaot_function_info;

/* A model. */
typedef struct tfaot_model_info {
  uint32_t abi_version; /* TFAOT_ABI_VERSION */
  uint32_t function_count, variable_count;
  uint32_t rank_count; /* of ranks that run the model together, each with a communicator; 0: it runs alone */
  const char *name, *source, *target;
  const tfaot_function_info *functions;
  const tfaot_variable_info *variables;
  size_t state_bytes, state_align;     /* the alignment of its types is enough; with this one vectors are aligned */
  size_t weights_bytes, weights_align; /* of the file of weights, likewise; 0 bytes: the weights are in the object */
  int (*init)(void *state, const void *weights);               /* fills the state; NULL without variables */
  int (*weights_check)(const void *weights, size_t bytes);     /* NULL where the weights are in the object */
} tfaot_model_info;

#elif TFAOT_ABI_VERSION != 1
#error "headers of models that different versions of tfaot wrote need translation units of their own"
#endif /* TFAOT_ABI_VERSION */
