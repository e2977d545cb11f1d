//===- Messages.cpp -------------------------------------------------------===//

#include "tools/output/Messages.h"

#include "dialect/fsdp/ModelWords.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace fsdpc {

/// How many bytes the character at the start of `text` has; 0 where it is not printed as it is.
static size_t getPrintableLength(llvm::StringRef text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80)
    return first == '\n' || first == '\t' || (first >= 0x20 && first != 0x7f);
  const size_t length = llvm::getNumBytesForUTF8(first);
  if (length > text.size())
    return 0;
  const auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.begin());
  const bool isControl =
      first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0; // U+0080 to U+009F
  return !isControl && llvm::isLegalUTF8Sequence(begin, begin + length) ? length : 0;
}

static std::string escapeControls(llvm::StringRef text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = getPrintableLength(text);
    if (length > 0)
      result += text.take_front(length);
    else
      result += {'\\', 'x', llvm::hexdigit(static_cast<unsigned char>(text[0]) >> 4),
                 llvm::hexdigit(text[0] & 15)};
    text = text.drop_front(std::max<size_t>(length, 1));
  }
  return result;
}

std::string printableMessage(llvm::StringRef message) {
  constexpr size_t most = 4000, kept = 1000;
  if (message.size() <= most)
    return escapeControls(message);
  const size_t left = message.size() - 2 * kept;
  return escapeControls(message.take_front(kept)) + " ... (" + std::to_string(left) +
         " bytes left out) ... " + escapeControls(message.take_back(kept));
}

bool isText(llvm::StringRef content) {
  const auto *next = reinterpret_cast<const llvm::UTF8 *>(content.begin());
  return llvm::isLegalUTF8String(&next, reinterpret_cast<const llvm::UTF8 *>(content.end())) &&
         llvm::none_of(content, [](char c) {
           return c == 0x7f || (static_cast<unsigned char>(c) < 0x20 && !llvm::isSpace(c));
         });
}

static llvm::StringRef nameOf(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("unknown severity");
}

DiagnosticPrinter::DiagnosticPrinter(llvm::SourceMgr &sources, MLIRContext *context)
    : SourceMgrDiagnosticHandler(sources, context) {
  setHandler([this](Diagnostic &diagnostic) {
    print(diagnostic.getLocation(), diagnostic.getSeverity(), diagnostic.str());
    for (Diagnostic &note : diagnostic.getNotes())
      print(note.getLocation(), note.getSeverity(), note.str());
  });
}

void DiagnosticPrinter::print(Location location, DiagnosticSeverity severity,
                              const std::string &message) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  const bool inWordsOfModel = !program.empty();
  const std::string text =
      printableMessage(inWordsOfModel ? mlir::fsdp::inWordsOfModel(message, location) : message);
  if (!place || (!inWordsOfModel && severity != DiagnosticSeverity::Remark && isShown(place)))
    return emitDiagnostic(location, text, severity);
  const bool isInLibrary = isOfLibrary && isOfLibrary(place.getFilename().strref());
  llvm::errs() << printableMessage(isInLibrary ? program : place.getFilename().str());
  if (place.getLine() > 0 && !isInLibrary)
    llvm::errs() << ":" << place.getLine();
  if (place.getLine() > 0 && !inWordsOfModel)
    llvm::errs() << ":" << place.getColumn();
  llvm::errs() << ": " << nameOf(severity) << ": " << text << "\n";
}

/// Whether the line at `place` is printed: not if it is longer than a message or contains terminal
/// control characters.
bool DiagnosticPrinter::isShown(FileLineColLoc place) {
  if (mgr.getNumBuffers() == 0)
    return true;
  llvm::SMLoc begin = mgr.FindLocForLineAndColumn(mgr.getMainFileID(), place.getLine(), 1);
  if (!begin.isValid())
    return true;
  const llvm::MemoryBuffer *buffer = mgr.getMemoryBuffer(mgr.getMainFileID());
  llvm::StringRef line =
      llvm::StringRef(begin.getPointer(), buffer->getBufferEnd() - begin.getPointer())
          .take_until([](char c) { return c == '\n'; });
  return line.size() <= 1000 && escapeControls(line) == line;
}

} // namespace fsdpc
