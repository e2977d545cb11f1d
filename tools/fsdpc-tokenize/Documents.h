//===- Documents.h - documents of text and JSON files -----------*- C++ -*-===//

#ifndef TOOLS_FSDPC_TOKENIZE_DOCUMENTS_H
#define TOOLS_FSDPC_TOKENIZE_DOCUMENTS_H

#include "base/MappedFile.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fsdpc {

/// How documents are read.
struct DocumentOptions {
  std::string field = "text"; ///< of a line's JSON object
  /// Bytes and escapes that are no character become U+FFFD; else they are an error.
  bool replaceInvalid = false;
};

/// A document in its file, not yet read. The file stays mapped as long.
struct Document {
  std::shared_ptr<const base::MappedFile> file;
  std::string_view bytes; ///< the whole file, or a line
  std::size_t line = 0;   ///< from 1; 0: the whole file

  /// Its text, valid UTF-8; a view of `storage` or of the file. Error: a line that is no JSON
  /// object with the field, or text that is not valid.
  std::string_view read(const DocumentOptions &options, std::string &storage) const;
};

/// The documents of files, in order: a file whose name ends with .jsonl or .ndjson has one a line
/// (blank lines are none), another file is one.
class DocumentSource {
public:
  /// Error: an input is missing, or no regular file.
  explicit DocumentSource(std::vector<std::string> paths);

  /// Appends documents until their files have `bytes` bytes of them, or all are read; false if none
  /// was left. Error: a file cannot be read.
  bool next(std::size_t bytes, std::vector<Document> &documents);

private:
  bool openNext();

  const std::vector<std::string> paths;
  std::size_t index = 0;
  std::shared_ptr<const base::MappedFile> file;
  std::size_t at = 0, line = 0;
  bool isLines = false;
};

} // namespace fsdpc

#endif // TOOLS_FSDPC_TOKENIZE_DOCUMENTS_H
