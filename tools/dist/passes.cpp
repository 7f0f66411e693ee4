// The passes that tfaot runs, in the place of LLVM's parser of pipelines, which would keep the code of every pass there is.
//
// It defines what LLVM's PassBuilderBindings.cpp does, as far as it is used, and is linked before it.
#include <cstring>
#include <memory>

#include "llvm-c/Error.h"
#include "llvm-c/Transforms/PassBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/SROA.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace llvm;

// `PASSES` of src/codegen/llvm.rs; tools/release holds the two to each other.
static const char passes[] = "function(sroa,early-cse<memssa>,simplifycfg),globaldce";

extern "C" LLVMErrorRef LLVMRunPasses(LLVMModuleRef module, const char *wanted, LLVMTargetMachineRef machine,
                                      LLVMPassBuilderOptionsRef) {
  if (std::strcmp(wanted, passes)) return LLVMCreateStringError("this build of tfaot has other passes");
  LoopAnalysisManager of_loops;
  FunctionAnalysisManager of_functions;
  CGSCCAnalysisManager of_components;
  ModuleAnalysisManager of_modules;
  PassBuilder builder(reinterpret_cast<TargetMachine *>(machine));
  builder.registerModuleAnalyses(of_modules);
  builder.registerCGSCCAnalyses(of_components);
  builder.registerFunctionAnalyses(of_functions);
  builder.registerLoopAnalyses(of_loops);
  builder.crossRegisterProxies(of_loops, of_functions, of_components, of_modules);
  FunctionPassManager each;
  each.addPass(SROAPass(SROAOptions::ModifyCFG));
  each.addPass(EarlyCSEPass(/*UseMemorySSA=*/true));
  each.addPass(SimplifyCFGPass());
  ModulePassManager all;
  all.addPass(createModuleToFunctionPassAdaptor(std::move(each)));
  all.addPass(GlobalDCEPass());
  all.run(*unwrap(module), of_modules);
  return LLVMErrorSuccess;
}

// Options are not looked at: tfaot leaves them as they are.
extern "C" LLVMPassBuilderOptionsRef LLVMCreatePassBuilderOptions(void) {
  return reinterpret_cast<LLVMPassBuilderOptionsRef>(new char);
}

extern "C" void LLVMDisposePassBuilderOptions(LLVMPassBuilderOptionsRef options) {
  delete reinterpret_cast<char *>(options);
}
