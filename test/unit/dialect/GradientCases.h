//===- GradientCases.h - ops on random shapes for gradient tests *- C++ -*-===//

#ifndef TEST_UNIT_DIALECT_GRADIENTCASES_H
#define TEST_UNIT_DIALECT_GRADIENTCASES_H

#include "llvm/ADT/StringRef.h"
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace gradient_test {

using Shape = std::vector<int64_t>;

/// A reproducible source of shapes and values.
struct Random {
  std::mt19937_64 engine;

  /// Uniform in [low, high).
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(engine() >> 11) * 0x1.0p-53;
  }
  /// Uniform in [low, high].
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  /// A size: 0 and 1 often enough to meet both in every case.
  int64_t size() { return std::vector<int64_t>{0, 1, 1, 2, 2, 3, 3, 4, 5, 5}[integer(0, 9)]; }
  Shape shape() {
    Shape shape(integer(0, 3));
    for (int64_t &size : shape)
      size = this->size();
    return shape;
  }
  template <typename T> void shuffle(T &items) {
    for (size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[integer(0, i - 1)]);
  }
};

/// The text of a tensor type.
std::string tensor(const Shape &shape, llvm::StringRef element = "f64");

/// One operand: its type and the range its values are drawn from (negated at random where
/// `bothSigns`).
struct Operand {
  std::string type;
  double low = -2, high = 2;
  bool bothSigns = false;
};

/// One op on operands %a, %b, %c. Of its results those in the bit mask `differentiable` may have a
/// cotangent.
struct Case {
  std::string text;
  std::vector<Operand> operands;
  int results = 1;
  unsigned differentiable = ~0u;
};

using Generator = std::function<Case(Random &)>;

/// The cases of each op that has a derivative: its name and the function that draws a case.
const std::vector<std::pair<std::string, Generator>> &cases();

} // namespace gradient_test

#endif // TEST_UNIT_DIALECT_GRADIENTCASES_H
