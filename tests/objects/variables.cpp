// A user of a class with tfcompile's names for variables: a sum that calls add to. Exits with the number of the check that fails.
#include "acc.hpp"

int main() {
  using Acc = zoo::Acc;
  static_assert(Acc::kNumVariables == 1 && Acc::kNumArgs == 2 && Acc::kNumResults == 2, "a variable is an argument and a result");
  Acc acc;
  if (acc.num_variables() != 1 || acc.num_args() != 2 || acc.num_results() != 2) return 1;
  if (Acc::var_acc_count() != 2 || Acc::var_acc_size() != 8 || Acc::ArgSize(1) != 8 || Acc::result_size(1) != 8) return 2;
  if (Acc::LookupVariableIndex("acc") != 0 || Acc::LookupVariableIndex("x") != -1) return 3;
  if (std::string(Acc::GetVariableName(0)) != "acc" || Acc::GetVariableName(1) != nullptr) return 4;
  acc.var_acc(0) = 10;
  acc.var_acc_data()[1] = 20;
  acc.arg_x(0) = 1;
  acc.arg_x(1) = 2;
  if (!acc.Run() || acc.var_acc(0) != 11 || acc.var_acc(1) != 22) return 5;
  if (!acc.Run() || acc.var_acc(0) != 12 || acc.var_acc(1) != 24) return 6;
  if (acc.arg_data(1) != acc.var_acc_data() || acc.result_data(1) != acc.var_acc_data()) return 7;
  // A variable in the caller's memory is changed there.
  float own[2] = {100, 200};
  acc.set_var_acc_data(own);
  if (!acc.Run() || own[0] != 101 || own[1] != 202 || acc.var_acc_data() != own) return 8;
  acc.set_arg_data(1, own);
  if (!acc.Run() || own[0] != 102 || own[1] != 204) return 9;
  const Acc &constant = acc;
  return constant.var_acc(1) == 204 && constant.var_acc_data() == own ? 0 : 10;
}
