//===- Writer.h - indented text, wrapped at 100 columns ---------*- C++ -*-===//

#ifndef CODEGEN_WRITER_H
#define CODEGEN_WRITER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/Twine.h"
#include <string>
#include <utility>

namespace mlir::fsdp {

/// The text of one file.
class Writer {
public:
  /// One line at the present depth; an empty one has no blanks.
  void line(const llvm::Twine &text = "");
  /// `head` item, item, ... `tail`, broken after commas (also those inside an item that is too
  /// long) where a line would be too long; continuation lines are indented by four.
  void list(llvm::StringRef head, llvm::ArrayRef<std::string> items, llvm::StringRef tail);
  /// A line that ends with an open brace; the following lines are one level deeper.
  void open(const llvm::Twine &text);
  /// The brace that ends it, and the text after it.
  void close(const llvm::Twine &tail = "");
  /// Lines that are complete already, each at the present depth.
  void lines(llvm::StringRef text);

  /// An empty text one level deeper, to be appended.
  Writer nested() const {
    Writer inner;
    inner.depth = depth + 1;
    return inner;
  }
  void append(const Writer &inner) { buffer += inner.buffer; }

  const std::string &text() const { return buffer; }
  /// The text, which is empty afterwards.
  std::string take() { return std::exchange(buffer, {}); }
  /// Expects a text of about so many bytes.
  void reserve(size_t bytes) { buffer.reserve(bytes); }

private:
  std::string buffer;
  unsigned depth = 0;
};

} // namespace mlir::fsdp

#endif // CODEGEN_WRITER_H
