//===- PlanPage.cpp -------------------------------------------------------===//

#include "passes/explain/PlanPage.h"
#include "passes/explain/PageData.h"
#include "passes/printing/ShardingGrid.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;
using namespace mlir::fsdp;

namespace {
/// page.html, style.css and script.js.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kTexts[] = {
#include "passes/explain/PageTexts.inc"
};

/// The most pictures, and names below each: a page stays readable.
constexpr size_t kMaxPictures = 60, kMaxNames = 12;
} // namespace

/// JSON inside <script>: nothing in it can end the element or begin a comment.
static std::string insideScript(const llvm::json::Value &value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (char c : llvm::formatv("{0}", value).str())
    if (c == '<')
      os << "\\u003c";
    else
      os << c;
  return text;
}

/// The pictures of `all` that are of parameters, or of other values.
static std::string listPictures(ArrayRef<ShardingPicture> all, bool ofParameters) {
  std::string text;
  llvm::raw_string_ostream os(text);
  size_t shown = 0, left = 0;
  for (const ShardingPicture &picture : all) {
    if (picture.ofParameters != ofParameters)
      continue;
    if (shown == kMaxPictures) {
      ++left;
      continue;
    }
    ++shown;
    os << "<figure>" << picture.svg << "<figcaption>";
    ArrayRef<std::string> names(picture.names);
    llvm::interleaveComma(names.take_front(kMaxNames), os,
                          [&](const std::string &name) { os << escapeMarkup(name); });
    if (names.size() > kMaxNames)
      os << " and " << names.size() - kMaxNames << " more";
    os << llvm::formatv("; {0:N} bytes on a rank</figcaption></figure>\n", picture.bytes);
  }
  if (shown == 0)
    os << "<p>none</p>\n";
  if (left > 0)
    os << "<p>" << left << " smaller ones are left out; --print-shardings lists all.</p>\n";
  return text;
}

std::string mlir::fsdp::writePage(const PlanPage &page, ModuleOp module,
                                  const StepSimulation &simulation) {
  llvm::json::Object data = describeStep(simulation);
  data["title"] = llvm::json::fixUTF8(page.title);
  data["command"] = llvm::json::fixUTF8(page.command);
  data["storages"] = describeStorages(module);
  data["report"] = page.report;
  std::map<StringRef, std::string> parts = {
      {"title", escapeMarkup(llvm::json::fixUTF8(page.title))},
      {"parameters", listPictures(page.shardings, true)},
      {"values", listPictures(page.shardings, false)},
      {"data", insideScript(std::move(data))}};
  for (const auto &[name, content] : kTexts)
    parts[name] = content.str();
  // Replaces the `{{name}}`s of the markup in one pass, so that text of the plan is never
  // substituted.
  std::string text;
  const std::string markup = parts.at("page");
  StringRef rest = markup;
  while (!rest.empty()) {
    auto [before, after] = rest.split("{{");
    text += before;
    auto [name, behind] = after.split("}}");
    if (!name.empty())
      text += parts.at(name);
    rest = behind;
  }
  return text;
}
