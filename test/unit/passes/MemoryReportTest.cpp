//===- MemoryReportTest.cpp - the numbers of a schedule -------------------===//

#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/printing/MemoryReportText.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace mlir::fsdp;

namespace {

/// By default the three-unit chain of test/passes/schedule.mlir, scheduled.
class MemoryReportTest : public testing::Test {
protected:
  MemoryReport measure(int prefetch, bool plan = true,
                       const std::string &file = "test/passes/schedule.mlir") {
    DialectRegistry registry;
    registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
    MLIRContext context(registry);
    std::string path = std::string(std::getenv("FSDP_SOURCE_DIR")) + "/" + file;
    OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, &context);
    PassManager manager(&context);
    SchedulePassOptions options;
    options.prefetch = Count{prefetch};
    manager.addPass(createSchedulePass(options));
    if (plan)
      manager.addPass(createPlanMemoryPass());
    EXPECT_TRUE(succeeded(manager.run(*module)));
    return computeMemoryReport(*module);
  }
};

/// `report` as text, and as JSON.
static std::pair<std::string, std::string> show(const MemoryReport &report) {
  std::string text, json;
  llvm::raw_string_ostream stream(text), other(json);
  print(report, stream);
  other << toJSON(report);
  return {text, json};
}

TEST_F(MemoryReportTest, SumsShards) {
  MemoryReport report = measure(1);
  EXPECT_EQ(report.mesh, "fsdp=2");
  EXPECT_EQ(report.ranks, 2);
  EXPECT_EQ(report.parameters, 3 * 64);
  EXPECT_EQ(report.gradients, 3 * 64);
  EXPECT_EQ(report.optimizer, 3 * 64);
  EXPECT_EQ(report.replicatedParameters, (20 + 20 + 4) * 4);
  EXPECT_EQ(report.replicatedGradients, (20 + 20 + 4) * 4);
  EXPECT_EQ(report.replicatedOptimizer, (20 + 20 + 4) * 4);
  EXPECT_EQ(report.persistent, 128 + 6 * 64);
  EXPECT_EQ(report.transient, report.arena - report.persistent);
  EXPECT_GE(report.arena, report.lowerBound);
  EXPECT_EQ(measure(1, /*plan=*/false).arena, report.arena);
}

TEST_F(MemoryReportTest, EachRoleHasItsOwnMemory) {
  MemoryReport report = measure(1, /*plan=*/true, "test/codegen/roles.mlir");
  ASSERT_EQ(report.roles.size(), 3u);
  // `a` in 16 elements for each of two ranks, `b` in 2, `c` in 4 on each rank of two roles.
  const int64_t own[] = {(16 + 4) * 4, 2 * 4, 4 * 4};
  // 32 bytes each: `y` and `dy`; these with `z` and `dz`; `z` and `dz`.
  const int64_t messages[] = {64, 128, 64};
  int64_t most = 0;
  for (size_t role = 0; role < 3; ++role) {
    EXPECT_EQ(report.roles[role].parameters, own[role]);
    EXPECT_EQ(report.roles[role].gradients, own[role]);
    EXPECT_EQ(report.roles[role].optimizer, 2 * own[role]);
    EXPECT_EQ(report.roles[role].messages, messages[role]);
    most = std::max(most, report.roles[role].arena);
  }
  EXPECT_EQ(report.arena, most);
  EXPECT_LT(report.roles[1].arena, most);
  EXPECT_EQ(report.parameters, own[0]);
  EXPECT_EQ(report.replicatedParameters, 3 * 4 * 4) << "counted once, whoever keeps them";
  std::string text;
  llvm::raw_string_ostream stream(text);
  print(report, stream);
  EXPECT_NE(text.find("  second "), std::string::npos) << text;
  EXPECT_NE(text.find("memory of each role\n"), std::string::npos) << "no pipeline: " << text;
  EXPECT_EQ(text.find("idle"), std::string::npos) << text;
  ASSERT_EQ(report.tiedCopies.size(), 1u) << "`c`";
  EXPECT_EQ(report.tiedCopies[0].roles, (std::vector<std::string>{"first", "third"}));
  EXPECT_EQ(report.tiedCopies[0].parameters, 4 * 4);
  EXPECT_EQ(report.tiedCopies[0].optimizer, 2 * 4 * 4);
  EXPECT_TRUE(report.pipelineAxis.empty());
  EXPECT_TRUE(measure(1).roles.empty());
}

/// Idle time that is not known is a question mark, with its reason, and absent in JSON.
TEST_F(MemoryReportTest, UnknownIdleTimeIsExplained) {
  MemoryReport report;
  report.pipelineAxis = "pipeline";
  report.microbatches = 2;
  report.roles.resize(2);
  const auto [text, json] = show(report);
  EXPECT_NE(text.find("     0       ?\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  ?: not known, as a rank returns to the forward or the backward of a "
                      "microbatch more than once\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(json.find("idle"), std::string::npos) << json;

  for (RoleMemory &role : report.roles)
    role.stage.idle = 0.25;
  const auto [knownText, knownJson] = show(report);
  EXPECT_NE(knownText.find("     0  25.0 %\n"), std::string::npos) << knownText;
  EXPECT_EQ(knownText.find('?'), std::string::npos) << knownText;
  EXPECT_NE(knownJson.find("\"pipeline_idle\":0.25"), std::string::npos) << knownJson;
}

TEST_F(MemoryReportTest, AtMostTwoUnitsAreWhole) {
  // fc1 and fc2 have 80 bytes each, the head 16.
  EXPECT_EQ(measure(1).gathered, 160);
}

TEST_F(MemoryReportTest, OneUnitIsWholeWithoutPrefetch) { EXPECT_EQ(measure(0).gathered, 80); }

TEST_F(MemoryReportTest, AllUnitsAreWholeWithMuchPrefetch) {
  EXPECT_EQ(measure(9).gathered, 3 * 80 + 16);
}

TEST_F(MemoryReportTest, CountsCollectives) {
  MemoryReport report = measure(1);
  std::string text;
  for (const CollectiveCount &call : report.collectives)
    text += std::to_string(call.count) + " " + call.kind + " " + call.axes[0] + " " +
            std::to_string(call.bytes) + " " + std::to_string(call.received) + "\n";
  // Shards are 64 bytes: of 80 the second rank receives the first 64.
  EXPECT_EQ(text, "3 all_gather fsdp 80 64\n1 all_gather fsdp 16 16\n1 all_reduce fsdp 8 8\n"
                  "1 reduce_scatter fsdp 16 16\n2 reduce_scatter fsdp 80 64\n");
  EXPECT_TRUE(report.evaluateCollectives.empty());
}

// Flops are those of the ops' cost interface; bytes those of the operands and results of launches.
TEST_F(MemoryReportTest, CountsWork) {
  llvm::json::Value value = toJSON(measure(1));
  std::string text;
  for (const llvm::json::Value &entry : *value.getAsObject()->getArray("work")) {
    const llvm::json::Object &work = *entry.getAsObject();
    llvm::StringRef kind = *work.getString("kind");
    if (kind != "nn.einsum" && kind != "fsdp.all_gather")
      continue;
    text += kind.str() + " " + work.getString("direction")->str();
    for (const char *key : {"count", "flops", "bytes_read", "bytes_written"})
      text += " " + std::to_string(*work.getInteger(key));
    text += "\n";
  }
  EXPECT_EQ(text, "fsdp.all_gather forward 3 0 192 176\n"
                  "nn.einsum forward 3 576 528 288\n"
                  "fsdp.all_gather backward 1 0 64 80\n"
                  "nn.einsum backward 5 896 912 400\n");
}

TEST_F(MemoryReportTest, WritesJsonAndATable) {
  MemoryReport report = measure(1);
  llvm::json::Value value = toJSON(report);
  const llvm::json::Object &object = *value.getAsObject();
  for (const char *key : {"parameters", "gradients", "optimizer", "gathered", "activations",
                          "persistent", "transient", "arena", "lower_bound",
                          "replicated_parameters", "replicated_gradients", "replicated_optimizer"})
    EXPECT_TRUE(object.getInteger(key)) << key;
  EXPECT_EQ(object.getInteger("arena"), report.arena);
  const llvm::json::Object &call = *(*object.getArray("collectives"))[0].getAsObject();
  EXPECT_EQ(call.getString("kind"), "all_gather");
  EXPECT_EQ(call.getInteger("bytes"), 80);
  EXPECT_EQ(call.getInteger("received"), 64);
  EXPECT_EQ(call.getInteger("count"), 3);
  EXPECT_EQ((*call.getArray("axes"))[0].getAsString(), "fsdp");

  // The longest kind has room; the others are aligned with it.
  MemoryReport permuted = report;
  permuted.collectives.push_back({"collective_permute", {"fsdp"}, 8, 8, 1});
  std::string wide;
  llvm::raw_string_ostream wideStream(wide);
  print(permuted, wideStream);
  EXPECT_NE(wide.find("     3 x all_gather         over fsdp, 80 bytes per call, 64 received\n"),
            std::string::npos)
      << wide;
  EXPECT_NE(wide.find("     1 x collective_permute over fsdp, 8 bytes per call, 8 received\n"),
            std::string::npos)
      << wide;

  report.arena = 1234567;
  std::string table;
  llvm::raw_string_ostream os(table);
  print(report, os);
  EXPECT_NE(table.find("memory of each of 2 ranks (fsdp=2), in bytes\n"), std::string::npos);
  EXPECT_NE(table.find("  parameters                 176             192      192 B\n"),
            std::string::npos);
  EXPECT_NE(table.find("       1,234,567   1.18 MiB  512 B persistent, "), std::string::npos);
  EXPECT_NE(table.find("     3 x all_gather     over fsdp, 80 bytes per call, 64 received\n"),
            std::string::npos);
  EXPECT_NE(table.find("               360      360 B  received over fsdp\n"), std::string::npos);
}

// Every byte of the lower bound is of one kind, or lies between buffers.
TEST_F(MemoryReportTest, SplitsThePeakByKind) {
  for (int prefetch : {0, 1, 9}) {
    MemoryReport report = measure(prefetch);
    const MemoryPeak &peak = report.peak;
    EXPECT_EQ(peak.bytes, report.lowerBound);
    int64_t sum = peak.alignment;
    for (int64_t bytes : peak.kinds)
      sum += bytes;
    EXPECT_EQ(sum, report.lowerBound);
    auto bytesOf = [&](BufferKind kind) { return peak.kinds[static_cast<int>(kind)]; };
    EXPECT_EQ(bytesOf(BufferKind::parameters), report.parameters);
    EXPECT_EQ(bytesOf(BufferKind::optimizer), report.optimizer);
    EXPECT_EQ(bytesOf(BufferKind::stepState), 128);
    EXPECT_LE(bytesOf(BufferKind::gathered), report.gathered);
    EXPECT_EQ(peak.segment, "train");
    EXPECT_FALSE(peak.launch.empty());
    std::array<int64_t, kBufferKinds> ofBuffers = {};
    for (size_t i = 0; i < peak.buffers.size(); ++i) {
      ofBuffers[static_cast<int>(peak.buffers[i].kind)] += peak.buffers[i].bytes;
      if (i)
        EXPECT_LE(peak.buffers[i].bytes, peak.buffers[i - 1].bytes);
    }
    EXPECT_EQ(ofBuffers, peak.kinds);
  }
}

// Names of any length leave the tables within a terminal.
TEST_F(MemoryReportTest, FitsIntoATerminal) {
  MemoryReport report = measure(1);
  report.arena = report.lowerBound = report.persistent = report.transient = 987'654'321'098;
  std::string name;
  for (int i = 0; i < 60; ++i)
    name += "\u00e4b"; // a letter of two bytes, and one of one
  report.peak.launch = report.peak.unit = report.peak.segment = name;
  report.peak.buffers.clear();
  for (int i = 0; i < 40; ++i)
    report.peak.buffers.push_back(
        {name + std::to_string(i), name, BufferKind::temporaries, 1000 - i});
  for (int i = 0; i < 3; ++i)
    report.peak.buffers.push_back(
        {"h." + std::to_string(i) + ".attn", "h." + std::to_string(i), BufferKind::saved, 800});
  std::string table;
  llvm::raw_string_ostream os(table);
  print(report, os);
  StringRef rest = table;
  int rows = 0;
  while (!rest.empty()) {
    auto [line, after] = rest.split('\n');
    EXPECT_LE(line.size(), 100u) << line.str();
    EXPECT_TRUE(llvm::json::isUTF8(line)) << line.str();
    rest = after;
    ++rows;
  }
  EXPECT_LT(rows, 50);
  // Buffers of several units that are alike are one row, which counts as much as they do together.
  EXPECT_NE(table.find("2,400   2.34 KiB  saved        h.0..2          3 x *.attn\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find(" in 29 others\n"), std::string::npos) << table;
}

/// A chain of units of the given widths over `ranks` ranks: weight and bias each, squared error.
std::string makeModel(const std::vector<int> &widths, int ranks, int batch,
                      const std::string &optimizer) {
  auto matrix = [](int rows, int columns) {
    return "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
  };
  std::string params, body, x = "%x";
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    std::string n = std::to_string(i), unit = "\"u" + n + "\"";
    std::string weight = matrix(widths[i], widths[i + 1]), z = matrix(batch, widths[i + 1]);
    std::string bias = "tensor<" + std::to_string(widths[i + 1]) + "xf32>";
    params += "fsdp.param @w" + n + " : " + weight + " unit " + unit + " init <normal, 0.02>\n";
    params += "fsdp.param @b" + n + " : " + bias + " unit " + unit + " init <constant, 0.0>\n";
    body += "%w" + n + " = fsdp.read @w" + n + " : " + weight + "\n";
    body += "%z" + n + " = nn.einsum \"bi,io->bo\" " + x + ", %w" + n + " : (" +
            matrix(batch, widths[i]) + ", " + weight + ") -> " + z + "\n";
    body += "%b" + n + " = fsdp.read @b" + n + " : " + bias + "\n";
    body += "%c" + n + " = nn.repeat \"o -> b o\" %b" + n + " : " + bias + " -> " + z + "\n";
    body += "%a" + n + " = arith.addf %z" + n + ", %c" + n + " : " + z + "\n";
    body += "%h" + n + " = math.tanh %a" + n + " : " + z + "\n";
    x = "%h" + n;
  }
  std::string last = matrix(batch, widths.back());
  return "fsdp.mesh @mesh <[\"fsdp\"=" + std::to_string(ranks) + "]>\n" + params +
         "fsdp.step @train train optimizer <" + optimizer + "> {\n" +
         "%x = fsdp.input \"x\" sample_dim 0 : " + matrix(batch, widths[0]) + "\n" + body +
         "%square = arith.mulf " + x + ", " + x + " : " + last + "\n" +
         "%sum = nn.reduce sum \"b o ->\" %square : " + last + " -> tensor<f64>\n" +
         "%weight = arith.constant dense<" + std::to_string(batch) + ".0> : tensor<f64>\n" +
         "fsdp.loss %sum over %weight\n}\n";
}

// Every pass from the model to the verified schedule, on random chains: a rank keeps its part only,
// and no more units are unsharded at once than the budget allows.
TEST(ScheduledPipelineTest, RanksHoldTheirPart) {
  std::mt19937 random(6);
  auto draw = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  DialectRegistry registry;
  registry.insert<nn::NNDialect, FSDPDialect, arith::ArithDialect, math::MathDialect>();
  nn::registerElementwiseModels(registry);
  MLIRContext context(registry);
  const char *optimizers[] = {"sgd, lr = 0.1", "sgd, lr = 0.1, momentum = 0.9", "adamw, lr = 0.1",
                              "adam, lr = 0.1, clip = 1.0"};
  const int states[] = {0, 1, 2, 2};
  for (int i = 0; i < 40; ++i) {
    std::vector<int> widths;
    for (int units = draw(1, 6); units >= 0; --units)
      widths.push_back(draw(1, 40));
    int ranks = draw(1, 7), batch = draw(1, 20), optimizer = draw(0, 3), prefetch = draw(0, 2);
    std::string text = makeModel(widths, ranks, batch, optimizers[optimizer]);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    PassManager manager(&context);
    PipelineOptions options;
    options.prefetch = prefetch;
    buildGlobalPipeline(manager, options);
    buildLocalPipeline(manager, options);
    buildScheduledPipeline(manager, options);
    ASSERT_TRUE(succeeded(manager.run(*module))) << text;
    MemoryReport report = computeMemoryReport(*module);

    std::vector<int64_t> sizes; // bytes of the units, as gathered
    int64_t total = 0;
    for (size_t u = 0; u + 1 < widths.size(); ++u) {
      int64_t bytes = 4 * (int64_t(widths[u]) + 1) * widths[u + 1];
      total += bytes;
      sizes.push_back(bytes);
    }
    int64_t padding = 64 * 4 * static_cast<int64_t>(sizes.size());
    std::sort(sizes.rbegin(), sizes.rend());
    int64_t whole = 0;
    for (int u = 0; u <= prefetch && u < static_cast<int>(sizes.size()); ++u)
      whole += sizes[static_cast<size_t>(u)];
    EXPECT_LE(report.parameters, total / ranks + padding) << text;
    EXPECT_GE(report.parameters * ranks, total) << text;
    EXPECT_EQ(report.gradients, report.parameters) << text;
    EXPECT_EQ(report.optimizer, states[optimizer] * report.parameters) << text;
    // Around the turn three gathers in a row may hold one unit twice.
    if (prefetch > 1)
      whole = std::max(whole, (prefetch + 1) * sizes[0]);
    EXPECT_LE(report.gathered, whole) << text;
    EXPECT_GE(report.arena, report.lowerBound) << text;
    EXPECT_LE(report.arena, report.lowerBound * 105 / 100 + 64) << text;
    EXPECT_EQ(report.replicatedParameters, total) << text;
  }
}

} // namespace
