/* tools/demo's program: reads a picture, calls the compiled model, prints its answer beside TensorFlow's.
 *
 *   demo PICTURE.pgm TENSORFLOW.txt
 *
 * The model names the feeling in a 64x64 grey picture of a face; the pixels go in as -1..1. */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "emotion.h"

enum { SIDE = 64, CLASSES = 7, CALLS = 200 };
static const char *const CLASS[CLASSES] = {"angry", "disgust", "fear", "happy", "sad", "surprise", "neutral"};

static float picture[SIDE * SIDE];
static float answer[CLASSES];
/* C99 has no alignas: room for the workspace at an aligned place. */
static unsigned char room[EMOTION_WORKSPACE_BYTES + EMOTION_WORKSPACE_ALIGN];

static int read_picture(const char *path) {
  FILE *f = fopen(path, "r");
  int width, height, top, value, i;
  char line[256];
  if (!f) return 0;
  if (!fgets(line, sizeof line, f) || !fgets(line, sizeof line, f)) return fclose(f), 0;
  if (fscanf(f, "%d %d %d", &width, &height, &top) != 3 || width != SIDE || height != SIDE) return fclose(f), 0;
  for (i = 0; i < SIDE * SIDE; ++i) {
    if (fscanf(f, "%d", &value) != 1) return fclose(f), 0;
    picture[i] = (float)value / (float)top * 2.0f - 1.0f;
  }
  fclose(f);
  return 1;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
  void *workspace = room + (EMOTION_WORKSPACE_ALIGN - (uintptr_t)room % EMOTION_WORKSPACE_ALIGN);
  emotion_args args;
  emotion_results results;
  double best = HUGE_VAL, worst = 0.0;
  FILE *theirs;
  int i;
  if (argc != 3 || !read_picture(argv[1])) return fprintf(stderr, "usage: demo PICTURE.pgm TENSORFLOW.txt\n"), 2;
  args.input_1 = picture;
  results.Identity = answer;
  for (i = 0; i < CALLS; ++i) {
    double start = now_ms(), took;
    int code = emotion_run(&args, &results, workspace, NULL);
    if (code) return fprintf(stderr, "emotion_run returned %d\n", code), 1;
    took = now_ms() - start;
    if (took < best) best = took;
  }
  if (!(theirs = fopen(argv[2], "r"))) return fprintf(stderr, "%s can't be read\n", argv[2]), 1;
  printf("%-10s %12s %12s\n", "", "tfaot", "TensorFlow");
  for (i = 0; i < CLASSES; ++i) {
    double want;
    if (fscanf(theirs, "%lf", &want) != 1) return fprintf(stderr, "%s is cut short\n", argv[2]), 1;
    printf("%-10s %12.6f %12.6f\n", CLASS[i], (double)answer[i], want);
    if (fabs((double)answer[i] - want) > worst) worst = fabs((double)answer[i] - want);
  }
  fclose(theirs);
  printf("largest difference: %.1e\n", worst);
  printf("tfaot: %.3f ms a call on one thread (fastest of %d)\n", best, CALLS);
  return worst < 1e-4 ? 0 : 1;
}
