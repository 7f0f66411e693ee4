// The class of a function whose sizes vary: sizes are set before Run, memory is that of the bounds.
#include "m.hpp"
#include <cstdio>

int main() {
  MMean mean;
  for (std::int64_t n = 1; n <= 9; ++n) {
    mean.sizes().n = n;
    for (std::int64_t i = 0; i < 3 * n; ++i) mean.arg0_data()[i] = static_cast<float>(i);
    if (!mean.Run()) return std::puts(mean.error_msg().c_str()), 1;
    if (mean.result1_data()[3 * n - 1] != static_cast<float>(2 * (3 * n - 1))) return std::puts("another row"), 1;
  }
  mean.sizes().n = 10;
  if (mean.Run() || mean.error_msg() != "a size is outside of its bounds") return std::puts("not refused"), 1;
  MAbove above;
  if (above.sizes().n != 100) return std::puts("not at its bound"), 1;
  for (int i = 0; i < 100; ++i) above.arg0_data()[i] = static_cast<float>(i);
  if (!above.Run() || above.sizes().found != 39) return std::puts("another count"), 1;
  return 0;
}
