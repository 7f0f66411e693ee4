// Classifies two images of equal pixels, and prints the probabilities of each on a line.
#include <algorithm>
#include <cstdio>

#include "net.h"

int main() {
  static vision::Net net;
  std::fill_n(net.arg_image_data(), net.arg_image_count(), 0.5f);
  if (!net.Run()) return std::fprintf(stderr, "%s\n", net.error_msg().c_str()), 1;
  for (int image = 0; image < 2; ++image) {
    for (int i = 0; i < 10; ++i) std::printf("%s%.5f", i ? " " : "", net.result_probabilities(image, i));
    std::puts("");
  }
}
