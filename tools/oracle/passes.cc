// Calls the auto-clustering passes of an installed TensorFlow on one GraphDef, in this process.
//
//   run_passes(graph, bytes, passes, jit, out, room)
//
// `passes` is a string of letters, run in its order: c CloneConstantsForBetterClustering, s ClusterScoping, m MarkForCompilation,
// i IncreaseDynamismForAutoJit, p PartiallyDecluster. A node without a device is placed on the CPU. The answer has a line
// `name<TAB>cluster` for each node in the order of ids. Returns 0, or 1 with a message in `out`.
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "tensorflow/compiler/jit/clone_constants_for_better_clustering.h"
#include "tensorflow/compiler/jit/cluster_scoping_pass.h"
#include "tensorflow/compiler/jit/increase_dynamism_for_auto_jit_pass.h"
#include "tensorflow/compiler/jit/mark_for_compilation_pass.h"
#include "tensorflow/compiler/jit/partially_decluster_pass.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/common_runtime/optimization_registry.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/public/session_options.h"

namespace tf = tensorflow;

// The numbers of clusters begin anew with each graph.
namespace tensorflow::testing {
void ResetClusterSequenceNumber();
}

static const char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";

template <class Pass>
static tf::Status Run(const tf::GraphOptimizationPassOptions& options) {
  Pass pass;
  return pass.Run(options);
}

static tf::Status RunOne(char letter, const tf::GraphOptimizationPassOptions& options) {
  switch (letter) {
    case 'c': return Run<tf::CloneConstantsForBetterClusteringPass>(options);
    case 's': return Run<tf::ClusterScopingPass>(options);
    case 'm': return Run<tf::MarkForCompilationPass>(options);
    case 'i': return Run<tf::IncreaseDynamismForAutoJitPass>(options);
    case 'p': return Run<tf::PartiallyDeclusterPass>(options);
    default: return tf::errors::InvalidArgument("no pass has this letter");
  }
}

static int Answer(const std::string& text, int code, char* out, long room) {
  std::snprintf(out, static_cast<size_t>(room), "%s", text.c_str());
  return static_cast<long>(text.size()) < room ? code : 1;
}

extern "C" int run_passes(const char* data, long bytes, const char* passes, int jit, char* out, long room) {
  tf::GraphDef def;
  if (!def.ParseFromArray(data, static_cast<int>(bytes))) return Answer("this is no GraphDef", 1, out, room);
  tf::FunctionLibraryDefinition functions(tf::OpRegistry::Global(), def.library());
  def.clear_library();
  auto graph = std::make_unique<tf::Graph>(&functions);
  tf::GraphConstructorOptions how;
  how.allow_internal_ops = true;
  how.expect_device_spec = true;
  how.add_default_attributes = true;
  tf::Status status = tf::ConvertGraphDefToGraph(how, def, graph.get());
  if (!status.ok()) return Answer(status.ToString(), 1, out, room);
  for (tf::Node* node : graph->op_nodes()) {
    node->set_assigned_device_name(node->requested_device().empty() ? kCpu : node->requested_device());
  }
  tf::SessionOptions session;
  auto* optimizer = session.config.mutable_graph_options()->mutable_optimizer_options();
  optimizer->set_global_jit_level(static_cast<tf::OptimizerOptions_GlobalJitLevel>(jit));
  tf::GraphOptimizationPassOptions options;
  options.graph = &graph;
  options.flib_def = &functions;
  options.session_options = &session;
  tf::testing::ResetClusterSequenceNumber();
  for (const char* letter = passes; *letter; ++letter) {
    status = RunOne(*letter, options);
    if (!status.ok()) return Answer(status.ToString(), 1, out, room);
  }
  std::string text;
  for (tf::Node* node : graph->op_nodes()) {
    const tf::AttrValue* cluster = node->attrs().Find("_XlaCluster");
    text += node->name() + "\t" + (cluster ? cluster->s() : "") + "\n";
  }
  return Answer(text, 0, out, room);
}
