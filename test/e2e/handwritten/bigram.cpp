//===- bigram.cpp - a language model's program, by hand ---------*- C++ -*-===//
//
// The smallest language model, p(next | token) = softmax(table[token]): a test of token data and of
// the calls that language models make, which needs no compiler. The table is stored flat over RANKS
// shards; the global batch of 5 samples of 16 tokens is split over the same axis.
//
//===----------------------------------------------------------------------===//

#include "runtime/Runtime.h"

#include <cmath>

#ifndef RANKS
#define RANKS 2
#endif

namespace {

using namespace fsdp::rt;

//===--- Extents ----------------------------------------------------------===//

constexpr std::int64_t kBatch = 5, kContext = 16;
constexpr std::int64_t kRows = (kBatch + RANKS - 1) / RANKS; // samples on this rank
constexpr std::size_t kTokens = kRows * kContext;
constexpr std::size_t kVocabulary = 256, kUnit = kVocabulary * kVocabulary;
constexpr std::size_t kShard = (kUnit + RANKS - 1) / RANKS;

enum : int { kCompute, kGather, kReduce, kInput };     // streams
enum : int { kGatherFsdp, kReduceFsdp, kComputeFsdp }; // communicators
enum : int { kLoss, kGradNorm, kLr };                  // outputs

//===--- Arena ------------------------------------------------------------===//

namespace arena {
template <typename T> constexpr std::size_t after(ArenaSpan<T> slice) {
  return (slice.end() + 63) / 64 * 64;
}
constexpr ArenaSpan<StepState> step_state{0, 1};
constexpr ArenaSpan<float> loss{after(badGradients(step_state)), 1};
constexpr ArenaSpan<float> grad_norm{after(loss), 1};
constexpr ArenaSpan<float> learning_rate{after(grad_norm), 1};
constexpr ArenaSpan<bool> ok{after(learning_rate), 1};
constexpr ArenaSpan<double> loss_sum{after(ok), 1};
constexpr ArenaSpan<double> square_sum{after(loss_sum), 1};
constexpr ArenaSpan<double> weight{after(square_sum), 1};
constexpr ArenaSpan<float> table_parameter{after(weight), kShard};
constexpr ArenaSpan<float> table_grad_shard{after(table_parameter), kShard};
constexpr ArenaSpan<std::int32_t> tokens{after(table_grad_shard), kTokens};
constexpr ArenaSpan<std::int64_t> targets{after(tokens), kTokens};
constexpr ArenaSpan<float> table{after(targets), kUnit};
constexpr ArenaSpan<float> logits{after(table), kTokens * kVocabulary};
constexpr ArenaSpan<float> losses{after(logits), kTokens};
constexpr ArenaSpan<float> log_sum_exp{after(losses), kTokens};
constexpr ArenaSpan<float> upstream{after(log_sum_exp), kTokens};
constexpr ArenaSpan<float> table_grad{after(upstream), kUnit};
constexpr std::size_t bytes = after(table_grad);
} // namespace arena

constexpr ShardLayout table_tile{/*outer=*/1, /*local=*/kShard, /*inner=*/1, /*total=*/kUnit};
constexpr EmbeddingShape lookup{kTokens, kVocabulary, kVocabulary};

//===--- Kernels ----------------------------------------------------------===//

/// What each token's loss counts for; rows past the batch are repeats and count nothing.
void weights(std::int64_t coordinate, float *upstream) {
  for (std::int64_t i = 0; i < std::int64_t(kTokens); ++i)
    upstream[i] = coordinate * kRows + i / kContext < kBatch ? 1.0f / (kBatch * kContext) : 0.0f;
}

void sum_of_losses(const float *losses, const float *upstream, double *sum) {
  double total = 0;
  for (std::size_t i = 0; i < kTokens; ++i)
    total += double(upstream[i] > 0 ? losses[i] : 0.0f);
  *sum = total;
}

void whole_weight(double *weight) { *weight = kBatch * kContext; }

void mean(const double *sum, float *loss) {
  *loss = static_cast<float>(*sum / (kBatch * kContext));
}

void root(const double *sum, float *norm) { *norm = static_cast<float>(std::sqrt(*sum)); }

//===--- Storages ---------------------------------------------------------===//

constexpr Parameter table_members[] = {
    {/*name=*/"transformer.table", /*alias=*/nullptr, /*shape=*/{kVocabulary, kVocabulary},
     /*fileShape=*/{kVocabulary, kVocabulary}, /*offset=*/0, Initializer::normal(0, 0.02),
     /*decay=*/true},
};
constexpr Storage storages[] = {
    {/*name=*/"table", Layout::Flat, /*axes=*/{0}, kGatherFsdp, /*dim=*/0, /*size=*/kUnit,
     /*firstParameter=*/0, arena::table_parameter, /*states=*/{}, table_members},
};

//===--- The step ---------------------------------------------------------===//

void forward(Context &c) {
  load_input(c, kInput, "load tokens", 0, arena::tokens);
  load_input(c, kInput, "load targets", 1, arena::targets);
  record(c, kInput, 0);
  all_gather(c, kGather, "all_gather table", kGatherFsdp, table_tile, arena::table_parameter,
             arena::table);
  record(c, kGather, 1);
  wait(c, kCompute, 0);
  wait(c, kCompute, 1);
  embedding(c, kCompute, "lookup", lookup, arena::table, arena::tokens, arena::logits);
  cross_entropy(c, kCompute, "cross_entropy", LogitRows{kTokens, kVocabulary}, arena::logits,
                arena::targets, arena::losses, arena::log_sum_exp);
  launch(c, kCompute, "weights", reads(), writes(arena::upstream),
         [i = c.rankIn(kComputeFsdp)](float *upstream) { weights(i, upstream); });
  launch(c, kCompute, "loss sum", reads(arena::losses, arena::upstream), writes(arena::loss_sum),
         sum_of_losses);
  all_reduce(c, kCompute, "all_reduce loss", kComputeFsdp, ReduceOp::Sum, arena::loss_sum,
             arena::loss_sum);
}

/// For whole batches only: the number of valid samples is fixed.
void evaluate(Context &c) {
  forward(c);
  launch(c, kCompute, "weight", reads(), writes(arena::weight), whole_weight);
  output(c, kCompute, "output loss", kLoss, arena::loss_sum, arena::weight);
}

/// Gradient descent.
void descend(std::int64_t begin, std::int64_t end, UpdateStep step, const float *parameter,
             const float *gradient, float *newParameter) {
  for (std::int64_t i = begin; i < end; ++i)
    newParameter[i] = parameter[i] - step.lr * (gradient[i] * step.scale);
}

void train(Context &c) {
  forward(c);
  launch(c, kCompute, "loss", reads(arena::loss_sum), writes(arena::loss), mean);
  output(c, kCompute, "output loss", kLoss, arena::loss);
  cross_entropy_grad(c, kCompute, "cross_entropy_grad", LogitRows{kTokens, kVocabulary},
                     arena::logits, arena::targets, arena::log_sum_exp, arena::upstream,
                     arena::logits);
  embedding_grad(c, kCompute, "lookup gradient", lookup, arena::tokens, arena::logits,
                 arena::table_grad);
  record(c, kCompute, 2);
  wait(c, kReduce, 2);
  reduce_scatter(c, kReduce, "reduce_scatter table", kReduceFsdp, table_tile, arena::table_grad,
                 arena::table_grad_shard);
  record(c, kReduce, 3);
  wait(c, kCompute, 3);
  square_sum(c, kCompute, "square_sum table", arena::table_grad_shard.count,
             arena::table_grad_shard, arena::square_sum);
  all_reduce(c, kCompute, "all_reduce square_sum", kComputeFsdp, ReduceOp::Sum, arena::square_sum,
             arena::square_sum);
  launch(c, kCompute, "grad_norm", reads(arena::square_sum), writes(arena::grad_norm), root);
  output(c, kCompute, "output grad_norm", kGradNorm, arena::grad_norm);
  learning_rate(c, kCompute, "learning_rate", arena::step_state, arena::learning_rate);
  output(c, kCompute, "output lr", kLr, arena::learning_rate);
  acceptable(c, kCompute, "acceptable", arena::step_state, arena::loss, arena::grad_norm,
             arena::ok);
  optimizer_steps(c, kCompute, "sgd table", /*deferred=*/false, descend, arena::learning_rate,
                  /*scale=*/ArenaSpan<float>{}, arena::ok, arena::step_state,
                  badGradient(arena::step_state),
                  shard_update(storages[0], arena::table_parameter, arena::table_grad_shard));
  advance(c, kCompute, "advance", arena::step_state, arena::ok, badGradients(arena::step_state),
          arena::step_state, badGradients(arena::step_state));
}

//===--- Tables -----------------------------------------------------------===//

constexpr MeshAxis axes[] = {{"fsdp", RANKS}};
constexpr const char *streams[] = {"compute", "gather", "reduce", "input"};
constexpr CommunicatorSpec communicators[] = {
    {"fsdp_gather", {0}}, {"fsdp_reduce", {0}}, {"fsdp_compute", {0}}};

constexpr Input inputs[] = {
    {/*name=*/"tokens", /*sample=*/{kContext}, /*sampleDim=*/0, arena::tokens, kBatch, kRows,
     /*axes=*/{0}, /*limit=*/kVocabulary, Source::Tokens},
    {/*name=*/"targets", /*sample=*/{kContext}, /*sampleDim=*/0, arena::targets, kBatch, kRows,
     /*axes=*/{0}, /*limit=*/kVocabulary, Source::Targets},
};

constexpr const char *train_outputs[] = {"loss", "grad_norm", "lr"};
constexpr const char *evaluate_outputs[] = {"loss"};
constexpr Segment segments[] = {{"train", train}, {"evaluate", evaluate}};
constexpr SegmentRuns train_runs[] = {{0, 1}}, evaluate_runs[] = {{1, 1}};

constexpr Program program = {
    /*name=*/"bigram",
    axes,
    /*deviceOrder=*/{},
    arena::bytes,
    streams,
    /*events=*/4,
    communicators,
    storages,
    inputs,
    segments,
    /*train=*/{"train", train_runs, train_outputs},
    /*evaluate=*/{"evaluate", evaluate_runs, evaluate_outputs},
    arena::step_state,
    /*defaultLearningRate=*/10.0f,
    /*tokensPerSample=*/kContext,
    /*report=*/"{}",
};

} // namespace

int main(int argc, char **argv) { return runTraining(program, argc, argv); }
