//===- Names.h - names of things in emitted programs ------------*- C++ -*-===//

#ifndef CODEGEN_NAMES_H
#define CODEGEN_NAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace mlir::fsdp {

/// The C++ identifier nearest to `text`: other characters than letters and digits become single
/// underscores, a leading digit gets a letter. "fc1.relu" gives `fc1_relu`, "" gives `value`.
std::string identifierFor(llvm::StringRef text);

/// `k` and the words of `text` with capitals: "compute fsdp" gives `kComputeFsdp`.
std::string enumeratorFor(llvm::StringRef text);

/// The model's name of the location `loc` ("fc1.relu.grad"), or "" if there is none.
llvm::StringRef nameOf(Location loc);

/// The operation part of a name, without the place: "fc1.relu.grad" gives "relu.grad".
llvm::StringRef actionOf(llvm::StringRef name);

/// `text` as the inside of a C++ string literal, in ASCII.
std::string escaped(llvm::StringRef text);

/// `text` for a comment, in ASCII: unchanged if it is plain, else escaped and in quotes.
std::string commentFor(llvm::StringRef text);

/// The names of one scope. They depend only on the order of the requests.
class Names {
public:
  /// Keywords, macros and the words of declarations are reserved; so are the names of the runtime
  /// that emitted code uses, unless all names of this scope are always qualified by `::`.
  explicit Names(bool qualified = false);
  /// An identifier for `text` that no earlier request has received: the second `relu` is `relu_2`.
  /// An identifier without a lower-case letter ends in `_`, as it might be a macro of a header.
  /// With `endings`, the identifier followed by one of them is also reserved.
  std::string unique(llvm::StringRef text, llvm::ArrayRef<std::string> endings = {});
  /// Reserves the unqualified names in the C++ `code`.
  void reserveWordsOf(llvm::StringRef code);

private:
  bool isTaken(llvm::StringRef name) const;

  const llvm::StringSet<> *reserved; ///< from the start
  llvm::StringSet<> taken;           ///< since
  /// By identifier, a number below which all are taken.
  llvm::StringMap<unsigned> next;
};

} // namespace mlir::fsdp

#endif // CODEGEN_NAMES_H
