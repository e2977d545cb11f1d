//===- ShardSpec.h - placements as text -------------------------*- C++ -*-===//
//
// The SPEC of `--shard=PATTERN:SPEC`, for the pass that applies it and for the command line.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SHARDING_SHARDSPEC_H
#define PASSES_SHARDING_SHARDSPEC_H

#include "dialect/fsdp/FSDPDialect.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::fsdp {

/// How a parameter is stored, and how it is split in compute; one of them at least is given.
///
///   SPEC    = STORAGE | COMPUTE | COMPUTE "@" STORAGE
///   STORAGE = "replicated" | ("flat" | DIMENSION) ["(" AXES ")"]
///   COMPUTE = ENTRY {"," ENTRY}          one for each dimension
///   ENTRY   = "_" | AXES                 "_" is whole
///   AXES    = PART {"+" PART}            major to minor
///   PART    = AXIS [":(" BEFORE ")" SIZE]  the SIZE positions of an axis after the first BEFORE
struct ShardSpec {
  struct Storage {
    StorageKind kind = StorageKind::replicated;
    int64_t dim = -1;
    /// Empty where the strategy chooses them.
    std::vector<std::string> axes;
    bool operator==(const Storage &other) const {
      return kind == other.kind && dim == other.dim && axes == other.axes;
    }
  };
  std::optional<Storage> storage;
  /// The axes of each dimension.
  std::optional<std::vector<std::vector<std::string>>> compute;

  bool operator==(const ShardSpec &other) const {
    return storage == other.storage && compute == other.compute;
  }
  /// All axes that are named.
  std::vector<std::string> getAxes() const;
};

/// True for a name of an axis that options may use: a letter, then letters, digits and `_`, and not
/// a keyword of the options.
bool isAxisName(StringRef name);
/// `PATTERN` and `SPEC` of `PATTERN:SPEC`; SPEC is empty if there is no colon.
std::pair<StringRef, StringRef> splitShardPattern(StringRef text);
/// Parses `A+B`; nothing unless these are names of distinct axes, or of parts of axes that do not
/// overlap.
std::optional<std::vector<std::string>> parseAxisList(StringRef text);
/// Parses a SPEC; nothing where it is malformed. Dimensions and axes are not checked against a
/// parameter or a mesh.
std::optional<ShardSpec> parseShardSpec(StringRef text);
/// `PATTERN:SPEC` without the axes, and parts of axes, for which `keeps` is false: as on a mesh
/// where their size is 1.
std::string keepAxes(StringRef shard, llvm::function_ref<bool(StringRef)> keeps);
/// The STORAGE for which a parameter is stored as `layout`: "flat(fsdp+node)".
std::string spellStorage(LayoutAttr layout);
/// The form of a SPEC, for messages.
inline constexpr llvm::StringLiteral shardSpecForm =
    "flat, replicated or a dimension, each with axes as in flat(fsdp+node) if wanted, or an axis "
    "or _ for each "
    "dimension as in _,tensor or _,tensor@flat";

/// `--reshard-after-forward`: `always`, `never` or `axes:A+B`.
struct ReshardChoice {
  Reshard reshard;
  std::vector<std::string> axes;
};
std::optional<ReshardChoice> parseReshard(StringRef text);
inline constexpr llvm::StringLiteral reshardForm =
    "always, never or axes:A+B with names of different mesh axes";

} // namespace mlir::fsdp

#endif // PASSES_SHARDING_SHARDSPEC_H
