//===- CountOption.h - a pass option that counts something ------*- C++ -*-===//
//
// LLVM's integer parser reads 010 as 8 and 0x10 as 16; options of passes parse numbers as the
// command lines of the compiler and of its programs do.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_COUNTOPTION_H
#define PASSES_COUNTOPTION_H

#include "base/Numbers.h"
#include "dialect/fsdp/FSDPDialect.h"
#include "llvm/Support/CommandLine.h"

namespace mlir::fsdp {

/// An integer from `least` to `most` that a pass option holds.
template <int64_t least, int64_t most> struct BoundedCount {
  static constexpr base::IntegerRange<int64_t> range = {least, most};
  int64_t value = least;
};

using Count = BoundedCount<0, INT64_MAX>;
using PositiveCount = BoundedCount<1, INT64_MAX>;
/// The number of microbatches of a step.
using Microbatches = BoundedCount<1, kMaxMicrobatches>;

template <int64_t least, int64_t most>
llvm::raw_ostream &operator<<(llvm::raw_ostream &out, BoundedCount<least, most> count) {
  return out << count.value;
}

} // namespace mlir::fsdp

template <int64_t least, int64_t most>
class llvm::cl::parser<mlir::fsdp::BoundedCount<least, most>>
    : public basic_parser<mlir::fsdp::BoundedCount<least, most>> {
  using Value = mlir::fsdp::BoundedCount<least, most>;
  using Base = basic_parser<Value>;

public:
  parser(Option &option) : Base(option) {}

  /// Returns true after an error, as LLVM's parsers do.
  bool parse(Option &option, StringRef, StringRef text, Value &count) {
    std::string wrong = base::parseInteger(std::string_view(text), Value::range, count.value);
    return !wrong.empty() && option.error(wrong);
  }

  StringRef getValueName() const override { return "count"; }

  void printOptionDiff(const Option &option, Value count, const typename Base::OptVal &,
                       size_t globalWidth) const {
    this->printOptionName(option, globalWidth);
    outs() << "= " << count << "\n";
  }
};

#endif // PASSES_COUNTOPTION_H
