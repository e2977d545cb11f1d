// The host side of a CUDA program, linked as a generated one is: it trains nothing, and says what
// it finds to run on. -DRANKS=N: the ranks of its mesh.
#include "runtime/CudaRuntime.h"

namespace {

using namespace fsdp::rt;

constexpr MeshAxis axes[] = {{"fsdp", RANKS}};
constexpr const char *streams[] = {"compute"};
constexpr const char *outputs[] = {"loss", "grad_norm", "lr"};
constexpr ArenaSpan<float> zero{128, 1};

void train(Context &c) {
  for (int output = 0; output < 3; ++output)
    fsdp::rt::output(c, 0, "output", output, zero);
}

constexpr Segment segments[] = {{"train", train}};
constexpr SegmentRuns runs[] = {{0, 1}};

Program program() {
  Program program{};
  program.name = "nothing";
  program.axes = axes;
  program.arenaBytes = 192;
  program.streams = streams;
  program.segments = segments;
  program.train = {"train", runs, outputs};
  program.stepState = {0, 1};
  program.tokensPerSample = 1;
  program.report = "";
  return program;
}

} // namespace

int main(int argc, char **argv) { return runTraining(program(), argc, argv); }
