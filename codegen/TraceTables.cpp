//===- TraceTables.cpp ----------------------------------------------------===//

#include "codegen/TraceTables.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// From the first launch that touches a range of the arena to the last one.
struct Life {
  int64_t offset = 0, bytes = 0;
  int first = 0, last = 0; ///< launches, in issue order
};

} // namespace

/// The lifetimes of the buffers of a segment, in the order of their starts. Buffers that replace
/// each other in an in-place launch are one.
static std::vector<Life> livesOf(const ScheduledProgram &program, const Timeline &timeline) {
  llvm::MapVector<Operation *, Life> touched;
  for (auto [number, action] : llvm::enumerate(timeline.actions))
    for (Value value : action.launch.getBuffers()) {
      BufferOp buffer = bufferOf(value);
      if (buffer.getPersistent())
        continue;
      ArenaSpan span = program.spanOf(buffer);
      const int launch = static_cast<int>(number);
      touched.try_emplace(buffer, Life{span.offset, span.bytes, launch, launch})
          .first->second.last = launch;
    }
  std::vector<Life> lives;
  // Not a DenseMap: its hashes of multiples of the alignment collide.
  std::map<int64_t, size_t> latest; ///< life at each offset
  for (const auto &[buffer, life] : touched) {
    auto [at, isNew] = latest.try_emplace(life.offset, lives.size());
    Life *before = isNew ? nullptr : &lives[at->second];
    if (before && before->last == life.first && before->bytes == life.bytes) {
      before->last = life.last;
      continue;
    }
    at->second = lives.size();
    lives.push_back(life);
  }
  return lives;
}

/// Each launch that gathers, and the first launch on another stream that reads its result.
static std::vector<std::pair<int, int>> gatherUses(const Timeline &timeline) {
  struct Gather {
    int number;
    StringRef stream;
  };
  llvm::DenseMap<Operation *, Gather> gathered; ///< by buffer, until it is used
  std::vector<std::pair<int, int>> uses;
  for (auto [index, action] : llvm::enumerate(timeline.actions)) {
    const int number = static_cast<int>(index);
    LaunchOp launch = action.launch;
    for (Value value : launch.getIns()) {
      auto found = gathered.find(bufferOf(value));
      if (found == gathered.end() || found->second.stream == launch.getStream())
        continue;
      uses.push_back({found->second.number, number});
      gathered.erase(found);
    }
    if (isa<AllGatherOp>(launch.getBody().front().front()))
      for (Value value : launch.getOuts())
        gathered[bufferOf(value)] = {number, launch.getStream()};
  }
  return uses;
}

void mlir::fsdp::emitTraceTables(const ScheduledProgram &program, const Timeline &timeline,
                                 Writer &writer) {
  std::vector<std::string> streams, lives, uses;
  for (const Action &action : timeline.actions)
    streams.push_back(program.names.stream(action.launch.getStreamAttr()));
  for (const Life &life : livesOf(program, timeline))
    lives.push_back(("{" + llvm::Twine(life.bytes) + ", " + llvm::Twine(life.first) + ", " +
                     llvm::Twine(life.last) + "}")
                        .str());
  for (auto [gather, use] : gatherUses(timeline))
    uses.push_back("{" + std::to_string(gather) + ", " + std::to_string(use) + "}");
  writer.line("// For --trace: the stream of each launch; bytes that are alive from one launch to "
              "another;");
  writer.line("// gathers and their first uses.");
  writer.line("namespace traced {");
  std::vector<std::string> fields;
  auto array = [&](StringRef type, StringRef name, ArrayRef<std::string> items) {
    if (items.empty())
      return;
    writer.list(("constexpr " + type + " " + name + "[] = {").str(), items, "};");
    fields.push_back(("." + name + " = traced::" + name).str());
  };
  array("std::uint8_t", "streams", streams);
  array("BufferLife", "lives", lives);
  array("GatherUse", "uses", uses);
  writer.line("} // namespace traced");
  writer.list("constexpr SegmentTrace trace = {", fields, "};");
}

int64_t mlir::fsdp::persistentBytes(const ScheduledProgram &program) {
  int64_t bytes = 0;
  for (auto buffer : program.program.getBody().front().getOps<BufferOp>())
    bytes += program.spanOf(buffer).bytes;
  return bytes;
}
