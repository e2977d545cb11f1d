//===- FileMutationTest.cpp - no file brings a program down ---------------===//
//
// Weights, indices, data sets and token files are changed at random, and read by what generated
// programs and fsdp-run read them with. Each is taken or refused with a message, in bounded time
// and memory; and what fsdp-run takes as parameters, the program takes too.
//
//===----------------------------------------------------------------------===//

#include "base/Error.h"
#include "interpreter/Safetensors.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/data/Dataset.h"
#include "runtime/train/InitialWeights.h"
#include "test/mutation/Batches.h"
#include "test/mutation/FileReaders.h"
#include "test/mutation/Seeds.h"
#include "test/mutation/TextMutator.h"
#include "test/unit/base/TemporaryFile.h"

#include <cmath>
#include <filesystem>
#include <gtest/gtest.h>
#include <limits>

using namespace fsdp::rt;
using namespace fsdp::mutation;

namespace {

enum Counter { kTaken, kRefused };

std::string makeMutant(FileKind kind, std::mt19937 &random) {
  auto [header, data] = makeRight(kind, random);
  bool isText = kind != kTokenFile;
  switch (random() % 8) {
  case 0:
    break; // its own values only
  case 1:
  case 2:
    if (isText && random() % 8 == 0) { // nothing but depth
      size_t depth = 1 + random() % 2'000'000;
      header.insert(header.size() - 1, ", \"deep\": " + std::string(depth, "[{\""[random() % 3]));
    }
    mutateBytes(header, random);
    break;
  case 3:
    mutateBytes(data, random);
    break;
  default:
    if (isText)
      header = mutateText(header, header, random);
    else
      mutateBytes(header, random);
  }
  std::string bytes = joinFile(kind, header, data);
  if (random() % 8 == 0)
    mutateBytes(bytes, random);
  return bytes;
}

/// True where fsdp-run would take the file as parameters.
bool isTakenByInterpreter(const std::string &path, mlir::MLIRContext &context) {
  auto file = mlir::fsdp::interpreter::readSafetensors(path, &context);
  if (!file) {
    llvm::consumeError(file.takeError());
    return false;
  }
  for (const Parameter &parameter : parametersRead) {
    auto found = file->find(parameter.name);
    if (found == file->end() || !found->second.isFloat())
      return false;
    auto shape = found->second.getType().getShape();
    if (!std::equal(shape.begin(), shape.end(), parameter.fileShape.begin(),
                    parameter.fileShape.end()))
      return false;
    for (int64_t i = 0; i < found->second.size(); ++i)
      if (!std::isfinite(found->second.getFloat(i)))
        return false;
  }
  return true;
}

TEST(FileMutationTest, ProgramsTakeOrRefuseEveryFile) {
  constexpr int64_t kMutants = 6000;
  Limits limits;
  limits.bytes = int64_t(2) << 30;
  mlir::MLIRContext context;
  Outcome outcome = runBatches(
      getNumMutants(kMutants), limits, [&](int64_t number, int64_t *counters) -> std::string {
        std::mt19937 random = randomFor(number);
        FileKind kind = static_cast<FileKind>(random() % kKinds);
        TemporaryFile file(fileName(kind));
        file.write(makeMutant(kind, random));
        std::string part = file.folder + "/part.safetensors";
        if (kind == kIndex) {
          auto [header, data] = makeRight(kWeights, random);
          std::ofstream(part, std::ios::binary) << safetensors(header, data);
        }
        std::string words = readByProgram(kind, file.path);
        ++counters[words.empty() ? kTaken : kRefused];
        bool taken = kind == kWeights && isTakenByInterpreter(file.path, context);
        unlink(part.c_str());
        return taken && !words.empty() ? "fsdp-run takes what the program refuses: " + words : "";
      });
  std::printf("%lld mutants: %lld taken, %lld refused\n",
              static_cast<long long>(getNumMutants(kMutants)),
              static_cast<long long>(outcome.counters[kTaken]),
              static_cast<long long>(outcome.counters[kRefused]));
  for (const auto &[number, what] : outcome.findings)
    ADD_FAILURE() << "mutant " << number << " " << what;
}

} // namespace
