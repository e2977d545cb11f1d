//===- ShardingEntries.cpp - how a model writes a sharding ----------------===//

#include "dsl/ShardingEntries.h"

#include "dialect/fsdp/AxisParts.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace ir = mlir::fsdp;

namespace fsdp::dsl {

SmallVector<ShardingEntry>
parseShardingEntries(Builder &builder, const std::string &sharding, int64_t rank,
                     llvm::function_ref<void(const std::string &)> fail) {
  SmallVector<StringRef> parts;
  StringRef(sharding).split(parts, ',');
  if (rank == 0 || static_cast<int64_t>(parts.size()) != rank)
    fail("'" + sharding + "' has " + std::to_string(parts.size()) +
         (parts.size() == 1 ? " entry" : " entries") + ", expected " + std::to_string(rank) +
         ", one for each dimension ('_' for an unsharded one)");
  SmallVector<ShardingEntry> entries;
  SmallVector<StringAttr> used;
  for (StringRef part : parts) {
    ShardingEntry &entry = entries.emplace_back();
    SmallVector<StringRef> axes;
    part.trim().split(axes, '+');
    for (StringRef axis : axes) {
      if (axis == "_" && axes.size() == 1)
        continue;
      if (axis == "?" && axis.data() == axes.back().data()) {
        entry.open = true;
        continue;
      }
      if (!ir::parseAxisPart(axis)) {
        const auto *other = llvm::find_if(axis, [](char c) {
          return !llvm::isAlnum(c) && c != '_' && !llvm::is_contained("?:()", c);
        });
        fail("'" + sharding + "' has '" + part.str() +
             "', expected '_', or axes joined by '+' and followed by '?' if more may be added" +
             (other == axis.end()
                  ? std::string("; a part of an axis is written as tensor:(1)2")
                  : std::string("; names of axes are letters, digits and '_', and have no '") +
                        *other + "'"));
      }
      StringAttr name = builder.getStringAttr(axis);
      if (llvm::is_contained(used, name))
        fail("'" + sharding + "' names axis '" + axis.str() +
             "' twice; an axis splits one dimension");
      for (StringAttr other : used)
        if (ir::overlap(other, axis))
          fail("'" + sharding + "' names '" + other.str() + "' and '" + axis.str() +
               "', which overlap; a part of an axis splits one dimension");
      used.push_back(name);
      entry.axes.push_back(name);
    }
  }
  return entries;
}

} // namespace fsdp::dsl
