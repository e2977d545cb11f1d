//===- ShardSpec.cpp - placements as text ---------------------------------===//

#include "passes/ShardSpec.h"
#include "cli/Numbers.h"
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
  return !name.empty() && llvm::isAlpha(name.front()) &&
         llvm::all_of(name, [](char c) { return llvm::isAlnum(c) || c == '_'; }) &&
         !llvm::is_contained({"flat", "replicated", "always", "never", "axes"}, name);
}

std::optional<std::vector<std::string>> mlir::fsdp::parseAxisList(StringRef text) {
  std::vector<std::string> axes;
  for (StringRef axis : llvm::split(text, '+')) {
    if (!isAxisName(axis) || llvm::is_contained(axes, axis))
      return std::nullopt;
    axes.push_back(axis.str());
  }
  return axes;
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
  if (!cli::parseInteger(std::string_view(kind), cli::IntegerRange<int64_t>{0, INT64_MAX}, storage.dim)
           .empty())
    return std::nullopt;
  return storage;
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
