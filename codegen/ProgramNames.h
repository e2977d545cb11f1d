//===- ProgramNames.h - names at the top of an emitted program --*- C++ -*-===//

#ifndef CODEGEN_PROGRAMNAMES_H
#define CODEGEN_PROGRAMNAMES_H

#include "codegen/CommunicatorKey.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <string>
#include <vector>

namespace mlir::fsdp {

struct ScheduledProgram;

/// The namespace of lists of roles.
inline constexpr llvm::StringLiteral kRoleSpace = "roles";

/// The identifiers of streams, communicators, axes, storages, inputs, events, segments and outputs
/// in emitted code: distinct even if names of the model are similar.
class ProgramNames {
public:
  /// Defined with the program, which it reads (ScheduledProgram.cpp).
  void create(const ScheduledProgram &program);

  // Enumerators.
  const std::string &stream(StringAttr name) const { return get(streams, name); }
  const std::string &communicator(const CommunicatorKey &key) const {
    return get(communicators, key);
  }
  const std::string &axis(StringAttr name) const { return get(axes, name); }
  const std::string &input(StringAttr name) const { return get(inputs, name); }
  const std::string &storage(StringAttr symbol) const { return get(storages, symbol); }
  /// An event of the program, by its number.
  const std::string &event(int number) const { return events[number]; }
  /// The number of a segment's first event; empty if the program has no events.
  const std::string &getFirstOwnEvent() const { return firstOwnEvent; }
  /// In the namespace of a segment: its events, which follow those of the program.
  const std::vector<std::string> &getOwnEvents(SegmentOp segment) const {
    return get(ownEvents, segment);
  }
  /// An event that `segment` waits for or records, by its number.
  const std::string &event(SegmentOp segment, size_t number) const {
    return number < events.size() ? events[number] : getOwnEvents(segment)[number - events.size()];
  }
  const std::string &output(SegmentOp segment, StringAttr name) const {
    return get(outputs, {segment, name});
  }
  // Tables.
  const std::string &members(StringAttr symbol) const { return get(memberTables, symbol); }
  const std::string &states(StringAttr symbol) const { return get(stateTables, symbol); }
  const std::string &walkRuns(StringAttr walk) const { return get(runTables, walk); }
  const std::string &walkOutputs(StringAttr walk) const { return get(outputTables, walk); }
  const std::string &walkChecks(StringAttr walk) const { return get(checkTables, walk); }
  // A namespace.
  const std::string &segment(SegmentOp op) const { return get(segments, op); }

private:
  template <typename Map>
  static const typename Map::mapped_type &get(const Map &map, const typename Map::key_type &key) {
    auto entry = map.find(key);
    assert(entry != map.end() && "named by create");
    return entry->second;
  }

  llvm::DenseMap<StringAttr, std::string> streams, axes, inputs, storages, memberTables,
      stateTables, runTables, outputTables, checkTables;
  std::vector<std::string> events;
  std::string firstOwnEvent;
  std::map<CommunicatorKey, std::string> communicators;
  llvm::DenseMap<Operation *, std::string> segments;
  llvm::DenseMap<Operation *, std::vector<std::string>> ownEvents;
  llvm::DenseMap<std::pair<Operation *, StringAttr>, std::string> outputs;
};

} // namespace mlir::fsdp

#endif // CODEGEN_PROGRAMNAMES_H
