//===- RunContents.cpp ----------------------------------------------------===//

#include "runtime/train/RunContents.h"

#include "base/MappedFile.h"
#include "runtime/job/RunIdentity.h"

#include <vector>

namespace fsdp::rt {

using namespace base;

FileContent contentOf(const std::string &path) {
  const MappedFile file(path);
  return {path, file.size(), sampledDigest({file.data(), file.size()})};
}

FileContent contentOf(const WeightFiles &weights) {
  const std::vector<const FileTensor *> tensors = weights.tensors();
  FileContent content{weights.path(), 0, 0, tensors.size()};
  for (const FileTensor *tensor : tensors) {
    std::string text = tensor->name + " " + tensor->dtype;
    for (std::int64_t extent : tensor->shape)
      text += " " + std::to_string(extent);
    content.digest =
        sampledDigest({tensor->data, tensor->bytes}, contentDigest(text, content.digest));
    content.bytes += tensor->bytes;
  }
  return content;
}

RunContents RunContents::of(const Options &options, const WeightFiles *weights) {
  RunContents contents;
  if (!options.data.empty())
    contents.data = contentOf(options.data);
  if (!options.valData.empty())
    contents.valData = contentOf(options.valData);
  if (weights)
    contents.init = contentOf(*weights);
  return contents;
}

} // namespace fsdp::rt
