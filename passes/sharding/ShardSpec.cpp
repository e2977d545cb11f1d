//===- ShardSpec.cpp - placements as text ---------------------------------===//

#include "passes/sharding/ShardSpec.h"
#include "base/Numbers.h"
#include "dialect/fsdp/AxisParts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fsdp;

std::vector<std::string> ShardSpec::getAxes() const {
  std::vector<std::string> axes;
  if (storage)
    axes = storage->axes;
  if (compute)
    for (const std::vector<std::string> &dim : *compute)
      axes.insert(axes.end(), dim.begin(), dim.end());
  return axes;
}

bool mlir::fsdp::isAxisName(StringRef name) {
  std::optional<AxisPart> part = parseAxisPart(name);
  return part && part->isWhole() &&
         !llvm::is_contained({"flat", "replicated", "always", "never", "axes"}, name);
}

std::optional<std::vector<std::string>> mlir::fsdp::parseAxisList(StringRef text) {
  std::vector<std::string> axes;
  for (StringRef axis : llvm::split(text, '+')) {
    std::optional<AxisPart> part = parseAxisPart(axis);
    if (!part || !isAxisName(part->axis) ||
        llvm::any_of(axes, [&](const std::string &other) { return overlap(other, axis); }))
      return std::nullopt;
    axes.push_back(axis.str());
  }
  return axes;
}

std::pair<StringRef, StringRef> mlir::fsdp::splitShardPattern(StringRef text) {
  size_t colon = text.rfind(':');
  while (colon != StringRef::npos && text.substr(colon + 1).starts_with("("))
    colon = colon == 0 ? StringRef::npos : text.take_front(colon).rfind(':');
  return colon == StringRef::npos ? std::pair(text, StringRef())
                                  : std::pair(text.take_front(colon), text.substr(colon + 1));
}

static std::optional<ShardSpec::Storage> parseStorage(StringRef text) {
  ShardSpec::Storage storage;
  if (text == "replicated")
    return storage;
  auto [kind, rest] = text.split('(');
  if (kind.size() < text.size()) {
    std::optional<std::vector<std::string>> axes;
    if (rest.consume_back(")"))
      axes = parseAxisList(rest);
    if (!axes)
      return std::nullopt;
    storage.axes = *axes;
  }
  if (kind == "flat") {
    storage.kind = StorageKind::flat;
    return storage;
  }
  storage.kind = StorageKind::dimension;
  if (!base::parseInteger(std::string_view(kind), base::IntegerRange<int64_t>{0, INT64_MAX},
                          storage.dim)
           .empty())
    return std::nullopt;
  return storage;
}

/// The STORAGE that is parsed as `storage`.
static std::string spell(const ShardSpec::Storage &storage) {
  if (storage.kind == StorageKind::replicated)
    return "replicated";
  std::string kind = storage.kind == StorageKind::flat ? "flat" : std::to_string(storage.dim);
  return storage.axes.empty() ? kind : kind + "(" + llvm::join(storage.axes, "+") + ")";
}

std::string mlir::fsdp::spellStorage(LayoutAttr layout) {
  ShardSpec::Storage storage{layout.getKind(), layout.getDim(), {}};
  for (StringAttr axis : layout.getAxes())
    storage.axes.push_back(axis.str());
  return spell(storage);
}

static std::optional<std::vector<std::vector<std::string>>> parseCompute(StringRef text) {
  std::vector<std::vector<std::string>> dims;
  for (StringRef entry : llvm::split(text, ',')) {
    dims.emplace_back();
    if (entry == "_")
      continue;
    std::optional<std::vector<std::string>> axes = parseAxisList(entry);
    if (!axes)
      return std::nullopt;
    dims.back() = *axes;
  }
  return dims;
}

std::optional<ShardSpec> mlir::fsdp::parseShardSpec(StringRef text) {
  ShardSpec spec;
  size_t at = text.find('@');
  if (at != StringRef::npos) {
    spec.storage = parseStorage(text.substr(at + 1));
    spec.compute = parseCompute(text.take_front(at));
    return spec.storage && spec.compute ? std::optional(spec) : std::nullopt;
  }
  spec.storage = parseStorage(text);
  if (!spec.storage)
    spec.compute = parseCompute(text);
  return spec.storage || spec.compute ? std::optional(spec) : std::nullopt;
}

std::string mlir::fsdp::keepAxes(StringRef shard, llvm::function_ref<bool(StringRef)> keeps) {
  auto [pattern, text] = splitShardPattern(shard);
  std::optional<ShardSpec> spec = parseShardSpec(text);
  if (!spec)
    return shard.str();
  auto keep = [&](std::vector<std::string> &axes) {
    llvm::erase_if(axes, [&](const std::string &axis) { return !keeps(axisOf(axis)); });
  };
  std::string kept;
  if (spec->compute)
    for (auto [index, dim] : llvm::enumerate(*spec->compute)) {
      keep(dim);
      kept += (index == 0 ? "" : ",") + (dim.empty() ? "_" : llvm::join(dim, "+"));
    }
  if (spec->storage) {
    ShardSpec::Storage &storage = *spec->storage;
    const bool named = !storage.axes.empty();
    keep(storage.axes);
    if (named && storage.axes.empty()) // over one rank
      storage.kind = StorageKind::replicated;
    kept += (spec->compute ? "@" : "") + spell(storage);
  }
  return (pattern + ":" + kept).str();
}

std::optional<ReshardChoice> mlir::fsdp::parseReshard(StringRef text) {
  if (text == "always")
    return ReshardChoice{Reshard::always, {}};
  if (text == "never")
    return ReshardChoice{Reshard::never, {}};
  if (!text.consume_front("axes:"))
    return std::nullopt;
  std::optional<std::vector<std::string>> axes = parseAxisList(text);
  if (!axes)
    return std::nullopt;
  return ReshardChoice{Reshard::axes, *axes};
}
