// The linker that comes with tfaot: LLVM's, for ELF (`-flavor gnu`) and Mach-O (`-flavor darwin`).
//
// What it would do with LLVM's bitcode and with profiles is left out, as that is most of its code: the functions below stand in the
// place of LLVM's, and are linked before them. tfaot hands it objects alone.
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "lld/Common/Driver.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/CodeGen/CommandFlags.h"
#include "llvm/LTO/LTO.h"
#include "llvm/Object/IRObjectFile.h"
#include "llvm/ProfileData/InstrProfReader.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

LLD_HAS_DRIVER(elf)
LLD_HAS_DRIVER(macho)

int main(int count, char **words) {
  if (count < 3 || std::strcmp(words[1], "-flavor")) {
    errs() << "usage: lld -flavor gnu|darwin ...\n";
    return 2;
  }
  SmallVector<const char *, 0> args(words + 2, words + count);
  auto link = std::strcmp(words[2], "darwin") ? lld::elf::link : lld::macho::link;
  args[0] = words[0];
  return !link(args, outs(), errs(), /*exitEarly=*/true, /*disableOutput=*/false);
}

static Error none() { return createStringError("this linker takes no bitcode and no profiles"); }

// One is made for every link, is given each file of bitcode, and compiles them: none. LLVM's own classes are larger; nothing here
// looks into them, and the program ends without destroying them.
namespace lld::elf {
struct Ctx;
class BitcodeFile;
struct BitcodeCompiler {
  BitcodeCompiler(Ctx &);
  ~BitcodeCompiler();
  void add(BitcodeFile &);
  SmallVector<void *, 0> compile();
};
BitcodeCompiler::BitcodeCompiler(Ctx &) {}
BitcodeCompiler::~BitcodeCompiler() = default;
void BitcodeCompiler::add(BitcodeFile &) { report_fatal_error(none()); }
SmallVector<void *, 0> BitcodeCompiler::compile() { return {}; }
}  // namespace lld::elf

namespace lld::macho {
class BitcodeFile;
struct BitcodeCompiler {
  BitcodeCompiler();
  void add(BitcodeFile &);
  std::vector<void *> compile();
};
BitcodeCompiler::BitcodeCompiler() {}
void BitcodeCompiler::add(BitcodeFile &) { report_fatal_error(none()); }
std::vector<void *> BitcodeCompiler::compile() { return {}; }
}  // namespace lld::macho

Expected<std::unique_ptr<lto::InputFile>> lto::InputFile::create(MemoryBufferRef) { return none(); }
lto::InputFile::~InputFile() = default;
SmallVector<const char *> lto::LTO::getRuntimeLibcallSymbols(const Triple &) { return {}; }
Expected<MemoryBufferRef> object::IRObjectFile::findBitcodeInMemBuffer(MemoryBufferRef) { return none(); }
Expected<bool> llvm::isBitcodeContainingObjCCategory(MemoryBufferRef) { return none(); }
codegen::RegisterCodeGenFlags::RegisterCodeGenFlags() {}
Expected<std::unique_ptr<InstrProfReader>> InstrProfReader::create(const Twine &, vfs::FileSystem &, const InstrProfCorrelator *,
                                                                   const object::BuildIDFetcher *,
                                                                   InstrProfCorrelator::ProfCorrelatorKind,
                                                                   std::function<void(Error)>) {
  return none();
}
