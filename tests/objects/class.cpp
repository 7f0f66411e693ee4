// A user of a class with tfcompile's names. Usage: class FOLDER, which holds in.NAME and gets out.N.
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include "net.hpp"

// The two members of Eigen::ThreadPoolDevice that the class uses, and its type for costs.
struct Cost {
  Cost(double loads, double stores, double cycles) : total(loads + stores + cycles) {}
  double total;
};
struct Device {
  int numThreads() const { return 2; }
  void parallelFor(long n, const Cost &cost, std::function<void(long, long)> work) const {
    if (cost.total <= 0) return;
    std::thread other([&] { work(0, n / 2); });
    work(n / 2, n);
    other.join();
  }
};

static bool Read(const std::string &path, void *data, std::int64_t bytes) {
  std::FILE *file = std::fopen(path.c_str(), "rb");
  if (!file) return false;
  const bool whole = std::fread(data, 1, static_cast<std::size_t>(bytes), file) == static_cast<std::size_t>(bytes);
  std::fclose(file);
  return whole;
}

int main(int, char **argv) {
  const std::string folder = argv[1];
  zoo::Net net;
  static_assert(zoo::Net::kNumVariables == 0, "no variables");
  const tfaot_function_info *info = net_info()->functions;
  for (std::size_t i = 0; i < zoo::Net::kNumArgs; ++i) {
    if (!Read(folder + "/in." + info->args[i].name, net.arg_data(i), zoo::Net::arg_size(i))) return 2;
  }
  if (net.arg0_data() != net.arg_data(0) || net.arg0_size() != zoo::Net::ArgSize(0)) return 3;
  if (&net.arg0(0, 0) != net.arg0_data() || &net.arg0(0, 1) != net.arg0_data() + 1) return 4;
  if (zoo::Net::LookupArgIndex(zoo::Net::GetArgName(0)) != 0 || zoo::Net::LookupArgIndex("nowhere") != -1) return 5;
  const Device device;
  net.set_thread_pool(&device);
  if (!net.Run() || !net.error_msg().empty()) return 6;
  // The caller's own memory, and no threads.
  zoo::Net lean(zoo::Net::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  lean.set_thread_pool(nullptr);
  lean.set_arg0_data(net.arg0_data());
  for (std::size_t i = 1; i < zoo::Net::kNumArgs; ++i) lean.set_arg_data(i, net.arg_data(i));
  if (!lean.Run()) return 7;
  for (std::size_t i = 0; i < zoo::Net::kNumResults; ++i) {
    const std::size_t bytes = static_cast<std::size_t>(zoo::Net::result_size(i));
    if (std::memcmp(net.result_data(i), lean.result_data(i), bytes) != 0) return 8;
    std::FILE *file = std::fopen((folder + "/out." + std::to_string(i)).c_str(), "wb");
    if (!file || std::fwrite(net.result_data(i), 1, bytes, file) != bytes || std::fclose(file) != 0) return 9;
  }
  return 0;
}
