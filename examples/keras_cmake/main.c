/* Calls the model on the first 1, 2, ... of the images of a folder, and compares with Keras's answers there. */
#include <math.h>
#include <stdio.h>

#include "net.h"

enum { IMAGES = 5, PIXELS = 12 * 12 * 3, CLASSES = 4 };

static float image[IMAGES * PIXELS], size[IMAGES * 2], want[IMAGES * CLASSES], scores[IMAGES * CLASSES];
static _Alignas(NET_WORKSPACE_ALIGN) unsigned char workspace[NET_WORKSPACE_BYTES];

static int load(const char *folder, const char *name, float *to, size_t count) {
  char path[4096];
  if ((size_t)snprintf(path, sizeof path, "%s/%s.f32", folder, name) >= sizeof path) return 0;
  FILE *file = fopen(path, "rb");
  if (!file) return 0;
  const size_t read = fread(to, sizeof *to, count, file);
  fclose(file);
  return read == count;
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : ".";
  if (!load(folder, "image", image, IMAGES * PIXELS) || !load(folder, "size", size, IMAGES * 2) ||
      !load(folder, "scores", want, IMAGES * CLASSES))
    return fprintf(stderr, "%s has no image.f32, size.f32 and scores.f32\n", folder), 2;
  float largest = 0;
  for (int n = 1; n <= IMAGES; n++) {
    net_sizes sizes = {.batch = n};
    const net_args args = {.image = image, .size = size};
    const net_results results = {.scores = scores};
    const int code = net_run(&args, &results, &sizes, workspace, NULL);
    if (code) return fprintf(stderr, "net_run: %d\n", code), 1;
    for (int i = 0; i < n * CLASSES; i++) largest = fmaxf(largest, fabsf(scores[i] - want[i]));
  }
  if (!(largest < 1e-5f)) return fprintf(stderr, "the answers differ by %g\n", largest), 1;
  puts("1 to 5 images: as Keras");
  return 0;
}
