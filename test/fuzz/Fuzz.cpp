//===- Fuzz.cpp - a reader under libFuzzer --------------------------------===//
//
// Compiled once for each reader (-DREADER=readWeights); scripts/fuzz runs them.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Readers.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const fsdp::fuzz::Outcome outcome =
      fsdp::fuzz::READER({reinterpret_cast<const char *>(data), size});
  if (outcome.complaint.empty())
    return 0;
  dprintf(2, "%s\n", outcome.complaint.c_str());
  std::abort();
}
