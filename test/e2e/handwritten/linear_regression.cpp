//===- linear_regression.cpp - a generated program, by hand -----*- C++ -*-===//
//
// The compiler's program for y = x kernel + bias with a mean squared error, written by hand: the
// model that code generation follows, and a test of the runtime that needs no compiler. One unit
// (kernel, bias) is stored flat over RANKS shards; the global batch of 8 samples is split over the
// same axis.
//
// A compiler writes numbers where this file computes them from RANKS.
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

constexpr std::int64_t kBatch = 8;                           // samples of the global batch
constexpr std::int64_t kRows = (kBatch + RANKS - 1) / RANKS; // samples on this rank
constexpr std::int64_t kIn = 5, kOut = 3;
constexpr std::size_t kUnit = kIn * kOut + kOut; // kernel, then bias
constexpr std::size_t kShard = (kUnit + RANKS - 1) / RANKS;

enum : int { kCompute, kGather, kReduce, kInput }; // streams
// Communicators: one for each stream that meets other ranks, as a communicator serves one stream.
enum : int { kGatherFsdp, kReduceFsdp, kComputeFsdp };
enum : int { kLayer };                               // storages
enum : int { kLoss, kLargestError, kGradNorm, kLr }; // outputs

//===--- Arena ------------------------------------------------------------===//

namespace arena {
template <typename T> constexpr std::size_t after(ArenaSpan<T> slice) {
  return (slice.end() + 63) / 64 * 64;
}
constexpr ArenaSpan<StepState> step_state{0, 1};
constexpr ArenaSpan<float> loss{after(badGradients(step_state)), 1};
constexpr ArenaSpan<float> largest_error{after(loss), 1};
constexpr ArenaSpan<float> grad_norm{after(largest_error), 1};
constexpr ArenaSpan<float> learning_rate{after(grad_norm), 1};
constexpr ArenaSpan<bool> ok{after(learning_rate), 1};
constexpr ArenaSpan<double> loss_sum{after(ok), 1};
constexpr ArenaSpan<double> square_sum{after(loss_sum), 1};
constexpr ArenaSpan<std::int64_t> samples{after(square_sum), 1}; // of this batch that count
constexpr ArenaSpan<double> weight{after(samples), 1};
constexpr ArenaSpan<double> largest_sum{after(weight), 1};
constexpr ArenaSpan<float> layer_parameter{after(largest_sum), kShard};
constexpr ArenaSpan<float> layer_momentum{after(layer_parameter), kShard};
constexpr ArenaSpan<float> layer_grad_shard{after(layer_momentum), kShard};
constexpr ArenaSpan<float> x{after(layer_grad_shard), kRows * kIn};
constexpr ArenaSpan<float> y{after(x), kRows * kOut};
constexpr ArenaSpan<float> layer_gathered{after(y), kUnit};
constexpr ArenaSpan<float> kernel{layer_gathered.offset, kIn * kOut}; // a view
constexpr ArenaSpan<float> bias{layer_gathered.offset + kIn * kOut * sizeof(float), kOut};
constexpr ArenaSpan<float> error{after(layer_gathered), kRows * kOut};
constexpr ArenaSpan<float> error_grad{after(error), kRows * kOut};
constexpr ArenaSpan<float> layer_grad{after(error_grad), kUnit};
constexpr ArenaSpan<float> kernel_grad{layer_grad.offset, kIn * kOut};
constexpr ArenaSpan<float> bias_grad{layer_grad.offset + kIn * kOut * sizeof(float), kOut};
constexpr std::size_t bytes = after(layer_grad);
} // namespace arena

constexpr ShardLayout layer_tile{/*outer=*/1, /*local=*/kShard, /*inner=*/1, /*total=*/kUnit};

//===--- Kernels ----------------------------------------------------------===//

/// error = error + bias - y; rows past the first `samples` of the batch are repeats and count
/// nothing.
void error_of_rows(std::int64_t coordinate, std::int64_t samples, const float *bias, const float *y,
                   float *error) {
  for (std::int64_t r = 0; r < kRows; ++r) {
    const float weight = coordinate * kRows + r < samples ? 1.0f : 0.0f;
    for (std::int64_t o = 0; o < kOut; ++o)
      error[r * kOut + o] = weight * (error[r * kOut + o] + bias[o] - y[r * kOut + o]);
  }
}

void sum_of_squares(const float *error, double *sum) {
  double total = 0;
  for (std::int64_t i = 0; i < kRows * kOut; ++i)
    total += double(error[i]) * double(error[i]);
  *sum = total;
}

void largest(const float *error, float *result) {
  float value = 0;
  for (std::int64_t i = 0; i < kRows * kOut; ++i)
    value = std::fabs(error[i]) > value ? std::fabs(error[i]) : value;
  *result = value;
}

/// The weight of a sum over the elements of the samples that count.
void weight_of(const std::int64_t *samples, double *weight) {
  *weight = static_cast<double>(*samples * kOut);
}

/// The largest error of a batch counts for each of its elements.
void weigh(const float *largest_error, const double *weight, double *sum) {
  *sum = *largest_error * *weight;
}

void mean(const double *sum, float *loss) { *loss = static_cast<float>(*sum / (kBatch * kOut)); }

void error_gradient(const float *error, float *gradient) {
  for (std::int64_t i = 0; i < kRows * kOut; ++i)
    gradient[i] = error[i] * (2.0f / (kBatch * kOut));
}

void sum_over_rows(const float *gradient, float *sum) {
  for (std::int64_t o = 0; o < kOut; ++o) {
    double total = 0;
    for (std::int64_t r = 0; r < kRows; ++r)
      total += gradient[r * kOut + o];
    sum[o] = static_cast<float>(total);
  }
}

void root(const double *sum, float *norm) { *norm = static_cast<float>(std::sqrt(*sum)); }

//===--- Storages ---------------------------------------------------------===//

constexpr State layer_states[] = {{"momentum", arena::layer_momentum}};
constexpr Parameter layer_members[] = {
    {/*name=*/"kernel", /*alias=*/nullptr, /*shape=*/{kIn, kOut}, /*fileShape=*/{kIn, kOut},
     /*offset=*/0, Initializer::normal(0, 0.02), /*decay=*/true},
    {/*name=*/"bias", /*alias=*/nullptr, /*shape=*/{kOut}, /*fileShape=*/{kOut},
     /*offset=*/kIn * kOut, Initializer::zeros(), /*decay=*/false},
};
constexpr Storage storages[] = {
    {/*name=*/"layer", Layout::Flat, /*axes=*/{0}, kGatherFsdp, /*dim=*/0, /*size=*/kUnit,
     /*firstParameter=*/0, arena::layer_parameter, layer_states, layer_members},
};

//===--- The step ---------------------------------------------------------===//

/// Up to the products; the errors differ between training and evaluation.
void layer_forward(Context &c) {
  load_input(c, kInput, "load x", 0, arena::x);
  load_input(c, kInput, "load y", 1, arena::y);
  record(c, kInput, 0);
  all_gather(c, kGather, "all_gather layer", kGatherFsdp, layer_tile, arena::layer_parameter,
             arena::layer_gathered);
  record(c, kGather, 1);
  wait(c, kCompute, 0);
  wait(c, kCompute, 1);
  gemm(c, kCompute, "layer einsum",
       Gemm{/*m=*/kRows, /*n=*/kOut, /*k=*/kIn, /*batch=*/{1, 1, 1},
            /*a=*/{kIn, 1, {}}, /*b=*/{kOut, 1, {}}, /*c=*/{kOut, 1, {}}, /*beta=*/0},
       arena::x, arena::kernel, arena::error);
}

/// Sums over the ranks of the contributions of the errors.
void measure(Context &c) {
  launch(c, kCompute, "loss sum", reads(arena::error), writes(arena::loss_sum), sum_of_squares);
  all_reduce(c, kCompute, "all_reduce loss", kComputeFsdp, ReduceOp::Sum, arena::loss_sum,
             arena::loss_sum);
  launch(c, kCompute, "largest error", reads(arena::error), writes(arena::largest_error), largest);
  all_reduce(c, kCompute, "all_reduce largest error", kComputeFsdp, ReduceOp::Max,
             arena::largest_error, arena::largest_error);
}

void layer_backward(Context &c) {
  launch(c, kCompute, "error gradient", reads(arena::error), writes(arena::error_grad),
         error_gradient);
  gemm(c, kCompute, "kernel gradient einsum",
       Gemm{/*m=*/kIn, /*n=*/kOut, /*k=*/kRows, /*batch=*/{1, 1, 1},
            /*a=*/{1, kIn, {}}, /*b=*/{kOut, 1, {}}, /*c=*/{kOut, 1, {}}, /*beta=*/0},
       arena::x, arena::error_grad, arena::kernel_grad);
  launch(c, kCompute, "bias gradient", reads(arena::error_grad), writes(arena::bias_grad),
         sum_over_rows);
  record(c, kCompute, 2);
  wait(c, kReduce, 2);
  reduce_scatter(c, kReduce, "reduce_scatter layer", kReduceFsdp, layer_tile, arena::layer_grad,
                 arena::layer_grad_shard);
  record(c, kReduce, 3);
}

/// Gradient descent with momentum 0.9.
void momentum(std::int64_t begin, std::int64_t end, UpdateStep step, const float *parameter,
              const float *gradient, const float *velocity, float *newParameter,
              float *newVelocity) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float faster = 0.9f * velocity[i] + gradient[i] * step.scale;
    newParameter[i] = parameter[i] - step.lr * faster;
    newVelocity[i] = faster;
  }
}

void update(Context &c) {
  wait(c, kCompute, 3);
  square_sum(c, kCompute, "square_sum layer", arena::layer_grad_shard.count,
             arena::layer_grad_shard, arena::square_sum);
  all_reduce(c, kCompute, "all_reduce square_sum", kComputeFsdp, ReduceOp::Sum, arena::square_sum,
             arena::square_sum);
  launch(c, kCompute, "grad_norm", reads(arena::square_sum), writes(arena::grad_norm), root);
  output(c, kCompute, "output grad_norm", kGradNorm, arena::grad_norm);
  learning_rate(c, kCompute, "learning_rate", arena::step_state, arena::learning_rate);
  output(c, kCompute, "output lr", kLr, arena::learning_rate);
  acceptable(c, kCompute, "acceptable", arena::step_state, arena::loss, arena::grad_norm,
             arena::ok);
  optimizer_steps(c, kCompute, "sgd layer", /*deferred=*/false, momentum, arena::learning_rate,
                  /*scale=*/ArenaSpan<float>{}, arena::ok, arena::step_state,
                  badGradient(arena::step_state),
                  shard_update(storages[kLayer], arena::layer_parameter, arena::layer_grad_shard,
                               arena::layer_momentum));
  advance(c, kCompute, "advance", arena::step_state, arena::ok, badGradients(arena::step_state),
          arena::step_state, badGradients(arena::step_state));
}

void train(Context &c) {
  layer_forward(c);
  launch(c, kCompute, "error", reads(arena::bias, arena::y, arena::error), writes(arena::error),
         [i = c.rankIn(kComputeFsdp)](const float *bias, const float *y, const float *,
                                      float *error) { error_of_rows(i, kBatch, bias, y, error); });
  measure(c);
  launch(c, kCompute, "loss", reads(arena::loss_sum), writes(arena::loss), mean);
  output(c, kCompute, "output loss", kLoss, arena::loss);
  output(c, kCompute, "output largest_error", kLargestError, arena::largest_error);
  layer_backward(c);
  update(c);
}

/// Of a batch of which the first samples count, as many as the step state says.
void evaluate(Context &c) {
  sample_count(c, kCompute, "samples", arena::step_state, arena::samples);
  layer_forward(c);
  launch(c, kCompute, "error", reads(arena::samples, arena::bias, arena::y, arena::error),
         writes(arena::error),
         [i = c.rankIn(kComputeFsdp)](const std::int64_t *samples, const float *bias,
                                      const float *y, const float *, float *error) {
           error_of_rows(i, *samples, bias, y, error);
         });
  measure(c);
  launch(c, kCompute, "weight", reads(arena::samples), writes(arena::weight), weight_of);
  output(c, kCompute, "output loss", kLoss, arena::loss_sum, arena::weight);
  launch(c, kCompute, "largest error sum", reads(arena::largest_error, arena::weight),
         writes(arena::largest_sum), weigh);
  output(c, kCompute, "output largest_error", kLargestError, arena::largest_sum, arena::weight);
}

//===--- Tables -----------------------------------------------------------===//

constexpr MeshAxis axes[] = {{"fsdp", RANKS}};
constexpr const char *streams[] = {"compute", "gather", "reduce", "input"};
constexpr CommunicatorSpec communicators[] = {
    {"fsdp_gather", {0}}, {"fsdp_reduce", {0}}, {"fsdp_compute", {0}}};

constexpr Input inputs[] = {
    {/*name=*/"x", /*sample=*/{kIn}, /*sampleDim=*/0, arena::x, kBatch, kRows, /*axes=*/{0},
     /*limit=*/0},
    {/*name=*/"y", /*sample=*/{kOut}, /*sampleDim=*/0, arena::y, kBatch, kRows, /*axes=*/{0},
     /*limit=*/0},
};

constexpr const char *train_outputs[] = {"loss", "largest_error", "grad_norm", "lr"};
constexpr const char *evaluate_outputs[] = {"loss", "largest_error"};
constexpr Segment segments[] = {{"train", train}, {"evaluate", evaluate}};
constexpr SegmentRuns train_runs[] = {{0, 1}}, evaluate_runs[] = {{1, 1}};

constexpr Program program = {
    /*name=*/"linear_regression",
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
    /*evaluate=*/{"evaluate", evaluate_runs, evaluate_outputs, /*countsSamples=*/true},
    arena::step_state,
    /*defaultLearningRate=*/0.1f,
    /*tokensPerSample=*/1,
    /*report=*/"arena: written by hand\n",
};

} // namespace

int main(int argc, char **argv) { return runTraining(program, argc, argv); }
