//===- Writer.cpp ---------------------------------------------------------===//

#include "codegen/Writer.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"

using namespace mlir::fsdp;

static constexpr size_t columns = 100;

void Writer::line(const llvm::Twine &text) {
  llvm::SmallString<128> storage;
  llvm::StringRef content = text.toStringRef(storage);
  if (!content.empty())
    buffer.append(2 * depth, ' ');
  buffer += content;
  buffer += '\n';
}

namespace {
/// Of an item.
struct Part {
  llvm::StringRef text;
  bool fresh; ///< begins a line
};
using Parts = llvm::SmallVector<Part, 32>;
} // namespace

/// Splits `item` after each comma inside at most `depth` brackets.
static llvm::SmallVector<llvm::StringRef> split(llvm::StringRef item, int depth) {
  llvm::SmallVector<llvm::StringRef> pieces;
  size_t begin = 0;
  int nesting = 0;
  bool quoted = false;
  for (size_t i = 0; i < item.size(); ++i) {
    char c = item[i];
    quoted ^= c == '"';
    if (quoted) {
      i += c == '\\'; // an escaped quote does not end the literal
      continue;
    }
    nesting += c == '(' || c == '{' || c == '[';
    nesting -= c == ')' || c == '}' || c == ']';
    if (c == ',' && nesting <= depth) {
      pieces.push_back(item.slice(begin, i));
      begin = i + 2;
    }
  }
  pieces.push_back(item.substr(begin));
  return pieces;
}

/// An item that no line has room for begins a line, and is cut after the commas of its outermost
/// brackets; where that is not enough, of the brackets in those.
static void cut(llvm::StringRef item, size_t room, Parts &parts) {
  if (item.size() <= room) {
    parts.push_back({item, false});
    return;
  }
  llvm::SmallVector<llvm::StringRef> pieces;
  for (int depth = 1; depth <= 3; ++depth) {
    pieces = split(item, depth);
    if (llvm::all_of(pieces, [&](llvm::StringRef piece) { return piece.size() <= room; }))
      break;
  }
  for (size_t i = 0; i < pieces.size(); ++i)
    parts.push_back({pieces[i], i == 0});
}

void Writer::list(llvm::StringRef head, llvm::ArrayRef<std::string> items, llvm::StringRef tail) {
  Parts parts;
  for (const std::string &item : items)
    cut(item, columns - 2 * depth - 4, parts);
  size_t indent = 2 * depth;
  buffer.append(indent, ' ');
  size_t begin = buffer.size(); // of the current line, after its indentation
  buffer += head;
  bool first = true; // the current line has no item of the list
  for (size_t i = 0; i < parts.size(); ++i) {
    llvm::StringRef behind = i + 1 == parts.size() ? tail : ",";
    size_t width =
        indent + (buffer.size() - begin) + (first ? 0 : 1) + parts[i].text.size() + behind.size();
    if ((width > columns || parts[i].fresh) && !(first && i > 0)) {
      buffer += '\n';
      indent = 2 * depth + 4;
      buffer.append(indent, ' ');
      begin = buffer.size();
      first = true;
    }
    if (!first)
      buffer += ' ';
    buffer += parts[i].text;
    buffer += behind;
    first = false;
  }
  if (parts.empty())
    buffer += tail;
  buffer += '\n';
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
