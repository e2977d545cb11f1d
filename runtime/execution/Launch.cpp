//===- Launch.cpp - the actions without templates -------------------------===//

#include "runtime/execution/Launch.h"

namespace fsdp::rt {

void record(Context &c, int stream, int event) { c.stream(stream).record(c.event(event)); }

void wait(Context &c, int stream, int event) { c.stream(stream).wait(c.event(event)); }

void output(Context &c, int stream, const char *name, int index, ArenaSpan<float> value) {
  launch(
      c, stream, name, reads(value), writes(),
      [outputs = c.outputs, index](const float *value) { outputs[index] = *value; },
      Work{"output"});
  c.leftOutput(stream);
}

void output(Context &c, int stream, const char *name, int index, ArenaSpan<double> sum,
            ArenaSpan<double> weight) {
  launch(
      c, stream, name, reads(sum, weight), writes(),
      [sums = c.sums, index](const double *sum, const double *weight) {
        sums[index] = {*sum, *weight};
      },
      Work{"output"});
  c.leftOutput(stream);
}

void detail::loadInput(Context &c, int stream, const char *name, int index, ByteRange target) {
  launchUntyped<1>(
      c, stream, name, {}, {&target, 1},
      [source = c.inputs, index, bytes = target.bytes](void *const *to) {
        source->load(index, *to, bytes);
      },
      Work{"load_input", 0});
}

} // namespace fsdp::rt
