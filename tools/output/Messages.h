//===- Messages.h - messages on standard error ------------------*- C++ -*-===//
//
// Messages quote what users give: options, names of files, names and lines of models. None of it
// reaches a terminal as a command, and none of it fills a screen.
//
//===----------------------------------------------------------------------===//

#ifndef TOOLS_OUTPUT_MESSAGES_H
#define TOOLS_OUTPUT_MESSAGES_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"
#include <string>

namespace fsdpc {

/// `message` as it is printed: control characters but line ends, and bytes that are not UTF-8, as
/// `\1B`; of a message of more than 4000 bytes the beginning and the end.
std::string printableMessage(llvm::StringRef message);

/// Whether all of `content` is characters: UTF-8 without those that control a terminal. A
/// diagnostic shows lines of it.
bool isText(llvm::StringRef content);

/// Prints the diagnostics of a context, with the line of the source that they are about where it is
/// short enough to read. Remarks have one line each.
class DiagnosticPrinter : public mlir::SourceMgrDiagnosticHandler {
public:
  DiagnosticPrinter(llvm::SourceMgr &sources, mlir::MLIRContext *context);

  /// From now on the model is one that a program describes, in C++: messages are `FILE:LINE: error:
  /// ...`, in the words of its author. What concerns none of its lines is said of its program
  /// alone.
  void describesProgram() { inWordsOfModel = true; }

private:
  void print(mlir::Location location, mlir::DiagnosticSeverity severity,
             const std::string &message);
  bool isShown(mlir::FileLineColLoc place);

  bool inWordsOfModel = false;
};

} // namespace fsdpc

#endif // TOOLS_OUTPUT_MESSAGES_H
