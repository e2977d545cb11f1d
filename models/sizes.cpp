//===- sizes.cpp ----------------------------------------------------------===//

#include "models/sizes.h"

#include "dsl/LibrarySources.h"
#include "dsl/Model.h"
#include <string>

using namespace fsdp::dsl;

namespace fsdp::models {

static const LibrarySources sources;

void checkTensor(const std::vector<std::pair<const char *, int64_t>> &sizes) {
  constexpr int64_t most = (int64_t(1) << 48) / 4; // elements
  int64_t count = 1;
  bool fits = true;
  std::string text;
  for (const auto &[option, size] : sizes) {
    fits = fits && size <= most / count;
    count *= fits ? size : 1;
    text += (text.empty()                    ? ""
             : &size == &sizes.back().second ? " and "
                                             : ", ") +
            (option + ("=" + std::to_string(size)));
  }
  if (!fits)
    throw ModelError(Where::here(), "got " + text +
                                        ", of which a tensor takes more than 2^48 "
                                        "bytes; make them smaller");
}

} // namespace fsdp::models
