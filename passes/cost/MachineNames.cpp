//===- MachineNames.cpp - the names that machine files may use ------------===//

#include "passes/cost/Machine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir::fsdp;

const std::vector<std::string> &cost::getAlgorithmNames() {
  static const std::vector<std::string> names = {"ring", "tree", "recursive", "hierarchical",
                                                 "direct"};
  return names;
}

const std::vector<std::string> &cost::getProductNames() {
  static const std::vector<std::string> names = {"matrix", "attention", "attention_grad"};
  return names;
}

const std::vector<std::string> &cost::getRateTypeNames() {
  static const std::vector<std::string> names = {"f32", "bf16", "f16", "f64"};
  return names;
}

const std::vector<std::string> &cost::getCollectiveNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> names = {
#define FSDP_COLLECTIVE(name, Kind, Request) #name,
#define FSDP_SEND(name, Kind, Request) #name,
#define FSDP_RECEIVE(name, Kind, Request) #name,
#include "runtime/program/Collectives.def"
    };
    llvm::sort(names);
    names.erase(llvm::unique(names), names.end()); // an op may have several kinds
    return names;
  }();
  return names;
}

const std::vector<std::string> &cost::getLaunchKindNames() {
  static const std::vector<std::string> names = [] {
    llvm::SmallVector<llvm::StringRef> words;
    llvm::SplitString(
        "acceptable advance all_gather all_reduce all_slice all_to_all argmax attention "
        "attention_bias_grad attention_grad broadcast cached_attention clip_scale "
        "collective_permute concat cross_entropy cross_entropy_grad dropout einsum "
        "embedding embedding_grad flatten fused input layer_norm layer_norm_grad "
        "learning_rate mask_padding mask_samples microbatch_samples next_microbatch "
        "optimizer_step output output_sum pad partial_cross_entropy positions_since "
        "rearrange receive reduce reduce_scatter repeat rms_norm rms_norm_grad rope "
        "sample_count scan_sum send shard_indices shard_offset shard_size slice softmax "
        "square_sum write_rows",
        words);
    return std::vector<std::string>(words.begin(), words.end());
  }();
  return names;
}
