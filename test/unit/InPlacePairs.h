//===- InPlacePairs.h - what kernels may write over what they read -*- C++ -*-===//
//
// The pairs of operand and result that may share bytes, as ops state them. unit/dialect compares
// this list with what every registered op says; the tests of the kernels run each of them both
// ways. So an op with a new pair fails the first until it is listed, and the others until its
// kernels are run in place.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNIT_INPLACEPAIRS_H
#define TEST_UNIT_INPLACEPAIRS_H

#include <gtest/gtest.h>
#include <set>
#include <string>
#include <tuple>

namespace fsdp::test {

/// Op, number of the operand, number of the result.
using InPlacePair = std::tuple<std::string, unsigned, unsigned>;

/// Of ops that call a kernel of the runtime, for both targets.
inline const std::set<InPlacePair> kKernelPairs = {
    {"nn.cross_entropy", 0, 2},      {"nn.partial_cross_entropy", 0, 3},
    {"nn.cross_entropy_grad", 0, 0}, {"nn.layer_norm", 0, 0},
    {"nn.layer_norm_grad", 0, 0},    {"nn.layer_norm_grad", 4, 0},
    {"nn.layer_norm_grad", 5, 0},    {"nn.rms_norm", 0, 0},
    {"nn.rms_norm_grad", 0, 0},      {"nn.rms_norm_grad", 3, 0},
    {"nn.rms_norm_grad", 4, 0},      {"nn.rope", 0, 0},
    {"nn.scan_sum", 0, 0},           {"nn.softmax", 0, 0},
    {"nn.write_rows", 0, 0},
};

/// Of collectives: test/unit/runtime/comm/Conformance.cpp runs them in place with every
/// communicator.
inline const std::set<InPlacePair> kCollectivePairs = {{"fsdp.all_reduce", 0, 0}};

/// "nn.softmax 0 -> 0, nn.rope 0 -> 0"
inline std::string describe(const std::set<InPlacePair> &pairs) {
  std::string text;
  for (const auto &[op, operand, result] : pairs)
    text += (text.empty() ? "" : ", ") + op + " " + std::to_string(operand) + " -> " +
            std::to_string(result);
  return text;
}

/// The pairs that a suite of tests has compared.
class InPlaceCoverage {
public:
  void add(const char *op, unsigned operand, unsigned result = 0) {
    compared.insert({op, operand, result});
  }
  /// Kernels' pairs that were not compared, "" for none.
  std::string missing() const {
    std::set<InPlacePair> pairs = kKernelPairs;
    for (const InPlacePair &pair : compared)
      pairs.erase(pair);
    return describe(pairs);
  }

private:
  std::set<InPlacePair> compared;
};

/// Tests of kernels on elements of type `T`; `Base` has what they need beside. Fails at its end
/// where a kernel's pair was not compared.
template <class T, class Base = ::testing::Test> class InPlaceTest : public Base {
protected:
  static void SetUpTestSuite() { coverage = {}; }
  /// All tests have run, unless a filter left some out.
  static void TearDownTestSuite() {
    const ::testing::TestSuite &suite = *::testing::UnitTest::GetInstance()->current_test_suite();
    if (suite.test_to_run_count() != suite.total_test_count())
      return;
    EXPECT_EQ(coverage.missing(), "") << "no kernel was run in place for these; add a case";
  }

  inline static InPlaceCoverage coverage;
};

} // namespace fsdp::test

#endif // TEST_UNIT_INPLACEPAIRS_H
