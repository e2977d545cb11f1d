// Trains test/e2e/handwritten/linear_regression.cpp on 1, 2, 3, 4 and 7 ranks and compares with
// gradient descent written down in double.

#include "base/Safetensors.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <vector>

using namespace base;
namespace fs = std::filesystem;

namespace {

constexpr int kIn = 5, kOut = 3, kBatch = 8, kSamples = 13;

using Numbers = std::vector<float>;

void writeTensors(const std::string &path,
                  const std::vector<std::pair<TensorDeclaration, Numbers>> &tensors) {
  std::vector<TensorDeclaration> headers;
  for (const auto &[header, values] : tensors)
    headers.push_back(header);
  SafetensorsWriter writer(path, headers);
  for (const auto &[header, values] : tensors)
    writer.write(values.data(), values.size());
  writer.commit();
}

std::string textOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Losses, norms and weights of the same training in double.
struct Reference {
  std::vector<double> losses, norms;
  std::vector<double> kernel, bias;

  Reference(const Numbers &x, const Numbers &y, const Numbers &k, const Numbers &b, int steps,
            double lr, double momentum)
      : kernel(k.begin(), k.end()), bias(b.begin(), b.end()) {
    std::vector<double> kernelBuffer(k.size()), biasBuffer(b.size());
    for (int step = 0; step < steps; ++step) {
      std::vector<double> kernelGrad(k.size()), biasGrad(b.size());
      double loss = 0, norm = 0;
      for (int s = 0; s < kBatch; ++s) {
        const int sample = (step * kBatch + s) % kSamples;
        for (int o = 0; o < kOut; ++o) {
          double error = bias[o] - y[sample * kOut + o];
          for (int i = 0; i < kIn; ++i)
            error += double(x[sample * kIn + i]) * kernel[i * kOut + o];
          loss += error * error / (kBatch * kOut);
          const double gradient = 2 * error / (kBatch * kOut);
          biasGrad[o] += gradient;
          for (int i = 0; i < kIn; ++i)
            kernelGrad[i * kOut + o] += gradient * x[sample * kIn + i];
        }
      }
      const auto update = [&](std::vector<double> &p, std::vector<double> &m,
                              const std::vector<double> &g) {
        for (std::size_t i = 0; i < p.size(); ++i) {
          norm += g[i] * g[i];
          m[i] = momentum * m[i] + g[i];
          p[i] -= lr * m[i];
        }
      };
      update(kernel, kernelBuffer, kernelGrad);
      update(bias, biasBuffer, biasGrad);
      losses.push_back(loss);
      norms.push_back(std::sqrt(norm));
    }
  }
};

class DriverTest : public testing::Test {
protected:
  void SetUp() override {
    folder = fs::temp_directory_path() / ("fsdp-driver-test-" + std::to_string(getpid()));
    fs::create_directories(folder);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    const auto fill = [&](Numbers &values, std::size_t count) {
      values.resize(count);
      for (float &value : values)
        value = normal(random);
    };
    fill(x, kSamples * kIn), fill(y, kSamples * kOut);
    fill(kernel, kIn * kOut), fill(bias, kOut);
    writeTensors(at("data"), {{{"x", {kSamples, kIn}}, x}, {{"y", {kSamples, kOut}}, y}});
    writeTensors(at("init"), {{{"kernel", {kIn, kOut}}, kernel}, {{"bias", {kOut}}, bias}});
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string at(const std::string &name) const { return folder / name; }

  /// Runs the program of that many ranks; what it prints goes to `said`.
  int train(int ranks, const std::string &arguments, const std::string &before = "") {
    const std::string command = before + HANDWRITTEN_FOLDER "/linear_regression-" +
                                std::to_string(ranks) + " " + arguments + " > " + at("said") +
                                " 2>&1";
    const int status = std::system(command.c_str());
    said = textOf(at("said"));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::vector<nlohmann::json> log() const {
    std::vector<nlohmann::json> lines;
    std::istringstream in(textOf(at("log")));
    for (std::string line; std::getline(in, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::string dataAndInit() const { return "--data " + at("data") + " --init " + at("init"); }

  Numbers weights(const std::string &file, const std::string &name) const {
    const SafetensorsFile reader(at(file));
    const FileTensor *tensor = reader.find(name);
    Numbers values(tensor ? tensor->elements() : 0);
    if (tensor)
      tensor->readFloats(0, values.size(), values.data());
    return values;
  }

  fs::path folder;
  Numbers x, y, kernel, bias;
  std::string said;
};

TEST_F(DriverTest, TrainsAsTheUnshardedProgramWould) {
  constexpr int steps = 12;
  const Reference expected(x, y, kernel, bias, steps, 0.1f, 0.9f);
  for (int ranks : {1, 2, 3, 4, 7}) {
    ASSERT_EQ(train(ranks, dataAndInit() + " --steps " + std::to_string(steps) + " --log " +
                               at("log") + " --export " + at("out")),
              0)
        << said;
    const auto lines = log();
    ASSERT_EQ(lines.size(), std::size_t(steps));
    for (int s = 0; s < steps; ++s) {
      EXPECT_EQ(lines[s]["step"], s + 1);
      EXPECT_NEAR(lines[s]["loss"], expected.losses[s], 1e-6 * expected.losses[s]) << ranks;
      EXPECT_NEAR(lines[s]["grad_norm"], expected.norms[s], 2e-6 * expected.norms[s]) << ranks;
      EXPECT_EQ(lines[s]["lr"].get<float>(), 0.1f);
      EXPECT_GT(lines[s]["tokens_per_s"], 0);
      EXPECT_GT(lines[s]["step_ms"], 0);
      EXPECT_GT(lines[s]["peak_bytes"], 500);
      EXPECT_GT(lines[s]["largest_error"], 0);
    }
    const auto close = [&](const std::string &name, const std::vector<double> &reference) {
      const Numbers values = weights("out", name);
      ASSERT_EQ(values.size(), reference.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(values[i], reference[i], 1e-6) << ranks << " ranks, " << name << ' ' << i;
    };
    close("kernel", expected.kernel);
    close("bias", expected.bias);
    EXPECT_NE(said.find("step 12/12"), std::string::npos) << said;
    EXPECT_NE(said.find(" left"), std::string::npos) << said;
  }
}

TEST_F(DriverTest, RunsAreBitwiseEqual) {
  const std::string arguments = dataAndInit() + " --steps 5 --export ";
  ASSERT_EQ(train(3, arguments + at("a")), 0) << said;
  ASSERT_EQ(train(3, arguments + at("b")), 0) << said;
  EXPECT_EQ(textOf(at("a")), textOf(at("b")));
}

TEST_F(DriverTest, InitialWeightsDependOnTheSeedAlone) {
  const auto initial = [&](int ranks, const std::string &seed, const std::string &file) {
    EXPECT_EQ(train(ranks, "--data " + at("data") + " --steps 1 --lr 0 --seed " + seed +
                               " --export " + at(file)),
              0)
        << said;
    return textOf(at(file));
  };
  const std::string one = initial(1, "5", "a");
  EXPECT_EQ(one, initial(2, "5", "b"));
  EXPECT_EQ(one, initial(7, "5", "b"));
  EXPECT_NE(one, initial(2, "6", "b"));
  EXPECT_EQ(weights("a", "bias"), Numbers(kOut, 0));
  EXPECT_NE(weights("a", "kernel")[0], 0);
}

TEST_F(DriverTest, BeginsWithAndWritesWeightsInPart) {
  writeTensors(at("half"), {{{"nel", {kIn, kOut}}, kernel}});
  const std::string run = "--data " + at("data") + " --steps 1 --lr 0 --seed 5 --export ";
  ASSERT_EQ(train(1, run + at("drawn")), 0) << said;
  for (int ranks : {1, 3}) {
    ASSERT_EQ(train(ranks, run + at("out") + " --init 'ker*=" + at("half") +
                               "' --init-missing=draw --log-header --log " + at("log")),
              0)
        << said;
    EXPECT_NE(said.find("\n--init has no tensor of 1 parameter, whose values are drawn: 'bias'\n"),
              std::string::npos)
        << said;
    EXPECT_EQ(log()[0]["run"]["drawn"], nlohmann::json({"bias"}));
    EXPECT_EQ(weights("out", "kernel"), kernel);
    EXPECT_EQ(weights("out", "bias"), weights("drawn", "bias"));
  }
  ASSERT_EQ(train(2, run + at("part") + " --init " + at("init") + " --export-only 'b*s'"), 0)
      << said;
  EXPECT_EQ(weights("part", "bias"), bias);
  EXPECT_TRUE(weights("part", "kernel").empty());
  ASSERT_EQ(train(2, run + at("out") + " --init 'ker*=" + at("half") + "' --init " + at("part")), 0)
      << said;
  EXPECT_EQ(said.find("drawn"), std::string::npos) << said;
  EXPECT_EQ(weights("out", "kernel"), kernel);
  EXPECT_EQ(weights("out", "bias"), bias);
  ASSERT_EQ(train(2, run + at("both") + " --export-only bias --export-only 'k*'"), 0) << said;
  EXPECT_EQ(weights("both", "kernel").size(), kernel.size());
  EXPECT_EQ(weights("both", "bias").size(), bias.size());

  const auto refused = [&](int status, const std::string &arguments, const std::string &why) {
    EXPECT_EQ(train(2, run + at("none") + " " + arguments), status) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_FALSE(fs::exists(at("none")));
  };
  refused(1, "--init " + at("part"), "parameter(s): 'kernel'; expected one for every parameter");
  refused(1, "--init " + at("part") + " --init " + at("init"), "got parameter 'bias' in '");
  refused(2, "--init 'x*=" + at("part") + "'", "--init: no parameter matches 'x*'");
  refused(2, "--init '*a*=" + at("part") + "'", "expected one '*' at most in the pattern");
  refused(2, "--init =" + at("part"), "expected FILE or PATTERN=FILE");
  refused(2, "--init 'a*='", "expected FILE or PATTERN=FILE");
  refused(2, "--init-missing=draw", "got --init-missing without --init");
  refused(2, "--init " + at("init") + " --init-missing=zero", "got 'zero', expected error or draw");
  refused(2, "--export-only kernels", "--export-only: no parameter matches 'kernels'");
  EXPECT_EQ(train(2, "--data " + at("data") + " --steps 1 --export-only bias"), 2) << said;
  EXPECT_NE(said.find("got --export-only without --export"), std::string::npos) << said;
}

TEST_F(DriverTest, EvaluatesEverySampleOnce) {
  // Less than a batch of 8; a batch; one sample more; one batch and five samples. Most ranks then
  // have none of the last batch.
  for (int samples : {3, 8, 9, 13}) {
    double squares = 0, largest[2] = {0, 0};
    for (int s = 0; s < samples; ++s)
      for (int o = 0; o < kOut; ++o) {
        double error = bias[o] - y[s * kOut + o];
        for (int i = 0; i < kIn; ++i)
          error += double(x[s * kIn + i]) * kernel[i * kOut + o];
        squares += error * error;
        largest[s / kBatch] = std::max(largest[s / kBatch], std::abs(error));
      }
    const double loss = squares / (samples * kOut);
    const int inFirst = std::min(samples, kBatch);
    const double error = (largest[0] * inFirst + largest[1] * (samples - inFirst)) / samples;
    writeTensors(
        at("val"),
        {{{"x", {std::int64_t(samples), kIn}}, Numbers(x.begin(), x.begin() + samples * kIn)},
         {{"y", {std::int64_t(samples), kOut}}, Numbers(y.begin(), y.begin() + samples * kOut)}});
    for (int ranks : {1, 2, 3, 4, 7}) {
      ASSERT_EQ(train(ranks, dataAndInit() + " --steps 5 --eval-every 2 --lr 0 --val-data " +
                                 at("val") + " --log " + at("log")),
                0)
          << said;
      const auto lines = log();
      ASSERT_EQ(lines.size(), 5u);
      for (int s = 0; s < 5; ++s)
        EXPECT_EQ(lines[s].contains("val_loss"), s == 1 || s == 3 || s == 4);
      for (int s : {1, 4}) {
        EXPECT_NEAR(lines[s]["val_loss"], loss, 1e-6 * loss) << samples << " on " << ranks;
        EXPECT_NEAR(lines[s]["val_largest_error"], error, 1e-6 * error)
            << samples << " on " << ranks;
      }
      EXPECT_NE(said.find("val_loss"), std::string::npos);
    }
  }
}

TEST_F(DriverTest, EpochsArePassesOverTheData) {
  ASSERT_EQ(train(1, dataAndInit() + " --epochs 2 --log " + at("log")), 0) << said;
  EXPECT_EQ(log().size(), 4u) << "26 samples are 4 batches of 8, the last one wrapping";
}

TEST_F(DriverTest, ThreeBadStepsInARowEndTheJob) {
  Numbers huge(kernel.size(), 1e25f);
  writeTensors(at("init"), {{{"kernel", {kIn, kOut}}, huge}, {{"bias", {kOut}}, bias}});
  ASSERT_EQ(train(3, dataAndInit() + " --steps 9 --log " + at("log") + " --export " + at("out")),
            1);
  EXPECT_EQ(log().size(), 2u) << "the third bad step ends the job";
  EXPECT_TRUE(log()[0]["loss"].is_null());
  EXPECT_NE(said.find("in step 3, the last of 3 in a row that are not finite and whose updates "
                      "were skipped"),
            std::string::npos)
      << said;
  EXPECT_FALSE(fs::exists(at("out")));
}

TEST_F(DriverTest, NamesTheFirstBadGradient) {
  // The errors are finite, their products with x are not.
  Numbers wide(x.size(), 3e38f), none(kernel.size(), 0);
  std::fill(y.begin(), y.end(), 100.0f);
  writeTensors(at("data"), {{{"x", {kSamples, kIn}}, wide}, {{"y", {kSamples, kOut}}, y}});
  writeTensors(at("init"), {{{"kernel", {kIn, kOut}}, none}, {{"bias", {kOut}}, bias}});
  ASSERT_EQ(train(2, dataAndInit() + " --steps 9"), 1);
  EXPECT_NE(said.find("the first gradient that is not finite is that of 'kernel'"),
            std::string::npos)
      << said;
}

TEST_F(DriverTest, RefusesBadInputBeforeItStarts) {
  const auto refused = [&](int status, const std::string &arguments, const std::string &why) {
    EXPECT_EQ(train(2, arguments), status) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  refused(2, dataAndInit() + " --steps 1 --frobnicate", "--frobnicate");
  refused(1, "--data /nowhere/data --steps 1", "cannot open '/nowhere/data'");
  refused(1, dataAndInit() + " --steps 1 --export /nowhere/out", "cannot create '/nowhere/out'");
  refused(1, dataAndInit() + " --steps 1 --log /nowhere/log", "cannot create '/nowhere/log'");
  refused(1, dataAndInit() + " --steps 1 --trace /nowhere/t", "cannot create '/nowhere/t'");
  refused(1, "--data " + at("init") + " --steps 1", "tensor 'x': got only 'kernel', 'bias'");
  refused(1, "--data " + at("data") + " --init " + at("data") + " --steps 1",
          "got no tensor for 2 parameter(s): 'kernel', 'bias'");
  fs::resize_file(at("data"), fs::file_size(at("data")) - 1);
  refused(1, dataAndInit() + " --steps 1", "is cut off: got ");
}

TEST_F(DriverTest, AFullDiskLeavesTheOldFileWhole) {
  std::ofstream(at("out")) << "old";
  // No room for a file at all, and no signal about it: the write fails as on a full disk.
  EXPECT_EQ(
      train(2, dataAndInit() + " --steps 1 --export " + at("out"), "trap '' XFSZ; ulimit -f 0; "),
      1);
  EXPECT_EQ(textOf(at("out")), "old");
  for (const auto &entry : fs::directory_iterator(folder))
    EXPECT_EQ(entry.path().string().find(".tmp."), std::string::npos) << entry.path();
}

TEST_F(DriverTest, NothingAllocatesAfterTheFirstStep) {
  ASSERT_EQ(train(2,
                  dataAndInit() + " --steps 20 --trace " + at("trace") + " --val-data " +
                      at("data") + " --eval-every 6 --log " + at("log"),
                  "FSDP_TEST_ALLOCATIONS=" + at("counts") + " LD_PRELOAD=" COUNT_ALLOCATIONS " "),
            0)
      << said;
  std::istringstream in(textOf(at("counts")));
  std::vector<long> counts; // our own; a library's stand behind them
  for (long ours, theirs, bytes; in >> ours >> theirs >> bytes;)
    counts.push_back(ours);
  ASSERT_EQ(counts.size(), 20u);
  EXPECT_GT(counts[0], 0) << "the hook does not count";
  for (std::size_t s = 1; s < counts.size(); ++s)
    EXPECT_EQ(counts[s], 0) << "in step " << s + 1;
}

TEST_F(DriverTest, TracesEveryLaunchOfEveryRank) {
  ASSERT_EQ(train(2, dataAndInit() + " --steps 3 --trace " + at("trace")), 0) << said;
  const auto events = nlohmann::json::parse(textOf(at("trace")))["traceEvents"];
  std::map<int, std::vector<double>> begins; // of the steps of each rank
  std::map<std::string, int> kinds;
  std::set<std::string> threads;
  double flops = 0, bytes = 0;
  for (const auto &event : events) {
    if (event["name"] == "thread_name")
      threads.insert(std::to_string(event["pid"].get<int>()) + "/" +
                     event["args"]["name"].get<std::string>());
    if (event["ph"] != "X")
      continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    ++kinds[event["cat"]];
    if (event["cat"] == "step")
      begins[event["pid"]].push_back(event["ts"]);
    if (event["cat"] == "gemm" && event["pid"] == 1) {
      flops += event["args"]["flops"].get<double>();
      bytes += event["args"]["bytes"].get<double>();
    }
    if (event.contains("tdur"))
      EXPECT_LE(event["tdur"].get<double>(), event["dur"].get<double>() + 1000);
  }
  ASSERT_EQ(begins.size(), 2u);
  EXPECT_EQ(begins[0].size(), 3u);
  EXPECT_EQ(begins[1].size(), 3u);
  EXPECT_LT(std::abs(begins[0][0] - begins[1][0]), 10e6) << "the ranks' clocks begin together";
  EXPECT_EQ(kinds["enqueue"], 6);
  EXPECT_EQ(kinds["evaluate"], 0);
  EXPECT_EQ(kinds["all_gather"], 6);
  // Forward and the weight's gradient: 4 samples of 5 to 3 on each of the two ranks.
  EXPECT_EQ(flops, 3 * 2 * (2.0 * 4 * 5 * 3));
  EXPECT_EQ(bytes, 3 * 2 * 4.0 * (4 * 5 + 5 * 3 + 4 * 3));
  EXPECT_TRUE(threads.count("0/host") && threads.count("1/host"));
  EXPECT_TRUE(threads.count("0/compute") && threads.count("1/compute"));
}

TEST_F(DriverTest, TracesEvaluationApart) {
  ASSERT_EQ(train(1, dataAndInit() + " --steps 2 --val-data " + at("data") +
                         " --eval-every 1 --trace " + at("trace")),
            0)
      << said;
  std::vector<std::string> names;
  const auto events = nlohmann::json::parse(textOf(at("trace")))["traceEvents"];
  for (const auto &event : events)
    if (event["ph"] == "X" && event["tid"] == 0 && event["cat"] != "enqueue") {
      names.push_back(event["name"]);
      EXPECT_EQ(names.back().rfind(event["cat"].get<std::string>(), 0), 0u);
    }
  std::vector<std::string> expected;
  for (const std::string step : {"1", "2"}) {
    expected.push_back("step " + step);
    for (int batch = 0; batch < 2; ++batch) // 13 samples, 8 at a time
      expected.push_back("evaluate " + step);
  }
  EXPECT_EQ(names, expected);
}

TEST_F(DriverTest, PrintsItsMemoryTable) {
  EXPECT_EQ(train(2, "--report"), 0);
  EXPECT_EQ(said, "arena: written by hand\n");
}

TEST(RecordTest, RecordsEveryAction) {
  const fs::path out = fs::temp_directory_path() / ("fsdp-record-" + std::to_string(getpid()));
  for (const std::string name : {"linear_regression", "every_call"}) {
    const std::string program = HANDWRITTEN_FOLDER "/" + name + "-record";
    ASSERT_EQ(std::system((program + " > " + out.string()).c_str()), 0);
    EXPECT_EQ(textOf(out), textOf(HANDWRITTEN_SOURCE "/" + name + ".record"));
  }
  fs::remove(out);
}

} // namespace
