//===- ProductTunerTest.cpp - algorithms of products by their times, emulated -------===//
#include "runtime/execution/cuda/ProductTuner.h"
#include "Emulation.h"
#include "runtime/kernels/cuda/Matmul.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace fsdp::rt;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

constexpr float kForever = std::numeric_limits<float>::infinity();
constexpr const char *kMachine = "CPU emulating CUDA (9.0), cuBLASLt 130100";
constexpr int kSize = 12;

class Tuner : public Emulation {
protected:
  Tuner() : folder(testing::TempDir() + "product-tuner") { std::filesystem::remove_all(folder); }
  ~Tuner() override { std::filesystem::remove_all(folder); }

  std::unique_ptr<ProductTuner> make(const std::string &machine = kMachine, int rank = 0) {
    return std::make_unique<ProductTuner>(
        ProductTuner::Setting{rank, machine, folder, [this](int &number) {
                                ++broadcasts;
                                number = fromFirst < 0 ? number : fromFirst;
                              }});
  }
  int choose(ProductTuner &tuner, std::vector<float> times) {
    return tuner.choose("product", static_cast<int>(times.size() ? times.size() : 3),
                        [&] { return times; });
  }
  /// A product with `tuner`: its elements, and what it said.
  std::vector<float> multiply(ProductTuner *tuner) {
    Blas blas(tuner);
    Buffer<float> a(kSize * kSize), b(kSize * kSize), c(kSize * kSize);
    std::vector<float> values(kSize * kSize);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = 1.0f / float(i * 7919 % 1009 + 1);
    for (float *to : {a.data, b.data})
      EXPECT_EQ(
          cudaMemcpy(to, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice),
          cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    const Gemm g{kSize, kSize, kSize, {1, 1, 1}, {kSize, 1, {}}, {kSize, 1, {}}, {kSize, 1, {}}};
    StreamWorkspace workspace;
    testing::internal::CaptureStderr();
    for (int call = 0; call < 2; ++call)
      EXPECT_EQ(matmul(blas, g, a.data, b.data, c.data, WorkStream{nullptr, &workspace}),
                CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    said = testing::internal::GetCapturedStderr();
    return c.values();
  }
  std::string cacheFile() const {
    std::string found;
    for (const auto &entry : std::filesystem::directory_iterator(folder))
      found = entry.path();
    return found;
  }

  std::string folder, said;
  int broadcasts = 0, fromFirst = -1;
};

TEST_F(Tuner, TakesTheFastestAlgorithm) {
  const std::vector<float> first = multiply(nullptr);
  EXPECT_THAT(said, IsEmpty());
  std::vector<std::vector<float>> seen = {first};
  for (int fastest = 1; fastest < 4; ++fastest) {
    emulator::settings() = emulator::Settings();
    emulator::configure("fastest=" + std::to_string(fastest));
    std::filesystem::remove_all(folder);
    const auto tuner = make();
    const std::vector<float> got = multiply(tuner.get());
    for (const std::vector<float> &other : seen)
      EXPECT_NE(got, other) << "algorithm " << fastest;
    seen.push_back(got);
    EXPECT_THAT(said, HasSubstr("product 12 x 12 x 12, f32 to f32, plan 12 12 12 "));
    EXPECT_THAT(said, HasSubstr(": algorithm " + std::to_string(fastest) + " of 4, "));
    ASSERT_EQ(tuner->choices().algorithms.size(), 1u);
    EXPECT_EQ(tuner->choices().algorithms.begin()->second, fastest);
  }
}

// The sum of an operand, as the product, goes to memory of the measurement.
TEST_F(Tuner, MeasuresSumsOfOperandsElsewhere) {
  emulator::configure("fastest=1");
  const auto tuner = make();
  Blas blas(tuner.get());
  Buffer<float> a(kSize * kSize), b(kSize * kSize), c(kSize * kSize), sum(kSize);
  const std::vector<float> sevens(kSize * kSize, 7);
  for (float *to : {a.data, b.data, c.data})
    ASSERT_EQ(cudaMemcpy(to, sevens.data(), sevens.size() * sizeof(float), cudaMemcpyHostToDevice),
              cudaSuccess);
  ASSERT_EQ(cudaMemcpy(sum.data, sevens.data(), kSize * sizeof(float), cudaMemcpyHostToDevice),
            cudaSuccess);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  const Gemm g{kSize, kSize, kSize, {1, 1, 1}, {1, kSize, {}}, {kSize, 1, {}}, {kSize, 1, {}}};
  EpilogueOperands epilogue;
  epilogue.operandSum = sum.data;
  epilogue.sumsRight = true;
  testing::internal::CaptureStderr();
  EXPECT_TRUE(blas.takes(g, CUDA_R_32F, CUDA_R_32F, a.data, b.data, c.data, epilogue));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(": algorithm 1 of 4, "));
  EXPECT_EQ(sum.values(), std::vector<float>(kSize, 7));
  StreamWorkspace workspace;
  EXPECT_EQ(blas.multiply(g, CUDA_R_32F, CUDA_R_32F, a.data, b.data, c.data,
                          WorkStream{nullptr, &workspace}, epilogue),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(sum.values(), std::vector<float>(kSize, 7 * kSize));
}

// Not for a difference that two measurements may have, nor for an algorithm that fails.
TEST_F(Tuner, PrefersTheFirstAlgorithm) {
  for (auto [times, expected] : {std::pair(std::vector<float>{1, 0.99f, 0.985f}, 0),
                                 {{1, 0.97f, 0.9f}, 2},
                                 {{1, kForever, kForever}, 0},
                                 {{kForever, 3, kForever}, 1},
                                 {{kForever, kForever, kForever}, 0},
                                 {{}, 0}}) {
    std::filesystem::remove_all(folder);
    testing::internal::CaptureStderr();
    EXPECT_EQ(choose(*make(), times), expected);
    const std::string text = testing::internal::GetCapturedStderr();
    EXPECT_THAT(text, HasSubstr(times.empty() ? ", as no memory is free to measure others"
                                              : " ms (the first: "));
  }
}

TEST_F(Tuner, MeasuresOnlyWhereMemoryIsFree) {
  emulator::configure("fastest=2,memory=3000");
  const auto tuner = make();
  multiply(tuner.get());
  EXPECT_THAT(said, HasSubstr("algorithm 0 of 4, as no memory is free to measure others"));
  EXPECT_FALSE(std::filesystem::exists(folder)); // it may be free in another run
}

TEST_F(Tuner, MeasuresOnRankZeroOnly) {
  fromFirst = 2;
  const auto tuner = make(kMachine, /*rank=*/1);
  EXPECT_EQ(tuner->choose("product", 3,
                          []() -> std::vector<float> {
                            ADD_FAILURE() << "rank 1 measures";
                            return {};
                          }),
            2);
  EXPECT_EQ(broadcasts, 1);
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(Tuner, KeepsChoicesInTheCache) {
  emulator::configure("fastest=3");
  const std::vector<float> measured = multiply(make().get());
  emulator::configure("fastest=1");
  EXPECT_EQ(multiply(make().get()), measured);
  EXPECT_THAT(said, IsEmpty());
  // Of another machine, or among another number of algorithms, they say nothing.
  multiply(make("another GPU (8.0), cuBLASLt 130100").get());
  EXPECT_THAT(said, HasSubstr("algorithm 1 of 4"));
}

TEST_F(Tuner, IgnoresCacheFilesOfOtherText) {
  emulator::configure("fastest=3");
  const std::vector<float> measured = multiply(make().get());
  const std::string path = cacheFile();
  std::string whole;
  std::getline(std::ifstream(path), whole, '\0');
  EXPECT_THAT(whole,
              HasSubstr(std::string("fsdpc product 1\nmachine ") + kMachine + "\nproduct 12 x"));
  const std::string start = whole.substr(0, whole.size() - 2);
  for (const std::string &text :
       {std::string(), std::string("choice 1\n"), whole.substr(0, whole.size() - 1), start + "4\n",
        start + "-1\n", start + "1x\n", start + "11111111111\n", whole + whole, "x" + whole,
        whole.substr(0, 40) + "H" + whole.substr(41)}) {
    std::ofstream(path) << text;
    const auto tuner = make();
    EXPECT_EQ(multiply(tuner.get()), measured);
    EXPECT_THAT(said, HasSubstr("note: '" + path +
                                "' got other text than the choice of one of 4 "
                                "algorithms for 12 x 12 x 12, f32 to f32"));
    EXPECT_THAT(said, HasSubstr("it is ignored, the product is measured and the file replaced; "
                                "further faults of the cache are not listed"));
    EXPECT_THAT(said, HasSubstr("algorithm 3 of 4"));
    std::string again;
    std::getline(std::ifstream(path), again, '\0');
    EXPECT_EQ(again, whole);
  }
  // One message, however many files are wrong.
  std::ofstream(path) << "wrong";
  std::ofstream(folder + "/" + ProductTuner::cacheName(kMachine, "product")) << "wrong";
  const auto tuner = make();
  multiply(tuner.get());
  testing::internal::CaptureStderr();
  EXPECT_EQ(choose(*tuner, {3, 2, 1}), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), Not(HasSubstr("note: ")));
}

TEST_F(Tuner, GoesOnWithoutAFolderThatItCannotMake) {
  std::ofstream(folder) << "a file";
  emulator::configure("fastest=2");
  const auto tuner = make();
  multiply(tuner.get());
  EXPECT_THAT(said, HasSubstr("algorithm 2 of 4"));
  EXPECT_THAT(said, HasSubstr("note: cannot create the folder '" + folder + "': "));
  EXPECT_THAT(said, HasSubstr("choices of algorithms are not kept"));
}

TEST_F(Tuner, AdoptsTheChoicesOfACheckpoint) {
  emulator::configure("fastest=3");
  const auto before = make();
  const std::vector<float> measured = multiply(before.get());
  std::filesystem::remove_all(folder);
  emulator::configure("fastest=1");
  const auto after = make();
  after->adopt(before->choices());
  EXPECT_EQ(multiply(after.get()), measured);
  EXPECT_THAT(said, IsEmpty());
  EXPECT_EQ(after->choices().algorithms, before->choices().algorithms);

  ProductChoices other = before->choices();
  other.machine = "another GPU";
  const auto elsewhere = make();
  testing::internal::CaptureStderr();
  elsewhere->adopt(other);
  elsewhere->adopt({}); // of a run that measured nothing
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            std::string("note: the checkpoint has algorithms of products for another GPU, and this "
                        "is ") +
                kMachine + ": they are not used\n");
  EXPECT_NE(multiply(elsewhere.get()), measured);

  other = before->choices();
  other.algorithms.begin()->second = 100; // cuBLASLt proposes fewer
  std::filesystem::remove_all(folder);
  const auto fewer = make();
  fewer->adopt(other);
  multiply(fewer.get());
  EXPECT_THAT(said, HasSubstr("algorithm 1 of 4"));
}

TEST_F(Tuner, FindsItsFolder) {
  const auto folderOf = [](const char *own, const char *cache, const char *home) {
    const std::pair<const char *, const char *> values[] = {
        {"FSDP_TUNE_CACHE", own}, {"XDG_CACHE_HOME", cache}, {"HOME", home}};
    std::vector<std::pair<std::string, std::string>> kept;
    for (auto [name, value] : values) {
      if (const char *before = std::getenv(name))
        kept.emplace_back(name, before);
      value ? setenv(name, value, 1) : unsetenv(name);
    }
    const std::string found = ProductTuner::folderOfEnvironment();
    for (auto [name, value] : values)
      unsetenv(name);
    for (const auto &[name, value] : kept)
      setenv(name.c_str(), value.c_str(), 1);
    return found;
  };
  EXPECT_EQ(folderOf("own", "/cache", "/me"), "own");
  EXPECT_EQ(folderOf("", "/cache", "/me"), "");
  EXPECT_EQ(folderOf(nullptr, "/cache", "/me"), "/cache/fsdp/products");
  EXPECT_EQ(folderOf(nullptr, "relative", "/me"), "/me/.cache/fsdp/products");
  EXPECT_EQ(folderOf(nullptr, nullptr, nullptr), "");
}

} // namespace
