// The classes of a model with variables: functions that share one state, and one with a state of its own.
#include <cstdio>
#include <cstring>

#include "m.hpp"

int main() {
  m_state state;
  m_init(&state);
  MTrain train(&state);
  MPredict predict(&state), fresh;
  for (std::int64_t i = 0; i < train.arg0_count(); ++i) train.arg0_data()[i] = 0.25f;
  for (std::int64_t i = 0; i < train.arg1_count(); ++i) train.arg1_data()[i] = 1.0f;
  std::memcpy(predict.arg0_data(), train.arg0_data(), static_cast<std::size_t>(train.arg0_size()));
  std::memcpy(fresh.arg0_data(), train.arg0_data(), static_cast<std::size_t>(train.arg0_size()));
  if (!train.Run()) return 1;
  const float first = train.result0();
  for (int i = 0; i < 20; ++i) {
    if (!train.Run()) return 1;
  }
  if (!(train.result0() < first)) return 2;
  if (!predict.Run() || !fresh.Run()) return 3;
  if (predict.result0_data()[0] == fresh.result0_data()[0]) return 4;
  if (&predict.state() != &state || &fresh.state() == &state) return 5;
  return std::strcmp(MTrain::GetArgName(1), "p1") == 0 ? 0 : 6;
}
