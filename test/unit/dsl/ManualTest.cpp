//===- ManualTest.cpp - regions in local terms, and what is wrong in them --===//

#include "dialect/fsdp/Manual.h"
#include "dsl/Manual.h"
#include "dsl/ModelIR.h"
#include "dsl/Operations.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include <gtest/gtest.h>

using namespace fsdp::dsl;
using Tensors = std::vector<Tensor>;

namespace {

class ManualTest : public testing::Test {
protected:
  ManualTest() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    model = std::make_unique<Model>(context);
    describeFor(*model, {{"fsdp", 2}, {"tensor", 4}});
    x = model->input("x", {8, 16});
    w = model->unit("fc").parameter("weight", {16, 4}, zeros());
  }

  /// What is wrong with `action`, without its line; "" where nothing is.
  template <typename Action> std::string wrong(Action action) {
    try {
      action();
    } catch (const ModelError &error) {
      return error.message;
    }
    return "";
  }
  /// The same for a region over fsdp of x, split along its samples.
  std::string wrongInside(const std::function<Tensor(const Tensor &)> &function,
                          const std::string &output = "fsdp,_",
                          const std::string &input = "fsdp,_") {
    return wrong([&] {
      manual({{x, input}}, {output}, "fsdp",
             [&](const Tensors &own) -> Tensors { return {function(own[0])}; });
    });
  }

  mlir::MLIRContext context;
  std::unique_ptr<Model> model;
  Tensor x;
  Parameter w;
};

} // namespace

TEST_F(ManualTest, PartsHaveTheSizesOfOneRank) {
  EXPECT_EQ(model->axisSize("fsdp"), 2);
  EXPECT_EQ(model->axisSize("pipeline"), 1);
  Shape samples, rows, gathered, scattered, swapped, both;
  Tensors results =
      manual({{x, "fsdp,_"}, {w, "fsdp+tensor,_"}}, {"fsdp,_", "_,tensor partial(fsdp)"},
             "fsdp+tensor", [&](const Tensors &own) -> Tensors {
               samples = own[0].shape();
               rows = own[1].shape();
               Tensor all = pgather(own[1], 0, "fsdp+tensor");
               gathered = all.shape();
               Tensor y = psum(einsum("bi,io->bo", own[0], all), "tensor");
               Tensor terms = einsum("bi,bo->io", own[0], y);
               Tensor own2 = psumScatter(terms, 1, "tensor");
               scattered = own2.shape();
               swapped = pswap(own[0], 1, 0, "tensor").shape();
               both = pshift(own[0], 1, true, "fsdp").shape();
               return {y * 0.25, own2};
             });
  EXPECT_EQ(samples, (Shape{4, 16}));
  EXPECT_EQ(rows, (Shape{2, 4}));
  EXPECT_EQ(gathered, (Shape{16, 4}));
  EXPECT_EQ(scattered, (Shape{16, 1}));
  EXPECT_EQ(swapped, (Shape{16, 4}));
  EXPECT_EQ(both, (Shape{4, 16}));
  EXPECT_EQ(results[0].shape(), (Shape{8, 4}));
  EXPECT_EQ(results[1].shape(), (Shape{16, 4}));
  model->loss(mean(results[0]));
  mlir::OwningOpRef<mlir::ModuleOp> module = take(*model);
  EXPECT_TRUE(succeeded(mlir::verify(*module)));
  mlir::fsdp::ManualOp region;
  module->walk([&](mlir::fsdp::ManualOp op) { region = op; });
  ASSERT_TRUE(region);
  EXPECT_EQ(mlir::fsdp::getMesh(*module).getAxisSize("tensor"), 4);
}

TEST_F(ManualTest, NumbersHaveNoEntries) {
  Tensors results =
      manual({{x, "fsdp,_"}}, {"", "partial(fsdp)"}, "fsdp", [&](const Tensors &own) -> Tensors {
        Tensor sum = mean(own[0]).sum;
        return {psum(sum, "fsdp"), sum};
      });
  EXPECT_EQ(results[0].rank(), 0);
  EXPECT_EQ(results[1].rank(), 0);
}

TEST_F(ManualTest, AModelWithoutAMeshIsForOneRank) {
  Model alone(context);
  Tensor y = alone.input("y", {3, 5});
  Tensors same = manual({{y, "fsdp,_"}}, {"fsdp,_"}, "fsdp", [&](const Tensors &own) -> Tensors {
    EXPECT_EQ(own[0].shape(), (Shape{3, 5}));
    return {pgather(own[0], 0, "fsdp")};
  });
  EXPECT_EQ(same[0].shape(), (Shape{3, 5}));
}

TEST_F(ManualTest, ShardingsThatCannotBe) {
  EXPECT_EQ(wrong([&] { manual({}, {}, "fsdp", [](const Tensors &) { return Tensors(); }); }),
            "manual: the region takes no inputs, expected at least one");
  auto same = [](const Tensor &own) { return own; };
  EXPECT_EQ(
      wrongInside(same, "fsdp,_", "fsdp"),
      "manual: 'fsdp' has 1 entry, expected 2, one for each dimension ('_' for an unsharded one)");
  EXPECT_EQ(
      wrongInside(same, "fsdp,_", "fsdp?,_"),
      "manual: 'fsdp?,_' has 'fsdp?', expected '_', or axes joined by '+' and followed by '?' "
      "if more may be added; a part of an axis is written as tensor:(1)2");
  EXPECT_EQ(wrongInside(same, "fsdp,_", "fsdp+?,_"),
            "manual: 'fsdp+?,_' has '?', expected '_' or axes joined by '+': other axes are "
            "propagated in any case");
  EXPECT_EQ(wrongInside(same, "fsdp,_", "fsdp,tensor"),
            "manual: 'fsdp,tensor' names axis 'tensor', expected axes of the region, 'fsdp'");
  EXPECT_EQ(
      wrongInside(same, "fsdp,_", "fsdp,_ partial(fsdp)"),
      "manual: 'fsdp,_ partial(fsdp)' names axis 'fsdp' twice; an axis splits one dimension or "
      "is one of a sum");
  EXPECT_EQ(wrongInside(same, "fsdp,_", "_,_ partial(fsdp"),
            "manual: '_,_ partial(fsdp' ends with 'fsdp', expected ')'");
  EXPECT_EQ(wrongInside(same, "fsdp,_", "_,_ partial()"),
            "manual: '_,_ partial()' names no axes in 'partial()', expected axes joined by '+'");
  EXPECT_EQ(
      wrongInside([&](const Tensor &own) { return psum(mean(own).sum, "fsdp"); }, "_"),
      "manual: '_' has entries for a number without dimensions, expected '' or 'partial(AXES)'");
  EXPECT_EQ(
      wrong([&] { manual({{x, "_,_"}}, {"_,_"}, "_", [](const Tensors &own) { return own; }); }),
      "manual: '_' names no axes, expected axes of the mesh joined by '+'");
  EXPECT_EQ(
      wrong([&] { manual({{x, "fsdp,_"}}, {}, "fsdp", [](const Tensors &own) { return own; }); }),
      "manual: the function returns 1 tensors, expected 0, one for each output");
  Tensor odd = model->input("odd", {7, 2});
  EXPECT_EQ(wrong([&] {
              manual({{odd, "fsdp,_"}}, {"fsdp,_"}, "fsdp", [](const Tensors &own) { return own; });
            }),
            "the manual region splits dimension 0 of 'odd', of size 7, over 2 ranks, expected a "
            "multiple; pad it, or use a mesh that divides it");
}

TEST_F(ManualTest, WhatIsOutside) {
  Tensor other = relu(x);
  EXPECT_EQ(
      wrongInside([&](const Tensor &own) { return own + other; }),
      "add: 'relu' was computed outside of the manual region; pass it as an input of the region");
  EXPECT_EQ(
      wrongInside([&](const Tensor &own) { return einsum("bi,io->bo", own, w); }),
      "parameter 'fc.weight' is used in a manual region, where a rank has only what enters it; "
      "pass it as an input of the region");
  EXPECT_EQ(wrongInside([&](const Tensor &own) {
              model->loss(mean(own));
              return own;
            }),
            "the loss is in a manual region, which contains the computation of one rank; move it "
            "outside");
  EXPECT_EQ(
      wrongInside([&](const Tensor &own) { return model->checkpoint([&] { return own; }); }),
      "a checkpoint is in a manual region, which contains the computation of one rank; move it "
      "outside");
  Tensor inside;
  EXPECT_EQ(wrongInside([&](const Tensor &own) { return inside = relu(own); }), "");
  EXPECT_EQ(
      wrong([&] { relu(inside); }),
      "relu: 'relu' was computed in a manual region that does not return it; return it from the "
      "function");
  EXPECT_EQ(wrong([&] { psum(x, "fsdp"); }),
            "psum of 'x' (8x16xf32): is a collective outside of a manual region; call it in the "
            "function of 'manual'");
  EXPECT_EQ(
      wrong([&] { model->axisIndex("fsdp"); }),
      "axisIndex: the index of a rank exists in a manual region only; call it in the function "
      "of one");
  EXPECT_EQ(wrongInside([&](const Tensor &) { return Tensor(); }),
            "manual: the function returns a tensor that holds no value");
}

TEST_F(ManualTest, WhatRanksHave) {
  EXPECT_NE(wrongInside([&](const Tensor &own) { return relu(own); }, "_,_")
                .find("returns a value that is varying over axis \"fsdp\" as result #0, which is "
                      "replicated over it, expected an invariant value; use 'psum', or split the "
                      "result"),
            std::string::npos);
  EXPECT_NE(
      wrongInside([&](const Tensor &own) { return exp(own); }, "_,_", "_,_ partial(fsdp)")
          .find("the manual region, in which 'exp' has an operand #0 that is partial over axis "
                "\"fsdp\", in which it is not additive, expected a value that is complete; use "
                "'psum' first"),
      std::string::npos);
  EXPECT_EQ(wrongInside([&](const Tensor &own) { return psum(own, "tensor"); }),
            "psum of 'x' (4x16xf32): is over axis 'tensor', which is not one of the manual region "
            "around it; add it there");
  EXPECT_NE(wrongInside([&](const Tensor &own) {
              return dropout(own, 0.5);
            }).find("the manual region, in which 'dropout' is in 'manual', expected computation"),
            std::string::npos);
}

TEST_F(ManualTest, SizesOfCollectives) {
  EXPECT_EQ(wrongInside([&](const Tensor &own) { return pgather(own, 2, "fsdp"); }),
            "pgather of 'x' (4x16xf32): dimension is 2, expected 0 to 1");
  EXPECT_EQ(wrongInside([&](const Tensor &own) { return pgather(own, -1, "fsdp"); }),
            "pgather of 'x' (4x16xf32): dimension is -1, expected at least 0");
  EXPECT_EQ(
      wrongInside([&](const Tensor &own) { return psumScatter(slice(own, 1, 0, 3), 1, "fsdp"); }),
      "psumScatter of 'slice' (4x3xf32): dimension 1 is of size 3, expected a multiple of 2 "
      "ranks");
  EXPECT_EQ(wrongInside([&](const Tensor &own) { return pswap(own, -1, 0, "fsdp"); }),
            "pswap of 'x' (4x16xf32): dimensions are -1 and 0, expected at least 0");
  EXPECT_EQ(wrongInside([&](const Tensor &own) { return pvary(own, "a b"); }),
            "pvary of 'x' (4x16xf32): 'a b' has 'a b', expected '_', or axes joined by '+' and "
            "followed by '?' if more may be added; names of axes are letters, digits and '_', and "
            "have no ' '");
}
