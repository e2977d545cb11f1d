//===- cudnn.cpp - the kernels and scratch memory of cuDNN's attention --------===//
//
// cudnn-plans DEVICE.json SHAPE...: which engine of cuDNN computes the attention of a program with
// FSDP_ATTENTION=cudnn, and its gradient, and the scratch memory that they need, without a GPU.
// DEVICE.json has the properties of a GPU as cuDNN writes them (bench/cudnn/). SHAPE is
// BATCHxHEADS[/GROUPS]xPOSITIONSxWIDTH. Needs libcudnn.so.9 and a libcuda.so.1, of which the
// toolkit's stub is enough, in LD_LIBRARY_PATH.
//
//===----------------------------------------------------------------------===//

#include "base/Error.h"
#include "runtime/kernels/cuda/CudnnGraph.h"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

using namespace fsdp::rt;
using base::Error;

namespace {

AttentionShape shapeOf(const std::string &text) {
  unsigned batch = 0, heads = 0, groups = 0, positions = 0, width = 0;
  int end = 0;
  if (std::sscanf(text.c_str(), "%ux%u/%ux%ux%u%n", &batch, &heads, &groups, &positions, &width,
                  &end) != 5) {
    if (std::sscanf(text.c_str(), "%ux%ux%ux%u%n", &batch, &heads, &positions, &width, &end) != 4)
      end = 0;
    groups = heads;
  }
  if (end == 0 || text[static_cast<std::size_t>(end)] != '\0')
    throw Error("got the shape '" + text +
                    "', expected BATCHxHEADS[/GROUPS]xPOSITIONSxWIDTH, as 1x32/8x8192x128",
                base::kExitBadCommandLine);
  AttentionShape shape = {batch,     heads, groups,      positions,
                          positions, width, /*scale=*/1, /*causal=*/true};
  // As programs have them: positions outside of heads.
  const auto strides = [&](std::size_t heads) {
    return HeadStrides{positions * heads * width, width, heads * width};
  };
  shape.q = shape.out = strides(heads);
  shape.k = strides(groups);
  return shape;
}

std::string contentOf(const char *path) {
  std::ifstream file(path);
  if (!file)
    throw Error(std::string("cannot open '") + path + "'", base::kExitBadCommandLine);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

int main(int count, char **arguments) try {
  if (count < 3)
    throw Error("got no shape, expected cudnn-plans DEVICE.json SHAPE...",
                base::kExitBadCommandLine);
  const cudnn::Library &library = cudnn::Library::open();
  const cudnn::Device device = cudnn::deviceOf(library, contentOf(arguments[1]));
  std::printf("cuDNN %s\n", cudnn::versionText(library.version()).c_str());
  for (int i = 2; i < count; ++i) {
    const AttentionShape shape = shapeOf(arguments[i]);
    if (const std::string why = cudnn::whyNot(shape); !why.empty())
      throw Error(cudnn::describe(shape) + ": " + why, base::kExitBadCommandLine);
    std::printf("%s\n", cudnn::describe(shape).c_str());
    for (const bool isGradient : {false, true}) {
      const cudnn::AttentionPlan plan(library, device, shape, isGradient);
      std::printf("  %-8s engine %lld, scratch memory %zu bytes\n",
                  isGradient ? "gradient" : "forward", static_cast<long long>(plan.engine()),
                  plan.workspace());
    }
  }
  return 0;
} catch (const Error &error) {
  std::fprintf(stderr, "cudnn-plans: %s\n", error.what());
  return error.status();
}
