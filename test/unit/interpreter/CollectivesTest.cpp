//===- CollectivesTest.cpp - what collectives compute ---------------------===//

#include "interpreter/Program.h"

#include "interpreter/Safetensors.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::fsdp;
using namespace mlir::fsdp::interpreter;

namespace {

using List = std::vector<double>;

class CollectivesTest : public testing::Test {
protected:
  CollectivesTest() {
    context.loadDialect<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
  }

  RankedTensorType floats(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, Float32Type::get(&context));
  }
  Tensor tensor(ArrayRef<int64_t> shape, const List &values) {
    Tensor result(floats(shape));
    for (size_t i = 0; i < values.size(); ++i)
      result.setNumber(i, values[i]);
    return result;
  }

  /// The results of the collective `line`, which reads %x of type `type`, on ranks that hold `in`.
  std::vector<List> perform(StringRef mesh, StringRef type, StringRef line, ArrayRef<Tensor> in,
                            Numerics numerics = Numerics::exact) {
    std::string text =
        ("fsdp.mesh @mesh <" + mesh + ">\nfsdp.program @all role {} {\n" +
         "fsdp.segment @s train next [@s] {\n%x = arith.constant dense<0.0> : " + type +
         "\n%y = " + line + "\n}\n}\n")
            .str();
    module = parseSourceString<ModuleOp>(text, ParserConfig(&context));
    std::vector<List> lists;
    if (!module)
      return lists;
    module->walk([&](CollectiveOpInterface op) {
      SmallVector<Tensor> results(in.size());
      if (!in.empty())
        performCollective(op, in, results, numerics);
      for (const Tensor &result : results) {
        EXPECT_EQ(result.getType(), op->getResult(0).getType());
        lists.emplace_back();
        for (int64_t i = 0; i < result.size(); ++i)
          lists.back().push_back(result.getNumber(i));
      }
    });
    return lists;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(CollectivesTest, AllGatherDropsPadding) {
  // Padding is NaN: it must not come through.
  auto lists = perform(R"(["fsdp"=3])", "tensor<2xf32>",
                       R"(fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<2xf32> -> tensor<5xf32>)",
                       {tensor({2}, {0, 1}), tensor({2}, {2, 3}), tensor({2}, {4, NAN})});
  EXPECT_EQ(lists, (std::vector<List>(3, List{0, 1, 2, 3, 4})));
}

TEST_F(CollectivesTest, AllGatherOfLongerFlatShards) {
  // Shards of a flat unit are rounded up; the last rank may hold nothing but padding.
  auto lists = perform(R"(["fsdp"=3])", "tensor<4xf32>",
                       R"(fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<4xf32> -> tensor<6xf32>)",
                       {tensor({4}, {0, 1, 2, 3}), tensor({4}, {4, 5, NAN, NAN}),
                        tensor({4}, {NAN, NAN, NAN, NAN})});
  EXPECT_EQ(lists, (std::vector<List>(3, List{0, 1, 2, 3, 4, 5})));
}

TEST_F(CollectivesTest, AllGatherAlongInnerDimension) {
  auto lists =
      perform(R"(["fsdp"=2])", "tensor<2x2xf32>",
              R"(fsdp.all_gather %x dim 1 over ["fsdp"] : tensor<2x2xf32> -> tensor<2x3xf32>)",
              {tensor({2, 2}, {0, 1, 10, 11}), tensor({2, 2}, {2, NAN, 12, NAN})});
  EXPECT_EQ(lists, (std::vector<List>(2, List{0, 1, 2, 10, 11, 12})));
}

TEST_F(CollectivesTest, ReduceScatterSumsAndPadsWithZeros) {
  auto lists =
      perform(R"(["fsdp"=2])", "tensor<3xf32>",
              R"(fsdp.reduce_scatter %x dim 0 over ["fsdp"] : tensor<3xf32> -> tensor<2xf32>)",
              {tensor({3}, {1, 2, 3}), tensor({3}, {10, 20, 30})});
  EXPECT_EQ(lists, (std::vector<List>{{11, 22}, {33, 0}}));
}

TEST_F(CollectivesTest, AllReduceSumIsInRankOrder) {
  // In f32, (2^24 + 1) + 1 loses both ones; 1 + 1 + 2^24 does not.
  Tensor large = tensor({1}, {16777216}), one = tensor({1}, {1});
  StringRef line = R"(fsdp.all_reduce sum %x over ["fsdp"] : tensor<1xf32>)";
  EXPECT_EQ(perform(R"(["fsdp"=3])", "tensor<1xf32>", line, {large, one, one}, Numerics::typed),
            (std::vector<List>(3, List{16777216})));
  EXPECT_EQ(perform(R"(["fsdp"=3])", "tensor<1xf32>", line, {one, one, large}, Numerics::typed),
            (std::vector<List>(3, List{16777218})));
}

TEST_F(CollectivesTest, AllReduceMaxKeepsNaN) {
  StringRef line = R"(fsdp.all_reduce max %x over ["fsdp"] : tensor<2xf32>)";
  auto lists =
      perform(R"(["fsdp"=2])", "tensor<2xf32>", line, {tensor({2}, {1, NAN}), tensor({2}, {2, 1})});
  ASSERT_EQ(lists.size(), 2u);
  EXPECT_EQ(lists[0][0], 2);
  EXPECT_TRUE(std::isnan(lists[0][1]));
}

TEST_F(CollectivesTest, AllToAllMovesTheSplit) {
  // 2 ranks, 3 rows by 3 columns; rows in parts of 2, the last of padding, become columns in parts
  // of 2.
  auto lists = perform(
      R"(["fsdp"=2])", "tensor<2x3xf32>",
      R"(fsdp.all_to_all %x split 1 concat 0 over ["fsdp"] : tensor<2x3xf32> -> tensor<3x2xf32>)",
      {tensor({2, 3}, {0, 1, 2, 10, 11, 12}), tensor({2, 3}, {20, 21, 22, NAN, NAN, NAN})});
  EXPECT_EQ(lists, (std::vector<List>{{0, 1, 10, 11, 20, 21}, {2, 0, 12, 0, 22, 0}}));
}

TEST_F(CollectivesTest, AllToAllChangesTheSizeOfParts) {
  StringRef type = "tensor<3xf32>";
  SmallVector<Tensor> in = {tensor({3}, {0, 1, 2}), tensor({3}, {3, 4, 0})};
  EXPECT_EQ(
      perform(
          R"(["fsdp"=2])", type,
          R"(fsdp.all_to_all %x split 0 concat 0 over ["fsdp"] : tensor<3xf32> -> tensor<2xf32>)",
          in),
      (std::vector<List>{{0, 1}, {2, 3}}));
  EXPECT_EQ(
      perform(
          R"(["fsdp"=2])", type,
          R"(fsdp.all_to_all %x split 0 concat 0 over ["fsdp"] : tensor<3xf32> -> tensor<4xf32>)",
          in),
      (std::vector<List>{{0, 1, 2, 3}, {4, 0, 0, 0}}));
}

TEST_F(CollectivesTest, PermuteFillsWithZeros) {
  auto lists =
      perform(R"(["fsdp"=3])", "tensor<2xf32>",
              R"(fsdp.collective_permute %x from [2, -1, 0] over ["fsdp"] : tensor<2xf32>)",
              {tensor({2}, {0, 1}), tensor({2}, {2, 3}), tensor({2}, {4, 5})});
  EXPECT_EQ(lists, (std::vector<List>{{4, 5}, {0, 0}, {0, 1}}));
}

TEST_F(CollectivesTest, BroadcastOfOneRank) {
  auto lists = perform(R"(["fsdp"=3])", "tensor<2xf32>",
                       R"(fsdp.broadcast %x from 1 over ["fsdp"] : tensor<2xf32>)",
                       {tensor({2}, {0, 1}), tensor({2}, {2, 3}), tensor({2}, {4, 5})});
  EXPECT_EQ(lists, (std::vector<List>(3, List{2, 3})));
}

TEST_F(CollectivesTest, BytesReceived) {
  const struct {
    const char *type, *line;
    int64_t bytes, received;
  } cases[] = {
      {"tensor<3xf32>",
       R"(fsdp.all_gather %x dim 0 over ["fsdp"] : tensor<3xf32> -> tensor<10xf32>)", 40, 36},
      {"tensor<10xf32>",
       R"(fsdp.reduce_scatter %x dim 0 over ["fsdp"] : tensor<10xf32> -> tensor<3xf32>)", 40, 36},
      {"tensor<8xf32>", R"(fsdp.all_reduce sum %x over ["fsdp"] : tensor<8xf32>)", 32, 48},
      {"tensor<8xf32>", R"(fsdp.all_slice %x dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<2xf32>)",
       0, 0},
      {"tensor<2x8xf32>",
       R"(fsdp.all_to_all %x split 1 concat 0 over ["fsdp"] : tensor<2x8xf32> -> tensor<8x2xf32>)",
       64, 48},
      {"tensor<5xf32>",
       R"(fsdp.all_to_all %x split 0 concat 0 over ["fsdp"] : tensor<5xf32> -> tensor<6xf32>)", 24,
       12},
      {"tensor<8xf32>",
       R"(fsdp.collective_permute %x from [0, 2, 1, 3] over ["fsdp"] : tensor<8xf32>)", 32, 32},
      {"tensor<8xf32>",
       R"(fsdp.collective_permute %x from [0, 1, 2, -1] over ["fsdp"] : tensor<8xf32>)", 32, 0},
      {"tensor<8xf32>", R"(fsdp.broadcast %x from 1 over ["fsdp"] : tensor<8xf32>)", 32, 32},
      {"tensor<8xf32>", R"(fsdp.receive offset -1 over ["fsdp"] : tensor<8xf32>)", 32, 32},
  };
  for (const auto &expected : cases) {
    perform(R"(["fsdp"=4])", expected.type, expected.line, {});
    ASSERT_TRUE(module) << expected.line;
    module->walk([&](CollectiveOpInterface op) {
      EXPECT_EQ(op.getBytes(), expected.bytes) << expected.line;
      EXPECT_EQ(op.getReceivedBytes(), expected.received) << expected.line;
    });
  }
}

TEST_F(CollectivesTest, SafetensorsRoundTrip) {
  SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("tensors", "safetensors", path));
  TensorFile file;
  for (Type element : SmallVector<Type>{
           Float32Type::get(&context), Float64Type::get(&context), BFloat16Type::get(&context),
           Float16Type::get(&context), IntegerType::get(&context, 32),
           IntegerType::get(&context, 64), IntegerType::get(&context, 1)}) {
    Tensor value(RankedTensorType::get({2, 2}, element));
    for (int64_t i = 0; i < 4; ++i)
      value.setNumber(i, element.isInteger(1) ? i % 2 : 1.5 - i);
    std::string name;
    llvm::raw_string_ostream(name) << element;
    file[name] = value;
  }
  file["scalar"] = tensor({}, {0.1f});
  std::ofstream(path.c_str(), std::ios::binary) << encodeSafetensors(file);
  auto back = readSafetensors(path, &context);
  llvm::sys::fs::remove(path);
  ASSERT_TRUE(static_cast<bool>(back));
  ASSERT_EQ(back->size(), file.size());
  for (auto &[name, value] : file)
    EXPECT_TRUE((*back)[name].equals(value)) << name;
}

} // namespace
