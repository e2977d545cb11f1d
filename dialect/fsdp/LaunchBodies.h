//===- LaunchBodies.h - launches with equal bodies --------------*- C++ -*-===//
// The microbatches of a step and the layers of a model repeat launches. A property that follows
// from the body of a launch alone is computed once for all launches with equal bodies.
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

/// Launches with equal bodies are alike.
struct EqualBodies {
  static size_t hash(LaunchOp launch) { return hashBody(launch); }
  static bool areAlike(LaunchOp one, LaunchOp other) { return haveEqualBodies(one, other); }
};

/// A T for each class of launches that are alike. The launches must exist while it is used.
template <typename T, typename Likeness = EqualBodies> class PerLaunchClass {
public:
  /// That of `launch`, made by `make` for the first launch of its class; null if `make`, which may
  /// return a FailureOr<T>, fails. The pointer remains valid.
  template <typename Make> const T *find(LaunchOp launch, Make make) {
    SmallVector<const Entry *, 1> &alike = byHash[Likeness::hash(launch)];
    for (const Entry *entry : alike)
      if (Likeness::areAlike(entry->first, launch))
        return &entry->second;
    FailureOr<T> made = make(launch);
    if (failed(made))
      return nullptr;
    alike.push_back(&entries.emplace_back(launch, std::move(*made)));
    return &alike.back()->second;
  }

private:
  using Entry = std::pair<LaunchOp, T>;

  std::deque<Entry> entries;
  std::unordered_map<size_t, SmallVector<const Entry *, 1>> byHash;
};

} // namespace mlir::fsdp

#endif // DIALECT_FSDP_LAUNCHBODIES_H
