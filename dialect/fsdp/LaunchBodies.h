//===- LaunchBodies.h - launches with equal bodies --------------*- C++ -*-===//
// The microbatches of a step and the layers of a model repeat launches. What follows from the body
// of a launch alone is found once for all launches with equal bodies.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECT_FSDP_LAUNCHBODIES_H
#define DIALECT_FSDP_LAUNCHBODIES_H

#include "dialect/fsdp/FSDPDialect.h"
#include <deque>
#include <unordered_map>

namespace mlir::fsdp {

/// True if the bodies of both launches are equal, except for locations.
bool haveEqualBodies(LaunchOp one, LaunchOp other);
/// A hash of the body, except for locations.
llvm::hash_code hashBody(LaunchOp launch);

/// A T for each body. The launches must exist while it is used.
template <typename T> class PerBody {
public:
  /// That of the body of `launch`, made by `make` for the first launch that has it. The reference
  /// remains valid.
  template <typename Make> const T &get(LaunchOp launch, Make make) {
    SmallVector<const Entry *, 1> &alike = byHash[hashBody(launch)];
    for (const Entry *entry : alike)
      if (haveEqualBodies(entry->first, launch))
        return entry->second;
    alike.push_back(&entries.emplace_back(launch, make(launch)));
    return alike.back()->second;
  }

private:
  using Entry = std::pair<LaunchOp, T>;

  std::deque<Entry> entries;
  std::unordered_map<size_t, SmallVector<const Entry *, 1>> byHash;
};

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_LAUNCHBODIES_H
