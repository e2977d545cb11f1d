//===- MachineTest.cpp - machine files and names --------------------------===//

#include "base/NamePattern.h"
#include "passes/cost/LaunchTime.h"

#include "gtest/gtest.h"

#include <array>
#include <ostream>
#include <string>
#include <vector>

using namespace mlir::fsdp;
using namespace mlir::fsdp::cost;

namespace {

const char *const valid = R"({"name": "m", "memory": 1000, "peak": {"f32": 2e12},
  "products": [{"kind": "matrix", "type": "f32", "rates": [[16, 1e11], [1024, 7e11]]}],
  "loop_flops": 1e11, "memory_rates": [[1000, 2e11], [1000000, 1e11]], "launch_seconds": 1e-6,
  "collective_share": 0.5, "algorithms": ["ring"],
  "links": [{"name": "l", "ranks": 4, "bandwidth": 1e9, "latency": 1e-6}]})";

/// The fault of the file `text` with `from` replaced by `to`.
std::string faultOf(const std::string &from, const std::string &to, std::string text = valid) {
  std::string error;
  text.replace(text.find(from), from.size(), to);
  EXPECT_FALSE(parseMachine(text, error)) << text;
  return error;
}

TEST(MachineFile, IsRead) {
  std::string error;
  auto machine = parseMachine(valid, error);
  ASSERT_TRUE(machine) << error;
  EXPECT_EQ(machine->name, "m");
  EXPECT_EQ(machine->links.front().ranks, 4);
  EXPECT_EQ(machine->capacity(4), 1);
}

// Beyond these, times are infinite or no numbers, and a simulated step never ends.
TEST(MachineFile, NumbersHaveRanges) {
  for (const char *value : {"0", "0.5", "1e-308", "1e31", "1e308", "-1"}) {
    auto replaced = [&](const std::string &name, const std::string &from) {
      return faultOf("\"" + name + "\": " + from, "\"" + name + "\": " + value);
    };
    const std::string shown = replaced("loop_flops", "1e11");
    EXPECT_EQ(shown.substr(0, 24), "field 'loop_flops': got ") << value;
    const std::string expected = ", expected a number from 1 to 1e+30";
    EXPECT_NE(shown.find(expected), std::string::npos) << shown;
    EXPECT_NE(replaced("bandwidth", "1e9").find(expected), std::string::npos) << value;
    EXPECT_NE(replaced("f32", "2e12").find(expected), std::string::npos) << value;
    for (const char *point : {"[16, 1e11]", "[1000, 2e11]"}) {
      const std::string size = std::string(point).substr(0, std::string(point).find(','));
      EXPECT_NE(faultOf(point, size + ", " + value + "]").find("[0][1]': got "), std::string::npos);
      EXPECT_NE(faultOf(point, std::string("[") + value + ", 1e11]").find("[0][0]': got "),
                std::string::npos);
    }
  }
  for (const char *value : {"-1e-9", "1001", "1e308"}) {
    const std::string expected = ", expected a number from 0 to 1000";
    EXPECT_NE(faultOf("\"latency\": 1e-6", std::string("\"latency\": ") + value)
                  .find("field 'links[0].latency': got "),
              std::string::npos);
    EXPECT_NE(faultOf("\"latency\": 1e-6", std::string("\"latency\": ") + value).find(expected),
              std::string::npos);
    EXPECT_NE(faultOf("\"launch_seconds\": 1e-6", std::string("\"launch_seconds\": ") + value)
                  .find(expected),
              std::string::npos);
  }
}

const char *const above = R"(}, {"name": "n", "ranks": 6, "bandwidth": 1, "latency": 0}]})";

/// `above` with `ranks`.
std::string aboveOf(const std::string &ranks) {
  std::string text = above;
  return text.replace(text.find('6'), 1, ranks);
}

TEST(MachineFile, LevelsAreMultiplesOfThoseBelow) {
  EXPECT_EQ(faultOf("}]}", above), "field 'links[1].ranks': got 6, expected a multiple of the 4 of "
                                   "the level below, or 0 for any number");
  EXPECT_EQ(faultOf("}]}", aboveOf("4")), "field 'links[1].ranks': got 4, expected a multiple of "
                                          "the 4 of the level below, or 0 for any number");
  const std::string inner = R"("ranks": 0, "bandwidth": 1e9, "latency": 1e-6)" + aboveOf("8");
  EXPECT_EQ(faultOf(R"("ranks": 4, "bandwidth": 1e9, "latency": 1e-6}]})", inner),
            "field 'links[0].ranks': got 0, expected at least 1; only the last level may have 0, "
            "for any number of ranks");
  // The last level may connect any number.
  std::string text = valid, error;
  text.replace(text.find("}]}"), 3, aboveOf("0"));
  const std::optional<Machine> machine = parseMachine(text, error);
  ASSERT_TRUE(machine) << error;
  const GroupShape shape = shapeOf({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, *machine);
  EXPECT_EQ(shape.perLevel, (std::vector<int64_t>{4, 12}));
  EXPECT_EQ(timeOf("all_gather", 10, shape, *machine).linkBandwidth, 4); // of four cards, 1 byte/s
}

TEST(MachineFile, RatesBetweenPointsAreLogarithmic) {
  std::string error;
  const Machine machine = *parseMachine(valid, error);
  EXPECT_DOUBLE_EQ(machine.productRate("matrix", "f32", 4), 1e11);
  EXPECT_DOUBLE_EQ(machine.productRate("matrix", "f32", 128), 4e11); // half way of 6 doublings
  EXPECT_DOUBLE_EQ(machine.productRate("matrix", "f32", 9999), 7e11);
  // Unknown kinds and types have the rate of matrix products, and of another type.
  EXPECT_DOUBLE_EQ(machine.productRate("attention", "bf16", 1024), 7e11);
  EXPECT_DOUBLE_EQ(machine.peakOf("bf16"), 2e12);
}

TEST(LaunchTime, IsTheLongerOfFlopsAndBytes) {
  std::string error;
  const Machine machine = *parseMachine(valid, error);
  schedule::LaunchCost cost;
  cost.flops = 2'000'000;
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 1e-6 + 2e-5); // 1e11 flop/s of loops
  cost.bytesRead = 6'000'000, cost.bytesWritten = 4'000'000;
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 1e-6 + 1e-4);
  // A fused kernel: the product at its own rate, the rest as loops.
  cost = {800'000'000 + 1'000'000, 10, 10, "matrix", "f32", 800'000'000, 128};
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 1e-6 + 8e8 / 4e11 + 1e6 / 1e11);
}

const char *const kernels = R"("collective_share": 0.5, "kernels": {"other": {
  "products": [{"kind": "attention", "type": "f32", "rates": [[1, 4e11]],
                "key_factors": [[512, 0.5], [2048, 1]]}],
  "launch_seconds": 3e-6, "epilogues": "separate"}})";

std::string withKernels() {
  std::string text = valid;
  const std::string from = "\"collective_share\": 0.5";
  return text.replace(text.find(from), from.size(), kernels);
}

TEST(KernelRates, OfAnotherImplementationDifferInItsFields) {
  std::string error;
  auto machine = parseMachine(withKernels(), error);
  ASSERT_TRUE(machine) << error;
  EXPECT_EQ(machine->kernels, "own");
  EXPECT_DOUBLE_EQ(machine->productRate("attention", "f32", 64, 512), 3e11); // as matrix products
  const KernelRates &other = machine->otherKernels.at("other");
  EXPECT_DOUBLE_EQ(other.productRate("attention", "f32", 64, 512), 2e11);
  EXPECT_DOUBLE_EQ(other.productRate("attention", "f32", 64, 1024), 3e11);
  EXPECT_DOUBLE_EQ(other.productRate("attention", "f32", 64, 4096), 4e11);
  EXPECT_DOUBLE_EQ(other.productRate("matrix", "f32", 128), 4e11);
  EXPECT_DOUBLE_EQ(other.launchSeconds, 3e-6);
  EXPECT_DOUBLE_EQ(other.loopFlops, 1e11);
}

TEST(LaunchTime, SeparateEpiloguesAreSeparateLaunches) {
  std::string error;
  Machine machine = *parseMachine(valid, error);
  schedule::LaunchCost cost = {800'000'000 + 1'000'000, 10, 10, "matrix", "f32", 800'000'000, 128};
  cost.epilogueBytes = 10'000'000;
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 1e-6 + 8e8 / 4e11 + 1e6 / 1e11);
  machine.epilogues = Epilogues::separate;
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 2e-6 + 8e8 / 4e11 + 1e7 / 1e11);
  // A bias is one only where no epilogue is fused at all.
  cost.epilogueIsBias = true;
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 1e-6 + 8e8 / 4e11 + 1e6 / 1e11);
  // Libraries of products leave some of them, or nothing.
  machine.epilogues = Epilogues::library;
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 1e-6 + 8e8 / 4e11 + 1e6 / 1e11);
  cost.remainingBytes = 3'000'000;
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 2e-6 + 8e8 / 4e11 + 3e6 / 1e11);
  // The sum over the rows of an operand comes with no row of the product.
  cost.epilogueIsBias = false;
  cost.epilogueIsOperandSum = true;
  cost.remainingBytes = 0;
  EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 1e-6 + 8e8 / 4e11 + 1e6 / 1e11);
  for (Epilogues other : {Epilogues::fused, Epilogues::separate}) {
    machine.epilogues = other;
    EXPECT_DOUBLE_EQ(secondsOf(cost, machine), 2e-6 + 8e8 / 4e11 + 1e7 / 1e11);
  }
}

const char *const kinds = R"("kinds": [
  {"kind": "layer_norm_grad", "memory_rates": [[1, 2e10]], "source": "none"}], "launch_seconds")";

std::string withKinds(std::string text) {
  const std::string from = "\"launch_seconds\"";
  return text.replace(text.find(from), from.size(), kinds);
}

TEST(KernelRates, OfKindsOfOps) {
  std::string error;
  auto machine = parseMachine(withKinds(withKernels()), error);
  ASSERT_TRUE(machine) << error;
  schedule::LaunchCost cost;
  cost.bytesRead = 6'000'000, cost.bytesWritten = 4'000'000;
  EXPECT_DOUBLE_EQ(secondsOf(cost, *machine), 1e-6 + 1e7 / 1e11);
  EXPECT_DOUBLE_EQ(secondsOf(cost, *machine, "layer_norm"), 1e-6 + 1e7 / 1e11);
  EXPECT_DOUBLE_EQ(secondsOf(cost, *machine, "layer_norm_grad"), 1e-6 + 1e7 / 2e10);
  // Another implementation has them too, unless it has separate memory rates.
  const KernelRates &other = machine->otherKernels.at("other");
  EXPECT_DOUBLE_EQ(other.memoryRate("layer_norm_grad", 1e7), 2e10);
  std::string text = withKinds(withKernels());
  const std::string from = "\"epilogues\"";
  text.replace(text.find(from), from.size(), "\"memory_rates\": [[1, 5e10]], \"epilogues\"");
  machine = parseMachine(text, error);
  ASSERT_TRUE(machine) << error;
  EXPECT_DOUBLE_EQ(machine->otherKernels.at("other").memoryRate("layer_norm_grad", 1e7), 5e10);
  EXPECT_DOUBLE_EQ(machine->memoryRate("layer_norm_grad", 1e7), 2e10);
}

// Among one rank a collective moves its bytes in the memory of the device.
TEST(LaunchTime, OfACollectiveAmongOneRankIsACopy) {
  std::string error;
  const Machine machine = *parseMachine(valid, error);
  schedule::Problem problem;
  problem.communicators = {{"alone", {0}}, {"four", {0}}};
  schedule::Launch launch;
  launch.collective = schedule::Collective{0, "all_gather", 6'000'000};
  launch.kind = "fsdp.all_gather";
  launch.cost.bytesRead = 6'000'000, launch.cost.bytesWritten = 6'000'000;
  schedule::Role role;
  role.segments = {{"train", {launch, launch}, {0}, /*joined=*/false}};
  role.segments[0].launches[1].collective->communicator = 1;
  problem.roles = {role};
  const LaunchTimes times = timeLaunches(problem, {GroupShape{{1}}, GroupShape{{4}}}, machine);
  EXPECT_DOUBLE_EQ(times.seconds[0][0][0], 1e-6 + 1.2e7 / 1e11);
  EXPECT_DOUBLE_EQ(times.collectives[0][0][0].seconds, 1.2e7 / 1e11);
  EXPECT_EQ(times.collectives[0][0][0].algorithm, "");
  EXPECT_DOUBLE_EQ(times.seconds[0][0][1], 1e-6 + 0.75 * 6e6 / 1e9 + 3e-6);
  EXPECT_EQ(times.collectives[0][0][1].algorithm, "ring");
  // Nothing moves to where it is.
  schedule::Role &planned = problem.roles[0];
  planned.buffers = {{"operand", 6'000'000, 0, 128}, {"result", 6'000'000, 0, 128}};
  planned.segments[0].launches[0].reads = {{0, 0, 6'000'000}};
  planned.segments[0].launches[0].writes = {{1, 0, 6'000'000}};
  auto first = [&] {
    return timeLaunches(problem, {GroupShape{{1}}, GroupShape{{4}}}, machine).seconds[0][0][0];
  };
  EXPECT_DOUBLE_EQ(first(), 1e-6);
  planned.buffers[1].offset = 256;
  EXPECT_DOUBLE_EQ(first(), 1e-6 + 1.2e7 / 1e11);
}

TEST(NamedMachines, AreValid) {
  for (const std::string &name : getMachineNames()) {
    std::string error;
    EXPECT_TRUE(findMachine(name, 1, error)) << name << ": " << error;
  }
}

// In programs of this project, loops after a product that cuBLASLt has not are separate kernels.
TEST(NamedMachines, OfGpusFuseEpiloguesOfTheLibrary) {
  for (const std::string &name : getMachineNames()) {
    std::string error;
    const Machine machine = *findMachine(name, 1, error);
    EXPECT_EQ(machine.epilogues, name == "host" ? Epilogues::fused : Epilogues::library) << name;
  }
}

// Measurements of this project's kernels do not change the rates of others.
TEST(NamedMachines, OwnRatesAreNotThoseOfOthers) {
  std::string error;
  for (const char *name : {"h100x8", "h200x8"}) {
    const Machine own = *findMachine(name, 8, error);
    EXPECT_LT(own.memoryRate("layer_norm_grad", 1e8), own.memoryRate("layer_norm", 1e8)) << name;
    EXPECT_EQ(own.otherKernels.size(), 4u);
    for (const auto &[kernels, rates] : own.otherKernels) {
      EXPECT_TRUE(rates.memoryRatesOfKinds.empty()) << name << kernels;
      EXPECT_EQ(rates.launchSeconds, 2.5e-6) << name << kernels;
    }
  }
}

TEST(NamedMachines, HaveKernelsOfOthers) {
  std::string error;
  const Machine own = *findMachine("h100x8", 8, error),
                flash = *findMachine("h100x8,kernels=flash-attention-2", 8, error);
  EXPECT_EQ(own.kernels, "own");
  EXPECT_EQ(findMachine("h100x8,kernels=own", 8, error)->kernels, "own");
  EXPECT_EQ(flash.kernels, "flash-attention-2");
  EXPECT_NE(own.productRate("attention", "bf16", 128, 2048),
            flash.productRate("attention", "bf16", 128, 2048));
  EXPECT_EQ(own.productRate("matrix", "f32", 1024), flash.productRate("matrix", "f32", 1024));
  EXPECT_EQ(findMachine("h100x8,network=roce-800,kernels=cudnn,nodes=2", 8, error)->links[1].name,
            "roce-800");
}

TEST(NamedMachines, GrowByNodes) {
  std::string error;
  EXPECT_EQ(findMachine("h100x8", 8, error)->links.size(), 1u);
  const Machine grown = *findMachine("h100x8", 64, error);
  ASSERT_EQ(grown.links.size(), 2u);
  EXPECT_EQ(grown.links[1].ranks, 64);
  EXPECT_EQ(grown.links[1].name, "ib-ndr400");
  EXPECT_EQ(findMachine("h100x8,nodes=16,network=ethernet-100", 8, error)->links[1].name,
            "ethernet-100");
  EXPECT_EQ(findMachine("host", 64, error)->links.size(), 1u);
}

//===----------------------------------------------------------------------===//
// Refusals
//===----------------------------------------------------------------------===//

/// A file with `from` replaced by `to`, and the fault, in which '*' is any text.
struct Refusal {
  std::string file, from, to, fault;
};

void PrintTo(const Refusal &refusal, std::ostream *out) {
  *out << refusal.from << " -> " << refusal.to.substr(0, 100);
}

class MachineFileRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(MachineFileRefusal, NamesTheField) {
  const Refusal &refusal = GetParam();
  const std::string got = faultOf(refusal.from, refusal.to, refusal.file);
  EXPECT_TRUE(base::matchesPattern(refusal.fault, got)) << got << "\nexpected " << refusal.fault;
}

std::vector<Refusal> refusalsOf(const std::string &file,
                                std::vector<std::array<std::string, 3>> rows) {
  std::vector<Refusal> refusals;
  for (auto &[from, to, fault] : rows)
    refusals.push_back({file, from, to, fault});
  return refusals;
}

INSTANTIATE_TEST_SUITE_P(
    Fields, MachineFileRefusal,
    testing::ValuesIn(refusalsOf(
        valid,
        {
            {"1e9", "\"fast\"",
             "field 'links[0].bandwidth': got \"fast\", expected a number from 1 to 1e+30"},
            {"\"memory\": 1000,", "",
             "field 'memory': got nothing, expected an integer from 1 to 1152921504606846976"},
            {"\"memory\": 1000", "\"memory\": 0.5",
             "field 'memory': got 0.5, expected an integer from 1 to 1152921504606846976"},
            {"\"loop_flops\"", "\"loops\": 1, \"loop_flops\"",
             "field 'loops': got 1, expected no such field; the fields are name, source*"},
            {"[16, 1e11]", "[2000, 1e11]",
             "field 'products[0].rates[1][0]': got 1024, expected a size above that of the entry "
             "before"},
            {"[16, 1e11]", "16", "field 'products[0].rates[0]': got 16, expected [SIZE, RATE]"},
            {"\"matrix\"", "\"gemm\"",
             "field 'products[0].kind': got \"gemm\", expected one of matrix, attention, "
             "attention_grad"},
            {"[\"ring\"]", "[]", "field 'algorithms': got [], expected a list that is not empty"},
            {"\"ring\"", "\"star\"",
             "field 'algorithms[0]': got \"star\", expected one of ring, tree, recursive, "
             "hierarchical, direct"},
            {"{\"f32\": 2e12}", "{}", "field 'peak': got {}, expected an object of numbers"},
            {"\"m\"", "3", "field 'name': got 3, expected a text"},
            {"{\"name\": \"m\"", "[", "*is not JSON: *"},
            {"\"latency\": 1e-6", "\"latency\": 0, \"bandwidths\": {\"all_gathr\": 1}",
             "field 'links[0].bandwidths': got \"all_gathr\", expected one of all_gather, "
             "all_reduce, all_to_all, broadcast, collective_permute, receive, reduce_scatter, "
             "send"},
            {"\"type\": \"f32\"", "\"type\": \"bf61\"",
             "field 'products[0].type': got \"bf61\", expected one of f32, bf16, f16, f64"},
            {"{\"f32\": 2e12}", "{\"bf61\": 2e12}",
             "field 'peak': got \"bf61\", expected one of f32, bf16, f16, f64"},
            {"]]}],", "]]}, {\"kind\": \"matrix\", \"type\": \"f32\", \"rates\": [[1, 1]]}],",
             "field 'products[1].kind': got \"matrix\", expected each kind once for a type"},
            // A parser keeps one of two values of a name, and takes stack for each level of
            // nesting.
            {"\"memory\": 1000", "\"memory\": 1, \"memory\": 1000",
             "field 'memory': got it twice, expected each field once"},
            {"]]}],", "]]}, {\"kind\": \"attention\", \"type\": \"f32\", \"kind\": 1}],",
             "field 'products[1].kind': got it twice, expected each field once"},
            {"{\"f32\": 2e12}", std::string(100000, '['), "is nested deeper than 8 levels"},
            {"0.5", "-1", "field 'collective_share': got -1, expected a number from 0 to 1"},
            {"0.5", "1.25", "field 'collective_share': got 1.25, expected a number from 0 to 1"},
            {"\"memory\": 1000", "\"memory\": 2e18",
             "field 'memory': got 2e+18, expected an integer from 1 to 1152921504606846976"},
            {"\"ranks\": 4", "\"ranks\": 1e10",
             "field 'links[0].ranks': got 10000000000, expected an integer from 0 to 1073741824"},
            {"\"algorithms\"", "\"cores\": 0, \"algorithms\"",
             "field 'cores': got 0, expected an integer from 1 to 1048576"},
        })));

INSTANTIATE_TEST_SUITE_P(
    Kernels, MachineFileRefusal,
    testing::ValuesIn(refusalsOf(
        withKernels(),
        {
            {"[2048, 1]", "[2048, 1.5]",
             "field 'kernels.other.products[0].key_factors[1][1]': got 1.5, expected a number from "
             "0.001 to 1"},
            {"separate", "none",
             "field 'kernels.other.epilogues': got \"none\", expected fused, separate or library"},
            {"\"other\"", "\"own\"",
             "*expected another name; the fields of the machine are those*"},
            {"\"kernels\": {\"other\"", "\"kernels\": 1, \"source\": {\"other\"",
             "field 'kernels': got 1, expected an object of implementations by name*"},
            {"\"launch_seconds\": 3e-6", "\"links\": 1",
             "field 'kernels.other.links': got 1, expected no such field*"},
        })));

INSTANTIATE_TEST_SUITE_P(
    Kinds, MachineFileRefusal,
    testing::ValuesIn(refusalsOf(
        withKinds(valid),
        {
            {"2e10", "0",
             "field 'kinds[0].memory_rates[0][1]': got 0, expected a number from 1 to 1e+30"},
            {"\"layer_norm_grad\"", "1", "field 'kinds[0].kind': got 1, expected a text"},
            {"\"none\"}", "\"none\"}, {\"kind\": \"layer_norm_grad\", \"memory_rates\": [[1, 1]]}",
             "field 'kinds[1].kind': got \"layer_norm_grad\", expected each kind once"},
            {"\"source\": \"none\"", "\"rates\": 1",
             "field 'kinds[0].rates': got 1, expected no such field; *"},
        })));

struct RequestRefusal {
  std::string request;
  int64_t ranks;
  std::string fault;
};

void PrintTo(const RequestRefusal &refusal, std::ostream *out) { *out << refusal.request; }

class NamedMachineRefusal : public testing::TestWithParam<RequestRefusal> {};

TEST_P(NamedMachineRefusal, SaysWhatIsExpected) {
  const auto &[request, ranks, fault] = GetParam();
  std::string error;
  EXPECT_FALSE(findMachine(request, ranks, error));
  EXPECT_TRUE(base::matchesPattern(fault, error)) << error << "\nexpected " << fault;
}

INSTANTIATE_TEST_SUITE_P(
    Requests, NamedMachineRefusal,
    testing::ValuesIn(std::vector<RequestRefusal>{
        {"h100x8,nodes=2", 32, "'h100x8' has 16 ranks, got a mesh of 32; give nodes=4"},
        {"h100x9", 1, "got 'h100x9', expected a file or one of a*"},
        {"h100x8,nodes=0", 1, "nodes: *"},
        {"h100x8,racks=2", 1,
         "got 'racks=2', expected nodes=N, network=NAME or kernels=NAME behind the machine"},
        {"h100x8,", 1, "got '', expected nodes=N, network=NAME or kernels=NAME behind the machine"},
        {"h100x8,network=", 1,
         "got 'network=', expected nodes=N, network=NAME or kernels=NAME behind the machine"},
        {"h100x8,kernels=", 1,
         "got 'kernels=', expected nodes=N, network=NAME or kernels=NAME behind the machine"},
        {"h100x8,nodes=2,nodes=3", 1, "got 'nodes=3', expected one nodes= behind the machine"},
        {"a100x8,kernels=mine", 1,
         "kernels: got 'mine', expected one of own, flash-attention, flash-attention-2, "
         "flash-attention-2-eager"},
        {"host,kernels=cudnn", 1, "kernels: got 'cudnn', expected own, the only ones of 'host'"},
        {"h100x8,network=tin", 1, "network: got 'tin', expected one*"},
        {"host,nodes=2", 2, "'host' cannot be one of several nodes: it*"},
    }));

} // namespace
