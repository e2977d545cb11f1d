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
  std::string separator;      ///< between the documents of a text; "": the text is one
  /// Bytes and escapes that are not characters become U+FFFD; otherwise they are an error.
  bool replaceInvalid = false;
};

/// A document in its file, not yet read. The file stays mapped as long.
struct Document {
  std::shared_ptr<const base::MappedFile> file;
  std::string_view bytes; ///< the whole file, or a part of it
  enum Kind { Whole, Part, Line } kind = Whole;
  std::size_t number = 0; ///< of the part or the line, from 1

  /// Its text, valid UTF-8; a view of `storage` or of the file. Throws an error for a line that is
  /// not a JSON object with the field, or for invalid text.
  std::string_view read(const DocumentOptions &options, std::string &storage) const;

  /// Error: the file, the document in it, and `why`.
  [[noreturn]] void refuse(const std::string &why) const;
};

/// The documents of files, in order: a file whose name ends with .jsonl or .ndjson has one per line
/// (blank lines are skipped), any other file is one document, or several with a separator between
/// them (documents of white space are skipped).
class DocumentSource {
public:
  /// Error: an input is missing, or no regular file.
  DocumentSource(std::vector<std::string> paths, std::string separator);

  /// Appends documents until they take `bytes` bytes of their files, or all are read; false if no
  /// document remained. Throws an error if a file cannot be read.
  bool next(std::size_t bytes, std::vector<Document> &documents);

private:
  bool openNext();

  const std::vector<std::string> paths;
  const std::string separator;
  std::size_t index = 0;
  std::shared_ptr<const base::MappedFile> file;
  std::size_t at = 0, number = 0;
  Document::Kind kind = Document::Whole; ///< of the documents of `file`
};

} // namespace fsdpc

#endif // TOOLS_FSDPC_TOKENIZE_DOCUMENTS_H
