//===- Messages.cpp -------------------------------------------------------===//

#include "tools/output/Messages.h"

#include "base/PrintableText.h"
#include "base/Utf8.h"
#include "dialect/fsdp/ModelWords.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace fsdpc {

bool isText(llvm::StringRef content) {
  return base::findInvalid(content) == std::string_view::npos && llvm::none_of(content, [](char c) {
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
  const std::string text = base::printableLines(
      inWordsOfModel ? mlir::fsdp::inWordsOfModel(message, location) : message);
  if (!place || (!inWordsOfModel && severity != DiagnosticSeverity::Remark && isShown(place)))
    return emitDiagnostic(location, text, severity);
  const bool isInLibrary = isOfLibrary && isOfLibrary(place.getFilename().strref());
  llvm::errs() << base::printableLines(isInLibrary ? program : place.getFilename().str());
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
  return line.size() <= 1000 && base::printableLines(line) == line;
}

} // namespace fsdpc
