//===- every_call.cpp - each call of the runtime once -----------*- C++ -*-===//
//
// Recorded and compared with every_call.record: the reads and writes of each call, and their order.
// It is also compiled to perform, which shows that every call fits a stream's slot, and for CUDA;
// it is never run.
//
//===----------------------------------------------------------------------===//

#ifdef FSDP_CUDA_CALLS
#include "runtime/CudaRuntime.h"
#else
#include "runtime/Runtime.h"
#endif

namespace {

using namespace fsdp::rt;

constexpr ArenaSpan<float> p{0, 4}, g{64, 4}, m{128, 4}, v{192, 4}, lr{256, 1}, scale{320, 1};
constexpr ArenaSpan<bool> ok{384, 1};
constexpr ArenaSpan<StepState> state{448, 1};
constexpr ArenaSpan<double> sum{640, 1};
constexpr ArenaSpan<std::int32_t> label{704, 2};
constexpr ArenaSpan<std::int64_t> wide_label{768, 2};
constexpr ShardLayout tile{1, 2, 1, 4};

constexpr MeshAxis axes[] = {{"fsdp", 2}};
constexpr const char *streams[] = {"compute"};
constexpr CommunicatorSpec communicators[] = {{"fsdp_compute", {0}}};
constexpr Parameter members[] = {{"p", nullptr, {4}, {4}, 0, Initializer::zeros(), true}};
constexpr Storage storages[] = {{"unit", Layout::Flat, {0}, 0, 0, 4, 0, p, {}, members}};
constexpr const char *outputs[] = {"loss"};

/// An update rule with any number of states.
#ifdef FSDP_CUDA_CALLS
constexpr auto rule = [](auto...) { return cudaSuccess; };
#else
constexpr auto rule = [](std::int64_t, std::int64_t, UpdateStep, auto *...) {};
#endif

/// A generated kernel with any number of operands.
constexpr auto fused = [](auto...) {
#ifdef FSDP_CUDA_CALLS
  return cudaSuccess;
#endif
};

void step(Context &c) {
  const Storage &unit = storages[0];
  load_input(c, 0, "load_input", 0, p);
  all_gather(c, 0, "all_gather", 0, tile, m, p);
  reduce_scatter(c, 0, "reduce_scatter", 0, tile, p, m);
  collective_group(c, 0, "gathers", 0, all_gather(tile, m, p), all_gather(tile, v, g));
  collective_group(c, 0, "reductions", 0, reduce_scatter(tile, p, m), reduce_scatter(tile, g, v));
  all_slice(c, 0, "all_slice", RankPiece{1, 2, 1, 4, /*index=*/0}, p, m);
  all_reduce(c, 0, "all_reduce", 0, ReduceOp::Sum, sum, sum);
  broadcast(c, 0, "broadcast", 0, Root{0}, p, p);
  broadcast(c, 0, "broadcast into", 0, Root{1}, p, g);
  all_to_all(c, 0, "all_to_all", 0, AllToAllLayout{1, 1, 1, 1, 2, 2, 4, true}, p, g);
  all_to_all(c, 0, "repartition", 0, RepartitionLayout{1, 4, 1, 1}, p, lr);
  collective_permute(c, 0, "collective_permute", 0, SourceRanks::of<1, -1>(), p, g);
  send(c, 0, "send", 0, Peer{1}, p);
  receive(c, 0, "receive", 0, Peer{-1}, g);
  gemm(c, 0, "gemm", Gemm{2, 2, 2, {1, 1, 1}, {2, 1, {}}, {2, 1, {}}, {2, 1, {}}, 0}, p, g, m);
#ifndef FSDP_CUDA_CALLS
  gemm(c, 0, "gemm added", Gemm{2, 2, 2, {1, 1, 1}, {2, 1, {}}, {2, 1, {}}, {2, 1, {}}, 1}, p, g,
       m);
#endif
  gemm(c, 0, "gemm with a sum",
       OperandSum{Gemm{2, 2, 2, {1, 1, 1}, {2, 1, {}}, {2, 1, {}}, {2, 1, {}}, 0}, true},
       reads(p, g), writes(m, v), fused);
  launch(c, 0, "launch", reads(p, g), writes(m), fused);
  cross_entropy(c, 0, "cross_entropy", LogitRows{2, 2}, p, label, g, m);
  cross_entropy(c, 0, "cross_entropy alone", LogitRows{2, 2}, p, wide_label, g);
  cross_entropy(c, 0, "cross_entropy with its gradient", LogitRows{2, 2}, p, label, m, g, v, p);
  cross_entropy_grad(c, 0, "cross_entropy_grad", LogitRows{2, 2}, p, label, m, g, v);
  partial_cross_entropy(c, 0, "partial_cross_entropy", LogitRows{2, 2}, p, label, wide_label, g, m,
                        v);
  partial_cross_entropy(c, 0, "partial_cross_entropy with its gradient", LogitRows{2, 2}, p, label,
                        wide_label, m, g, m, v, p);
  cross_entropy_grad(c, 0, "cross_entropy_grad of a part", LogitRows{2, 2}, p, wide_label, m, g,
                     wide_label, v);
  const NormRows norm{2, 2, 1e-5};
  layer_norm(c, 0, "layer_norm", norm, p, g, m, v, lr, scale);
  layer_norm_grad(c, 0, "layer_norm_grad", norm, p, g, lr, scale, m, v, g, m);
  layer_norm_grad(c, 0, "layer_norm_grad with a residual", norm, p, g, lr, scale, m, v, v, g, m);
  layer_norm_grad(c, 0, "layer_norm_grad with sums", norm, p, g, lr, scale, m, v, v, g, m, p);
  rms_norm(c, 0, "rms_norm", norm, p, g, v, scale);
  rms_norm_grad(c, 0, "rms_norm_grad", norm, p, g, scale, m, v, g);
  rms_norm_grad(c, 0, "rms_norm_grad with a residual", norm, p, g, scale, m, v, v, g);
  rms_norm_grad(c, 0, "rms_norm_grad with sums", norm, p, g, scale, m, v, v, g, m);
  softmax(c, 0, "softmax", SoftmaxRows{2, 2}, p, g);
  embedding(c, 0, "embedding", EmbeddingShape{2, 2, 2}, p, label, g);
  embedding_grad(c, 0, "embedding_grad", EmbeddingShape{2, 2, 2}, wide_label, g, p);
  embedding(c, 0, "embedding of a part", EmbeddingShape{2, 2, 2, true}, p, label, g);
  shard_indices(c, 0, "shard_indices", IndexShard{2, 3, 2, 1}, label, label);
  shard_size(c, 0, "shard_size", IndexShard{0, 3, 2, 1}, wide_label);
  shard_offset(c, 0, "shard_offset", IndexShard{0, 3, 2, 1}, wide_label);
  rope(c, 0, "rope", RopeShape{1, 2, 1, 2, 10000, false}, p, g);
  rope(c, 0, "rope at positions", RopeShape{1, 2, 1, 2, 10000, false}, p, label, g);
  scan_sum(c, 0, "scan_sum", ScanShape{2, 2, 1, false, true}, p, g);
  positions_since(c, 0, "positions_since", SequenceShape{1, 2, true, 1, {1}}, label, label);
  dropout(c, 0, "dropout", DropoutMask<2>{0.5, hashName("drop"), 8, {{2, 4}, {2, 1}}}, state, p, g);
  const AttentionShape heads = rowMajor({1, 1, 1, 2, 2, 2, 1, true});
  attention(c, 0, "attention", heads, p, g, m, v, lr);
  attention(c, 0, "attention of one operand", heads, p, v, lr);
  attention_grad(c, 0, "attention_grad", heads, p, g, m, v, lr, p, g, m, v);
  attention_grad(c, 0, "attention_grad of one operand", heads, p, v, lr, g, m);
  const auto bias = withBias(g);
  const auto documents = inDocuments(label);
  attention(c, 0, "attention in documents", heads, p, g, m, documents, v, lr);
  attention(c, 0, "attention in documents of one operand", heads, p, documents, v, lr);
  attention_grad(c, 0, "attention_grad in documents", heads, p, g, m, documents, v, lr, p, g, m, v);
  attention_grad(c, 0, "attention_grad in documents of one operand", heads, p, documents, v, lr, g,
                 m);
  attention(c, 0, "attention with a bias", heads, p, g, m, bias, v, lr);
  attention(c, 0, "attention with a bias of one operand", heads, p, bias, v, lr);
  attention(c, 0, "attention with both", heads, p, g, m, bias, documents, v, lr);
  attention(c, 0, "attention with both of one operand", heads, p, bias, documents, v, lr);
  attention_grad(c, 0, "attention_grad with a bias", heads, p, g, m, bias, v, lr, p, g, m, v);
  attention_grad(c, 0, "attention_grad with a bias of one operand", heads, p, bias, v, lr, g, m);
  attention_grad(c, 0, "attention_grad with both", heads, p, g, m, bias, documents, v, lr, p, g, m,
                 v);
  attention_grad(c, 0, "attention_grad with both of one operand", heads, p, bias, documents, v, lr,
                 g, m);
  attention_bias_grad(c, 0, "attention_bias_grad", heads, p, g, m, bias, v, lr, p, m);
  attention_bias_grad(c, 0, "attention_bias_grad of one operand", heads, p, bias, v, lr, g, m);
  attention_bias_grad(c, 0, "attention_bias_grad in documents", heads, p, g, m, bias, documents, v,
                      lr, p, m);
  attention_bias_grad(c, 0, "attention_bias_grad in documents of one operand", heads, p, bias,
                      documents, v, lr, g, m);
  cached_attention(c, 0, "cached_attention",
                   CachedAttentionShape{1, 1, 1, 2, 2, 2, 1, 0, 0, heads.q}, p, g, m, label, v);
  write_rows(c, 0, "write_rows", WriteShape{1, 1, 2, 2, 2}, p, g, label, m);
  slice(c, 0, "slice", Part{1, 4, 0, 4}, p, g);
  pad(c, 0, "pad", Part{1, 4, 0, 4}, p, g);
  concat(c, 0, "concat", Join<2>{1, {1, 1}}, lr, scale, m);
  square_sum(c, 0, "square_sum", 4, g, sum);
  square_sums(c, 0, "square_sums", Counts<2>{{4, 4}}, g, m, sum);
  learning_rate(c, 0, "learning_rate", state, lr);
  clip_scale(c, 0, "clip_scale", state, lr, scale);
  acceptable(c, 0, "acceptable", state, lr, scale, ok);
  const ArenaSpan<float> noScale{};
  optimizer_steps(c, 0, "sgd", false, rule, lr, noScale, ok, state, badGradient(state),
                  shard_update(unit, p, g));
  optimizer_steps(c, 0, "sgd scaled", false, rule, lr, scale, ok, state, badGradient(state),
                  shard_update(unit, p, g));
  optimizer_steps(c, 0, "sgd momentum", false, rule, lr, noScale, ok, state, badGradient(state),
                  shard_update(unit, p, g, m));
  optimizer_steps(c, 0, "sgd momentum scaled", false, rule, lr, scale, ok, state,
                  badGradient(state), shard_update(unit, p, g, m));
  optimizer_steps(c, 0, "adam", false, rule, lr, noScale, ok, state, badGradient(state),
                  shard_update(unit, p, g, m, v));
  optimizer_steps(c, 0, "adamw scaled", true, rule, lr, scale, ok, state,
                  deferredBadGradient(state), shard_update(unit, p, g, m, v));
  optimizer_steps(c, 0, "adam of two", false, rule, lr, noScale, ok, state, badGradient(state),
                  shard_update(unit, p, g, m), shard_update(unit, v, g, m));
  optimizer_steps(c, 0, "sgd of two, scaled", true, rule, lr, scale, ok, state,
                  deferredBadGradient(state), shard_update(unit, p, g), shard_update(unit, v, m));
  output(c, 0, "output", 0, lr);
  output(c, 0, "output sum", 0, sum, sum);
  sample_count(c, 0, "sample_count", state, wide_label);
  microbatch_samples(c, 0, "microbatch_samples", Microbatches{1, 2, 2, 0}, state, wide_label);
  microbatch_samples(c, 0, "microbatch_samples at 1", Microbatches{1, 2, 2, 0, 1}, wide_label);
  next_microbatch(c, 0, "next_microbatch", 2, state, state);
  advance(c, 0, "advance", state, ok, badGradients(state), state, badGradients(state));
  record(c, 0, 0);
  wait(c, 0, 0);
}

constexpr Segment segments[] = {{"step", step}};
constexpr SegmentRuns runs[] = {{0, 1}};
constexpr ExecutionPlan train{"step", runs, outputs}, evaluate;
constexpr Program program = {"every_call",  axes,     {}, 1024,     streams, 1,
                             communicators, storages, {}, segments, train,   evaluate,
                             state,         0,        1,  "{}"};

} // namespace

int main(int argc, char **argv) { return runTraining(program, argc, argv); }
