// Reads HLO text or an HloProto with the parser of an installed TensorFlow's XLA, and verifies it.
//
//   read_hlo(data, bytes, is_proto, out, room)
//
// Returns 0 with the module's name in `out`, or 1 with what XLA says against it.
#include <cstdio>
#include <string>

#include "xla/hlo/ir/hlo_module.h"
#include "xla/hlo/parser/hlo_parser.h"
#include "xla/service/hlo.pb.h"
#include "xla/service/hlo_verifier.h"

static int Answer(const std::string& text, int code, char* out, long room) {
  std::snprintf(out, static_cast<size_t>(room), "%s", text.c_str());
  return code;
}

static absl::StatusOr<std::unique_ptr<xla::HloModule>> Read(const std::string& data, bool is_proto) {
  if (!is_proto) return xla::ParseAndReturnUnverifiedModule(data, xla::HloModuleConfig());
  xla::HloProto proto;
  if (!proto.ParseFromString(data)) return absl::InvalidArgumentError("this is no HloProto");
  auto config = xla::HloModule::CreateModuleConfigFromProto(proto.hlo_module(), xla::DebugOptions());
  if (!config.ok()) return config.status();
  return xla::HloModule::CreateFromProto(proto.hlo_module(), *config);
}

extern "C" int read_hlo(const char* data, long bytes, int is_proto, char* out, long room) {
  auto module = Read(std::string(data, static_cast<size_t>(bytes)), is_proto != 0);
  if (!module.ok()) return Answer(std::string(module.status().message()), 1, out, room);
  xla::HloVerifier verifier(/*layout_sensitive=*/false, /*allow_mixed_precision=*/false);
  auto verified = verifier.Run(module->get());
  if (!verified.ok()) return Answer(std::string(verified.status().message()), 1, out, room);
  return Answer((*module)->name(), 0, out, room);
}
