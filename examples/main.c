/* Calls the model on an image of equal pixels and prints the probabilities of each of a batch of two. */
#include <stdio.h>

#include "net.h"

static float image[2 * 16 * 16 * 3], probabilities[2 * 10];
static _Alignas(NET_WORKSPACE_ALIGN) unsigned char workspace[NET_WORKSPACE_BYTES];

int main(void) {
  net_args args = {.image = image};
  net_results results = {.Identity = probabilities};
  for (size_t i = 0; i < sizeof image / sizeof *image; i++) image[i] = 0.5f;
  int code = net_run(&args, &results, workspace, NULL);
  if (code != 0) return code;
  for (int i = 0; i < 20; i++) printf("%.5f%c", probabilities[i], i % 10 == 9 ? '\n' : ' ');
  return 0;
}
