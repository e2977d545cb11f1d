//===- sizes.cpp ----------------------------------------------------------===//

#include "models/sizes.h"

#include "dsl/LibrarySources.h"
#include "dsl/Model.h"
#include "dsl/ModelConfig.h"
#include <string>

using namespace fsdp::dsl;

namespace fsdp::models {

static const LibrarySources sources;

void checkTensor(const std::vector<std::pair<const char *, int64_t>> &sizes) {
  std::vector<int64_t> dims;
  std::string text;
  for (const auto &[option, size] : sizes) {
    dims.push_back(size);
    text += (text.empty()                    ? ""
             : &size == &sizes.back().second ? " and "
                                             : ", ") +
            (option + ("=" + std::to_string(size)));
  }
  if (!isTensorSize(dims))
    throw ModelError(Where::here(), "got " + text +
                                        ", of which a tensor takes more than 2^48 "
                                        "bytes; make them smaller");
}

} // namespace fsdp::models
