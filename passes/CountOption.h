//===- CountOption.h - a pass option that counts something ------*- C++ -*-===//
//
// LLVM's own parser of integers takes 010 for 8 and 0x10 for 16; options of passes take numbers as
// the command lines of the compiler and of its programs do.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_COUNTOPTION_H
#define PASSES_COUNTOPTION_H

#include "cli/Numbers.h"
#include "llvm/Support/CommandLine.h"

namespace mlir::fsdp {

/// An integer of at least 0 that a pass option holds.
struct Count {
  int64_t value = 0;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &out, Count count) {
  return out << count.value;
}

} // namespace mlir::fsdp

template <> class llvm::cl::parser<mlir::fsdp::Count> : public basic_parser<mlir::fsdp::Count> {
public:
  parser(Option &option) : basic_parser(option) {}

  /// Returns true after an error, as LLVM's parsers do.
  bool parse(Option &option, StringRef, StringRef text, mlir::fsdp::Count &count) {
    const cli::IntegerRange<int64_t> range = {0, INT64_MAX};
    std::string wrong = cli::parseInteger(std::string_view(text), range, count.value);
    return !wrong.empty() && option.error(wrong);
  }

  StringRef getValueName() const override { return "count"; }

  void printOptionDiff(const Option &option, mlir::fsdp::Count count, const OptVal &,
                       size_t globalWidth) const {
    printOptionName(option, globalWidth);
    outs() << "= " << count << "\n";
  }
};

#endif // PASSES_COUNTOPTION_H
