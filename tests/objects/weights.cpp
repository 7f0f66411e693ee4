// The class of a model whose weights are in a file: prints what it makes of ones.
#include <cstdio>
#include <vector>

#include "net.hpp"

int main(int argc, char **argv) {
  if (argc != 2) return 1;
  std::vector<unsigned char> weights(NET_WEIGHTS_BYTES), zeros(NET_WEIGHTS_BYTES);
  std::FILE *file = std::fopen(argv[1], "rb");
  if (!file || std::fread(weights.data(), 1, weights.size(), file) != weights.size()) return 2;
  std::fclose(file);
  Net net(weights.data()), other(zeros.data());
  for (std::int64_t i = 0; i < net.arg0_count(); ++i) net.arg0_data()[i] = 1;
  if (other.Run() || other.error_msg() != "the weights are those of another model") return 3;
  if (!net.Run()) return 4;
  std::printf("%g %g\n", static_cast<double>(net.result0_data()[0]), static_cast<double>(net.result0_data()[1]));
  return 0;
}
