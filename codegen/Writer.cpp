//===- Writer.cpp ---------------------------------------------------------===//

#include "codegen/Writer.h"

#include "llvm/ADT/STLExtras.h"
#include <vector>

using namespace mlir::fsdp;

static constexpr size_t columns = 100;

void Writer::line(const llvm::Twine &text) {
  std::string content = text.str();
  if (!content.empty())
    buffer.append(2 * depth, ' ');
  buffer += content;
  buffer += '\n';
}

namespace {
struct Part {
  std::string text;
  bool fresh; ///< begins a line
};
} // namespace

/// `item` after each of its commas that stand in no more than `depth` brackets.
static std::vector<std::string> split(const std::string &item, int depth) {
  std::vector<std::string> pieces;
  size_t begin = 0;
  int nesting = 0;
  bool quoted = false;
  for (size_t i = 0; i < item.size(); ++i) {
    char c = item[i];
    quoted ^= c == '"';
    if (quoted) {
      i += c == '\\'; // what it escapes ends nothing
      continue;
    }
    nesting += c == '(' || c == '{' || c == '[';
    nesting -= c == ')' || c == '}' || c == ']';
    if (c == ',' && nesting <= depth) {
      pieces.push_back(item.substr(begin, i - begin));
      begin = i + 2;
    }
  }
  pieces.push_back(item.substr(begin));
  return pieces;
}

/// An item that no line has room for begins a line, and is cut after the commas of its outermost
/// brackets; where that is not enough, of the brackets in those.
static void cut(const std::string &item, size_t room, std::vector<Part> &parts) {
  if (item.size() <= room) {
    parts.push_back({item, false});
    return;
  }
  std::vector<std::string> pieces;
  for (int depth = 1; depth <= 3; ++depth) {
    pieces = split(item, depth);
    if (llvm::all_of(pieces, [&](const std::string &piece) { return piece.size() <= room; }))
      break;
  }
  for (size_t i = 0; i < pieces.size(); ++i)
    parts.push_back({pieces[i], i == 0});
}

void Writer::list(llvm::StringRef head, llvm::ArrayRef<std::string> items, llvm::StringRef tail) {
  std::vector<Part> parts;
  size_t indent = 2 * depth;
  for (const std::string &item : items)
    cut(item, columns - indent - 4, parts);
  std::string current = head.str();
  bool first = true; // nothing of the list stands on the current line
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string part = parts[i].text + (i + 1 == parts.size() ? tail.str() : std::string(","));
    size_t width = indent + current.size() + (first ? 0 : 1) + part.size();
    if ((width > columns || parts[i].fresh) && !(first && i > 0)) {
      buffer.append(indent, ' ');
      buffer += current + "\n";
      current.clear();
      indent = 2 * depth + 4;
      first = true;
    }
    current += (first ? "" : " ") + part;
    first = false;
  }
  if (parts.empty())
    current += tail;
  buffer.append(indent, ' ');
  buffer += current + "\n";
}

void Writer::open(const llvm::Twine &text) {
  line(text + " {");
  ++depth;
}

void Writer::close(const llvm::Twine &tail) {
  --depth;
  line("}" + tail);
}

void Writer::lines(llvm::StringRef text) {
  while (!text.empty()) {
    auto [first, rest] = text.split('\n');
    line(first);
    text = rest;
  }
}
