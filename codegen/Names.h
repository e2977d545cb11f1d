//===- Names.h - names of things in emitted programs ------------*- C++ -*-===//

#ifndef CODEGEN_NAMES_H
#define CODEGEN_NAMES_H

#include "mlir/IR/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"
#include <string>

namespace mlir::fsdp {

/// The C++ identifier nearest to `text`: other characters than letters and digits become single
/// underscores, a leading digit gets a letter. "fc1.relu" gives `fc1_relu`, "" gives `value`.
std::string identifierFor(llvm::StringRef text);

/// `k` and the words of `text` with capitals: "compute fsdp" gives `kComputeFsdp`.
std::string enumeratorFor(llvm::StringRef text);

/// The name that the model gave to the place `loc` ("fc1.relu.grad"), or "" where there is none.
llvm::StringRef nameOf(Location loc);

/// The end of a name that says what is done, without where: "fc1.relu.grad" gives "relu.grad".
llvm::StringRef actionOf(llvm::StringRef name);

/// `text` as the inside of a C++ string literal, in ASCII.
std::string escaped(llvm::StringRef text);

/// `text` for a comment, in ASCII: as it is where it is plain, else escaped and in quotes.
std::string commentFor(llvm::StringRef text);

/// The names of one scope. The order of the requests alone decides who gets which.
class Names {
public:
  /// Keywords, macros and the words of declarations are taken from the start; so are the words of
  /// the runtime that emitted code uses, unless what is named here always stands behind `::`.
  explicit Names(bool qualified = false);
  /// An identifier for `text` that no earlier request got: the second `relu` is `relu_2`. One
  /// without a small letter ends in `_`, as it might be a macro of some header. With `endings`,
  /// nobody gets the identifier with one of them at its end either.
  std::string unique(llvm::StringRef text, llvm::ArrayRef<std::string> endings = {});
  /// Nobody gets what C++ `code` uses by its bare name.
  void reserveWordsOf(llvm::StringRef code);

private:
  bool isTaken(llvm::StringRef name) const;

  const llvm::StringSet<> *reserved; ///< from the start
  llvm::StringSet<> taken;           ///< since
};

} // namespace mlir::fsdp

#endif // CODEGEN_NAMES_H
