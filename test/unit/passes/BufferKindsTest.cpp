//===- BufferKindsTest.cpp - each kind of buffer, from what launches do ---===//

#include "passes/scheduled/BufferKinds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>
#include <map>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

const char *const kModule = R"(
fsdp.mesh @mesh <["fsdp"=2]>
fsdp.param @w : tensor<8xf32> unit "h.0" init <constant, 0.0> placement <flat over ["fsdp"], gather = f32, reduce = f32, reshard = always>
fsdp.storage @h.0.flat : tensor<4xf32> flat over ["fsdp"] states ["exp_avg"] members [#fsdp.member<@w at 0>]
fsdp.program @all role {} {
  %state = fsdp.buffer "step_state" persistent : !fsdp.buffer<tensor<16xi64>>
  %count = fsdp.buffer "count" persistent : !fsdp.buffer<tensor<f32>>
  %p = fsdp.buffer "parameter" persistent holds @h.0.flat "parameter" : !fsdp.buffer<tensor<4xf32>>
  %m = fsdp.buffer "exp_avg" persistent holds @h.0.flat "exp_avg" : !fsdp.buffer<tensor<4xf32>>
  %acc = fsdp.buffer "accumulator" persistent holds @h.0.flat "accumulator" : !fsdp.buffer<tensor<4xf32>>
  fsdp.segment @train train next [@train] {
    %x = fsdp.buffer "x" : !fsdp.buffer<tensor<8x4xf32>>
    %labels = fsdp.buffer "labels" : !fsdp.buffer<tensor<8xi32>>
    %narrow = fsdp.buffer "narrow" : !fsdp.buffer<tensor<4xbf16>>
    %w = fsdp.buffer "w" holds @h.0.flat "gathered" : !fsdp.buffer<tensor<8xbf16>>
    %y = fsdp.buffer "y" : !fsdp.buffer<tensor<8x4xf32>>
    %passing = fsdp.buffer "passing" : !fsdp.buffer<tensor<8x4xf32>>
    %again = fsdp.buffer "again" : !fsdp.buffer<tensor<8x4xf32>>
    %logits = fsdp.buffer "logits" : !fsdp.buffer<tensor<8x4xf32>>
    %loss = fsdp.buffer "loss" : !fsdp.buffer<tensor<8xf32>>
    %lse = fsdp.buffer "lse" : !fsdp.buffer<tensor<8xf32>>
    %dlogits = fsdp.buffer "dlogits" : !fsdp.buffer<tensor<8x4xf32>>
    %whole = fsdp.buffer "whole" holds @h.0.flat "gradient" : !fsdp.buffer<tensor<8xf32>>
    %other = fsdp.buffer "other" : !fsdp.buffer<tensor<8xf32>>
    %part = fsdp.buffer "part" : !fsdp.buffer<tensor<4xf32>>
    %otherPart = fsdp.buffer "otherPart" : !fsdp.buffer<tensor<4xf32>>
    %sum = fsdp.buffer "sum" : !fsdp.buffer<tensor<4xf32>>
    %thirdPart = fsdp.buffer "thirdPart" : !fsdp.buffer<tensor<4xf32>>
    %total = fsdp.buffer "total" : !fsdp.buffer<tensor<4xf32>>
    %norm = fsdp.buffer "norm" : !fsdp.buffer<tensor<f64>>
    fsdp.launch "input x" on "input" outs(%x : !fsdp.buffer<tensor<8x4xf32>>) {
      %0 = fsdp.input "x" sample_dim 0 : tensor<8x4xf32>
      fsdp.yield %0 : tensor<8x4xf32>
    }
    fsdp.launch "input labels" on "input" outs(%labels : !fsdp.buffer<tensor<8xi32>>) {
      %0 = fsdp.input "labels" sample_dim 0 : tensor<8xi32>
      fsdp.yield %0 : tensor<8xi32>
    }
    fsdp.launch "narrow" on "gather" of "h.0" ins(%p : !fsdp.buffer<tensor<4xf32>>) outs(%narrow : !fsdp.buffer<tensor<4xbf16>>) {
    ^bb0(%a: tensor<4xf32>):
      %0 = arith.truncf %a : tensor<4xf32> to tensor<4xbf16>
      fsdp.yield %0 : tensor<4xbf16>
    }
    fsdp.launch "gather" on "gather" of "h.0" ins(%narrow : !fsdp.buffer<tensor<4xbf16>>) outs(%w : !fsdp.buffer<tensor<8xbf16>>) {
    ^bb0(%a: tensor<4xbf16>):
      %0 = fsdp.all_gather %a dim 0 over ["fsdp"] : tensor<4xbf16> -> tensor<8xbf16>
      fsdp.yield %0 : tensor<8xbf16>
    }
    fsdp.launch "y" on "compute" of "h.0" ins(%x : !fsdp.buffer<tensor<8x4xf32>>) outs(%y : !fsdp.buffer<tensor<8x4xf32>>) {
    ^bb0(%a: tensor<8x4xf32>):
      %0 = arith.negf %a : tensor<8x4xf32>
      fsdp.yield %0 : tensor<8x4xf32>
    }
    fsdp.launch "passing" on "compute" of "h.0" ins(%y : !fsdp.buffer<tensor<8x4xf32>>) outs(%passing : !fsdp.buffer<tensor<8x4xf32>>) {
    ^bb0(%a: tensor<8x4xf32>):
      %0 = arith.negf %a : tensor<8x4xf32>
      fsdp.yield %0 : tensor<8x4xf32>
    }
    fsdp.launch "logits" on "compute" of "h.0" ins(%passing : !fsdp.buffer<tensor<8x4xf32>>) outs(%logits : !fsdp.buffer<tensor<8x4xf32>>) {
    ^bb0(%a: tensor<8x4xf32>):
      %0 = arith.negf %a : tensor<8x4xf32>
      fsdp.yield %0 : tensor<8x4xf32>
    }
    fsdp.launch "loss" on "compute" of "h.0" ins(%logits, %labels : !fsdp.buffer<tensor<8x4xf32>>, !fsdp.buffer<tensor<8xi32>>) outs(%loss, %lse : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>) {
    ^bb0(%a: tensor<8x4xf32>, %b: tensor<8xi32>):
      %0, %1 = nn.cross_entropy %a, %b : tensor<8x4xf32>, tensor<8xi32> -> tensor<8xf32>, tensor<8xf32>
      fsdp.yield %0, %1 : tensor<8xf32>, tensor<8xf32>
    }
    fsdp.launch "again" on "compute" of "h.0" backward recomputed ins(%y : !fsdp.buffer<tensor<8x4xf32>>) outs(%again : !fsdp.buffer<tensor<8x4xf32>>) {
    ^bb0(%a: tensor<8x4xf32>):
      %0 = arith.negf %a : tensor<8x4xf32>
      fsdp.yield %0 : tensor<8x4xf32>
    }
    fsdp.launch "dlogits" on "compute" of "h.0" backward ins(%logits, %labels, %lse, %loss : !fsdp.buffer<tensor<8x4xf32>>, !fsdp.buffer<tensor<8xi32>>, !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>) outs(%dlogits : !fsdp.buffer<tensor<8x4xf32>>) {
    ^bb0(%a: tensor<8x4xf32>, %b: tensor<8xi32>, %c: tensor<8xf32>, %d: tensor<8xf32>):
      %0 = nn.cross_entropy_grad %a, %b, %c, %d : tensor<8x4xf32>, tensor<8xi32>, tensor<8xf32>, tensor<8xf32>
      fsdp.yield %0 : tensor<8x4xf32>
    }
    fsdp.launch "whole" on "compute" of "h.0" backward ins(%dlogits, %again : !fsdp.buffer<tensor<8x4xf32>>, !fsdp.buffer<tensor<8x4xf32>>) outs(%whole, %other : !fsdp.buffer<tensor<8xf32>>, !fsdp.buffer<tensor<8xf32>>) {
    ^bb0(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>):
      %0 = nn.reduce sum "a b -> a" %a : tensor<8x4xf32> -> tensor<8xf32>
      fsdp.yield %0, %0 : tensor<8xf32>, tensor<8xf32>
    }
    fsdp.launch "reduce" on "reduce" of "h.0" backward ins(%whole : !fsdp.buffer<tensor<8xf32>>) outs(%part : !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%a: tensor<8xf32>):
      %0 = fsdp.reduce_scatter %a dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<4xf32>
      fsdp.yield %0 : tensor<4xf32>
    }
    fsdp.launch "reduce other" on "reduce" of "h.0" backward ins(%other : !fsdp.buffer<tensor<8xf32>>) outs(%otherPart : !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%a: tensor<8xf32>):
      %0 = fsdp.reduce_scatter %a dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<4xf32>
      fsdp.yield %0 : tensor<4xf32>
    }
    fsdp.launch "sum" on "compute" of "h.0" backward ins(%part, %otherPart : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%sum : !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %0 = arith.addf %a, %b : tensor<4xf32>
      fsdp.yield %0 : tensor<4xf32>
    }
    fsdp.launch "reduce third" on "reduce" of "h.0" backward ins(%other : !fsdp.buffer<tensor<8xf32>>) outs(%thirdPart : !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%a: tensor<8xf32>):
      %0 = fsdp.reduce_scatter %a dim 0 over ["fsdp"] : tensor<8xf32> -> tensor<4xf32>
      fsdp.yield %0 : tensor<4xf32>
    }
    fsdp.launch "total" on "compute" of "h.0" backward ins(%sum, %thirdPart : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%total : !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %0 = arith.addf %a, %b : tensor<4xf32>
      fsdp.yield %0 : tensor<4xf32>
    }
    fsdp.launch "norm" on "compute" of update ins(%total : !fsdp.buffer<tensor<4xf32>>) outs(%norm : !fsdp.buffer<tensor<f64>>) {
    ^bb0(%a: tensor<4xf32>):
      %0 = nn.reduce sum "a ->" %a : tensor<4xf32> -> tensor<f64>
      fsdp.yield %0 : tensor<f64>
    }
    fsdp.launch "update" on "compute" of "h.0" update ins(%p, %total, %m : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) outs(%p, %m : !fsdp.buffer<tensor<4xf32>>, !fsdp.buffer<tensor<4xf32>>) {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>):
      %lr = arith.constant dense<0.1> : tensor<f32>
      %ok = arith.constant dense<true> : tensor<i1>
      %0, %1 = fsdp.optimizer_step <sgd, lr = 0.1, momentum = 0.9> @h.0.flat %a, %b states(%c) lr %lr scale %lr if %ok : tensor<4xf32> states 1
      fsdp.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
    }
  }
}
)";

TEST(BufferKindsTest, FollowsFromStructureAndUse) {
  DialectRegistry registry;
  registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect>();
  MLIRContext context(registry);
  // Accumulators do not verify before a pass makes them.
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(kModule, ParserConfig(&context, /*verifyAfterParse=*/false));
  ASSERT_TRUE(module);
  ScheduleProblem schedule(*module);
  std::vector<BufferKind> kinds = classifyBuffers(schedule, 0);
  std::map<std::string, std::string> found;
  for (auto [buffer, kind] : llvm::zip_equal(schedule.problem.roles[0].buffers, kinds))
    found[buffer.name] = stringifyBufferKind(kind).str();
  const std::map<std::string, std::string> expected = {
      {"step_state", "step_state"},
      {"count", "temporaries"},
      {"parameter", "parameters"},
      {"exp_avg", "optimizer"},
      {"accumulator", "accumulators"},
      {"x", "inputs"},
      {"labels", "inputs"},      // though they are kept for backward
      {"narrow", "temporaries"}, // a shard that is cast is not whole
      {"w", "gathered"},
      {"y", "saved"},
      {"passing", "temporaries"},
      {"again", "recomputed"},
      {"logits", "logits"}, // though they are kept for backward
      {"loss", "saved"},
      {"lse", "saved"},
      {"dlogits", "logits"},
      {"whole", "gradients"},
      {"other", "gradients"}, // as it is reduced for the optimizer
      {"part", "gradients"},
      {"otherPart", "gradients"},
      {"sum", "gradients"}, // of microbatches before the last one
      {"thirdPart", "gradients"},
      {"total", "gradients"},
      {"norm", "temporaries"},
  };
  EXPECT_EQ(found, expected);
  std::vector<LaunchOp> writers = findFirstWriters(schedule, 0);
  for (auto [buffer, writer] : llvm::zip_equal(schedule.problem.roles[0].buffers, writers))
    if (buffer.name == "dlogits" || buffer.name == "lse")
      EXPECT_EQ(writer.getName(), buffer.name == "lse" ? "loss" : "dlogits");
}

} // namespace
