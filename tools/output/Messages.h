//===- Messages.h - messages on standard error ------------------*- C++ -*-===//
// Messages quote user input: options, names of files, names and lines of models. They are printed
// by base::printableLines.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_OUTPUT_MESSAGES_H
#define TOOLS_OUTPUT_MESSAGES_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"
#include <string>
#include <string_view>

namespace fsdpc {

/// Whether all of `content` is characters: UTF-8 without those that control a terminal. A
/// diagnostic shows lines of it.
bool isText(llvm::StringRef content);

/// Prints the diagnostics of a context, with their source line if it is short enough to read.
/// Remarks have one line each.
class DiagnosticPrinter : public mlir::SourceMgrDiagnosticHandler {
public:
  DiagnosticPrinter(llvm::SourceMgr &sources, mlir::MLIRContext *context);

  /// Declares that a C++ program describes the model: messages are then `FILE:LINE: error: ...`,
  /// with the names of its author. Messages without a source line name only the program, `name`,
  /// and so do messages about sources that `isOfLibrary`.
  using IsOfLibrary = bool (*)(std::string_view file);
  void describesProgram(std::string name, IsOfLibrary isOfLibrary) {
    program = std::move(name);
    this->isOfLibrary = isOfLibrary;
  }

private:
  void print(mlir::Location location, mlir::DiagnosticSeverity severity,
             const std::string &message);
  bool isShown(mlir::FileLineColLoc place);

  std::string program; ///< that describes the model; empty for a file of it
  IsOfLibrary isOfLibrary = nullptr;
};

} // namespace fsdpc

#endif // TOOLS_OUTPUT_MESSAGES_H
