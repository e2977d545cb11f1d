//===- PartsTest.cpp - slices, pads and insertions ------------------------===//

#include "runtime/kernels/Kernels.h"

#include <gtest/gtest.h>

#include <vector>

using namespace fsdp::rt;

namespace {

using Ints = std::vector<int>;

TEST(Parts, SliceTakesTheRangeOfEachRun) {
  const Ints whole = {0, 1, 2, 3, 10, 11, 12, 13};
  Ints piece(4, -1);
  kernels::slice(Part{2, 4, 1, 2}, whole.data(), piece.data());
  EXPECT_EQ(piece, (Ints{1, 2, 11, 12}));
}

TEST(Parts, PadWritesZerosAround) {
  const Ints piece = {1, 2, 11, 12};
  Ints whole(8, -1);
  kernels::pad(Part{2, 4, 1, 2}, piece.data(), whole.data());
  EXPECT_EQ(whole, (Ints{0, 1, 2, 0, 0, 11, 12, 0}));
}

TEST(Parts, InsertLeavesAllElse) {
  const Ints piece = {1, 11};
  Ints whole(6, 7);
  kernels::insert(Part{2, 3, 2, 1}, piece.data(), whole.data());
  EXPECT_EQ(whole, (Ints{7, 7, 1, 7, 7, 11}));
}

TEST(Parts, NothingIsAPartToo) {
  Ints whole(4, 7);
  kernels::insert(Part{2, 2, 1, 0}, static_cast<const int *>(nullptr), whole.data());
  EXPECT_EQ(whole, (Ints{7, 7, 7, 7}));
  kernels::pad(Part{2, 2, 1, 0}, static_cast<const int *>(nullptr), whole.data());
  EXPECT_EQ(whole, (Ints{0, 0, 0, 0}));
  kernels::slice(Part{0, 4, 1, 2}, whole.data(), whole.data());
}

} // namespace
