/* A program that uses the plugin's library as others do: it is loaded by dlopen, and called through its table.
 *
 *   client PLUGIN CYCLES THREADS
 *
 * walks through the interface once, with errors in the middle, in a child of a fork too, and then compiles, runs and deletes CYCLES programs
 * on THREADS threads. It prints the resident memory after a tenth of them and at the end, and fails where it grows by more than GROWTH_MB.
 * Structs are those of PJRT's C interface, version 0.90, as far as they are needed. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef GROWTH_MB
#define GROWTH_MB 16
#endif
enum { F32 = 11, INVALID_ARGUMENT = 3, UNIMPLEMENTED = 12 };

/* Places of functions in the table. */
enum {
  Error_Destroy = 0, Error_Message = 1, Error_GetCode = 2, Plugin_Initialize = 3, Event_Destroy = 5, Event_IsReady = 6, Event_Await = 8,
  Event_OnReady = 9, Client_Create = 10, Client_Destroy = 11, Client_PlatformName = 12, Client_Devices = 15, Client_Compile = 20,
  Client_BufferFromHostBuffer = 22, Device_GetDescription = 29, DeviceDescription_Kind = 26, LoadedExecutable_GetExecutable = 51,
  Executable_Destroy = 40, Executable_Serialize = 49, LoadedExecutable_Destroy = 50, LoadedExecutable_Delete = 53, LoadedExecutable_Execute = 55,
  Executable_DeserializeAndLoad = 56, Buffer_Destroy = 58, Buffer_Dimensions = 60, Buffer_Delete = 67, Buffer_ToHostBuffer = 70,
  Client_DmaMap = 110, Event_Create = 126, Event_Set = 127
};

#define HEAD size_t struct_size; void *extension_start;
typedef struct { HEAD void *pointer; const char *text; size_t size; } Text;
typedef struct { HEAD void *pointer; int number; } Number;
typedef struct { HEAD void *pointer; } Pointer;
typedef struct { HEAD void *first; void *second; } Pair;
typedef struct { HEAD const void *options; size_t num_options; void *callbacks[4]; void *client; void *more[2]; } ClientCreate;
typedef struct { HEAD void *client; void *const *devices; size_t num_devices; } Devices;
typedef struct { HEAD char *code; size_t code_size; const char *format; size_t format_size; } Program;
typedef struct { HEAD void *client; const Program *program; const char *options; size_t options_size; void *executable; } Compile;
typedef struct {
  HEAD void *client; const void *data; int type; const int64_t *dims; size_t num_dims; const int64_t *strides; size_t num_strides; int semantics;
  void *device, *memory, *layout, *done, *buffer;
} FromHost;
typedef struct { HEAD void *buffer, *layout, *to; size_t size; void *event; } ToHost;
typedef struct {
  HEAD void *callbacks[2]; size_t num_ops[2]; int launch_id; const int64_t *kept; size_t num_kept; void *context; const char *location;
  size_t num_tasks; int *task_ids; int64_t *incarnation_ids;
} Options;
typedef struct {
  HEAD void *executable; Options *options; void *const *const *arguments; size_t num_devices, num_args; void **const *outputs; void **events;
  void *device;
} Execute;
typedef struct { HEAD void *executable; const char *bytes; size_t size; void *owner; void (*deleter)(void *); } Serialize;
typedef struct { HEAD void *client; const char *bytes; size_t size; void *loaded; const char *options; size_t options_size; } Deserialize;
typedef struct { HEAD void *event; void (*callback)(void *, void *); void *argument; } OnReady;
typedef struct { HEAD void *event; int code; const char *message; size_t size; } Set;
typedef struct { HEAD void *buffer; const int64_t *dims; size_t num_dims; } Dims;
typedef struct { size_t struct_size; void *extensions; struct { HEAD int major, minor; } version; void *(*functions[])(void *); } Table;

static const Table *table;

static void require(bool holds, const char *format, ...) {
  if (holds) return;
  va_list args;
  va_start(args, format);
  vfprintf(stderr, format, args);
  va_end(args);
  fputc('\n', stderr);
  exit(1);
}

#define ARGS(Type, name) Type name = {.struct_size = sizeof(Type)}

/* Calls a function; returns the code of its error, 0 for none, and copies the message. */
static int call(int function, void *args, char message[256]) {
  void *error = table->functions[function](args);
  if (!error) return 0;
  ARGS(Number, code);
  ARGS(Text, text);
  code.pointer = text.pointer = error;
  table->functions[Error_GetCode](&code);
  table->functions[Error_Message](&text);
  if (message) snprintf(message, 256, "%.*s", (int)text.size, text.text);
  ARGS(Pointer, destroy);
  destroy.pointer = error;
  table->functions[Error_Destroy](&destroy);
  return code.number;
}

static void must(int function, void *args) {
  char message[256] = "";
  int code = call(function, args, message);
  require(code == 0, "function %d fails with code %d: %s", function, code, message);
}

static void destroy(int function, void *object) {
  ARGS(Pointer, args);
  args.pointer = object;
  must(function, &args);
}

static int compile(void *client, const char *text, void **executable, char message[256]) {
  ARGS(Program, program);
  program.code = (char *)text;
  program.code_size = strlen(text);
  program.format = "mlir";
  program.format_size = 4;
  ARGS(Compile, args);
  args.client = client;
  args.program = &program;
  int code = call(Client_Compile, &args, message);
  *executable = args.executable;
  return code;
}

static void *buffer(void *client, const float *data, int64_t count, int semantics) {
  ARGS(FromHost, args);
  args.client = client;
  args.data = data;
  args.type = F32;
  args.dims = &count;
  args.num_dims = 1;
  args.semantics = semantics;
  must(Client_BufferFromHostBuffer, &args);
  destroy(Event_Destroy, args.done);
  return args.buffer;
}

static int execute(void *executable, void *input, void **output, char message[256]) {
  ARGS(Options, options);
  ARGS(Execute, args);
  void *const inputs[] = {input};
  void *const *lists[] = {inputs};
  void **outputs[] = {output};
  void *event = NULL;
  args.executable = executable;
  args.options = &options;
  args.arguments = lists;
  args.num_devices = args.num_args = 1;
  args.outputs = outputs;
  args.events = &event;
  int code = call(LoadedExecutable_Execute, &args, message);
  if (event) {
    ARGS(Pointer, await);
    await.pointer = event;
    must(Event_Await, &await);
    destroy(Event_Destroy, event);
  }
  return code;
}

static void check(void *output, const float *wanted, size_t count) {
  float *values = malloc(count * sizeof(float));
  ARGS(ToHost, args);
  args.buffer = output;
  must(Buffer_ToHostBuffer, &args);
  require(args.size == count * sizeof(float), "the result has %zu bytes", args.size);
  args.to = values;
  must(Buffer_ToHostBuffer, &args);
  destroy(Event_Destroy, args.event);
  for (size_t i = 0; i < count; i++) require(values[i] == wanted[i], "element %zu is %g, and %g is wanted", i, values[i], wanted[i]);
  free(values);
}

/* A module that multiplies by a number, so that each is another program. */
static void module(char text[512], int number) {
  snprintf(text, 512,
           "module @m {\n  func.func public @main(%%x: tensor<4xf32>) -> tensor<4xf32> {\n    %%c = stablehlo.constant dense<%d.0> : tensor<4xf32>\n"
           "    %%y = stablehlo.multiply %%x, %%c : tensor<4xf32>\n    return %%y : tensor<4xf32>\n  }\n}\n", number);
}

static const float input[4] = {1, 2, 3, 4};

/* Compiles, runs and deletes one program; every tenth time with errors in between. */
static void cycle(void *client, int number) {
  char text[512], message[256];
  void *executable, *output = NULL;
  module(text, number);
  require(compile(client, text, &executable, message) == 0, "%s", message);
  void *x = buffer(client, input, 4, number % 2 ? 2 : 0);
  require(execute(executable, x, &output, message) == 0, "%s", message);
  float wanted[4];
  for (int i = 0; i < 4; i++) wanted[i] = input[i] * (float)number;
  check(output, wanted, 4);
  if (number % 10 == 0) {
    void *other = buffer(client, input, 3, 0), *none = NULL, *broken;
    require(execute(executable, other, &none, message) == INVALID_ARGUMENT && strstr(message, "argument 0"), "another shape: %s", message);
    destroy(Buffer_Destroy, other);
    require(compile(client, "module {", &broken, message) == INVALID_ARGUMENT, "a broken module: %s", message);
    destroy(Buffer_Delete, x);
    require(execute(executable, x, &none, message) == INVALID_ARGUMENT && strstr(message, "deleted"), "a deleted array: %s", message);
    destroy(LoadedExecutable_Delete, executable);
    require(execute(executable, x, &none, message) != 0, "a deleted program runs");
  }
  destroy(Buffer_Destroy, x);
  destroy(Buffer_Destroy, output);
  destroy(LoadedExecutable_Destroy, executable);
}

static void as_bytes(void *client) {
  char text[512], message[256];
  void *loaded, *output;
  module(text, 7);
  require(compile(client, text, &loaded, message) == 0, "%s", message);
  ARGS(Pair, get);
  get.first = loaded;
  must(LoadedExecutable_GetExecutable, &get);
  ARGS(Serialize, bytes);
  bytes.executable = get.second;
  must(Executable_Serialize, &bytes);
  destroy(Executable_Destroy, get.second);
  destroy(LoadedExecutable_Destroy, loaded);
  ARGS(Deserialize, load);
  load.client = client;
  load.bytes = bytes.bytes;
  load.size = bytes.size - 1;
  require(call(Executable_DeserializeAndLoad, &load, message) == INVALID_ARGUMENT, "bytes are missing: %s", message);
  load.size = bytes.size;
  must(Executable_DeserializeAndLoad, &load);
  bytes.deleter(bytes.owner);
  void *x = buffer(client, input, 4, 0);
  require(execute(load.loaded, x, &output, message) == 0, "%s", message);
  check(output, (const float[]){7, 14, 21, 28}, 4);
  ARGS(Dims, dims);
  dims.buffer = output;
  must(Buffer_Dimensions, &dims);
  require(dims.num_dims == 1 && dims.dims[0] == 4, "another shape");
  destroy(Buffer_Destroy, x);
  destroy(Buffer_Destroy, output);
  destroy(LoadedExecutable_Destroy, load.loaded);
}

static void on_ready(void *error, void *argument) {
  *(bool *)argument = error != NULL;
  if (error) destroy(Error_Destroy, error);
}

static void events(void) {
  ARGS(Pointer, create);
  must(Event_Create, &create);
  bool failed = false;
  ARGS(OnReady, wait);
  wait.event = create.pointer;
  wait.callback = on_ready;
  wait.argument = &failed;
  must(Event_OnReady, &wait);
  ARGS(Set, set);
  set.event = create.pointer;
  set.code = 13;
  set.message = "broken";
  set.size = 6;
  must(Event_Set, &set);
  ARGS(Pointer, await);
  await.pointer = create.pointer;
  char message[256];
  require(failed && call(Event_Await, &await, message) == 13 && !strcmp(message, "broken"), "an event has no error");
  destroy(Event_Destroy, create.pointer);
}

static void walk(void *client) {
  char message[256];
  ARGS(Text, platform);
  platform.pointer = client;
  must(Client_PlatformName, &platform);
  require(platform.size == 3 && !memcmp(platform.text, "cpu", 3), "another platform");
  ARGS(Devices, devices);
  devices.client = client;
  must(Client_Devices, &devices);
  ARGS(Pair, description);
  description.first = devices.devices[0];
  must(Device_GetDescription, &description);
  ARGS(Text, kind);
  kind.pointer = description.second;
  must(DeviceDescription_Kind, &kind);
  require(kind.size == 5 && !memcmp(kind.text, "tfaot", 5), "another kind of device");
  Text shorter = {.struct_size = 16};
  require(call(Client_PlatformName, &shorter, message) == INVALID_ARGUMENT, "a short struct: %s", message);
  require(call(Client_PlatformName, NULL, message) == INVALID_ARGUMENT, "no struct: %s", message);
  ARGS(Pointer, none);
  require(call(Client_DmaMap, &none, message) == UNIMPLEMENTED, "a function that there is not: %s", message);
  events();
  as_bytes(client);
  cycle(client, 10);
}

static double resident_mb(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file) {
    if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    fclose(file);
  }
  return (double)pages * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

static struct { void *client; atomic_int next; int cycles; } work;

static void *worker(void *nothing) {
  for (;;) {
    int number = atomic_fetch_add(&work.next, 1);
    if (number > work.cycles) return nothing;
    cycle(work.client, number);
  }
}

static void run_cycles(int last, int threads) {
  pthread_t all[64];
  work.cycles = last;
  for (int i = 0; i < threads; i++) require(pthread_create(&all[i], NULL, worker, NULL) == 0, "no thread");
  for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
  atomic_store(&work.next, last + 1);
}

int main(int argc, char **argv) {
  require(argc == 4, "usage: client PLUGIN CYCLES THREADS");
  int cycles = atoi(argv[2]), threads = atoi(argv[3]);
  require(threads > 0 && threads <= 64, "1 to 64 threads");
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  require(library != NULL, "%s", library ? "" : dlerror());
  const Table *(*get)(void) = (const Table *(*)(void))dlsym(library, "GetPjrtApi");
  table = get();
  require(table->version.major == 0 && table->version.minor >= 90, "another version");
  ARGS(Pointer, initialize);
  must(Plugin_Initialize, &initialize);
  ARGS(ClientCreate, create);
  must(Client_Create, &create);
  walk(create.client);

  pid_t child = fork();
  if (child == 0) {
    walk(create.client);
    _exit(0);
  }
  int status = 1;
  require(waitpid(child, &status, 0) == child && status == 0, "the child of a fork ends with %d", status);

  work.client = create.client;
  atomic_store(&work.next, 1);
  run_cycles(cycles / 10, threads);
  double first = resident_mb();
  run_cycles(cycles, threads);
  double last = resident_mb();
  destroy(Client_Destroy, create.client);
  printf("resident memory after %d programs: %.1f MB, after %d: %.1f MB\n", cycles / 10, first, cycles, last);
  require(last - first <= GROWTH_MB, "memory grows");
  return 0;
}
