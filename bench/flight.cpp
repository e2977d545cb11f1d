//===- flight.cpp - what it costs to keep an action in the flight record ----===//
//
// Prints nanoseconds per action kept: a launch, and a collective with its request; the best of ten
// rounds.
//   clang++-22 -O3 -std=c++20 -I. bench/flight.cpp build/release/lib/libfsdp_runtime.a -lpthread -o
//   flight && ./flight
//
//===----------------------------------------------------------------------===//

#include "base/WaitCounter.h"
#include "runtime/device/FlightTrack.h"

#include <algorithm>
#include <cstdio>
#include <memory>

using namespace base;
using namespace fsdp::rt;

template <class Action> static void measure(const char *name, Action action) {
  constexpr int kActions = 1000000;
  double best = 1e9;
  for (int round = 0; round < 10; ++round) {
    const double begin = now();
    for (int i = 0; i < kActions; ++i)
      action();
    best = std::min(best, now() - begin);
  }
  std::printf("%-12s %6.1f ns\n", name, best / kActions * 1e9);
}

int main() {
  const auto track = std::make_unique<FlightTrack>();
  CollectiveRequest request{};
  measure("launch", [&] {
    track->end(track->begin(FlightAction::Launch, "model.layers.31.self_attn.q_proj.weight"));
  });
  measure("collective",
          [&] { track->end(track->begin(FlightAction::Collective, "", "fsdp", 1, &request)); });
}
