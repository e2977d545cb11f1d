//===- Launch.cpp - the actions without templates -------------------------===//

#include "runtime/execution/cuda/Launch.h"

namespace fsdp::rt {

bool detail::isPrepared(Context &c, int stream, const ActionName &name, const Work &work) {
  if (__builtin_expect(c.isPreparing(), 0)) {
    c.prepareOther(name.text, work.kind);
    return true;
  }
  if (HeldReceives &held = c.heldReceives(); !held.isEmpty())
    held.release(c.stream(stream));
  return false;
}

WorkStream detail::beginLaunch(Context &c, int stream, const ActionName &name, const Work &work,
                               Table<ByteRange> read, Table<ByteRange> written, void **addresses) {
  c.at(name.text);
  for (const Table<ByteRange> &ranges : {read, written})
    for (const ByteRange &range : ranges)
      *addresses++ = c.touch(range);
  const WorkStream on = c.stream(stream);
  noteWork(work);
  return on;
}

void record(Context &c, int stream, int event, const char *file, int line) {
  if (__builtin_expect(c.isPreparing(), 0))
    return;
  const cudaStream_t on = c.at("record").stream(stream);
  c.noteRecord(event);
  noteWork({nullptr}); // takes no time: no trace shows it
  noteEvent(c.event(event));
  const auto enqueue = [=, &c] { c.check(cudaEventRecord(c.event(event), on), file, line); };
  if (HeldReceives &held = c.heldReceives(); !held.isEmpty())
    held.record(on, c.event(event), enqueue);
  else
    enqueue();
}

void wait(Context &c, int stream, int event, const char *file, int line) {
  if (__builtin_expect(c.isPreparing(), 0) || c.isBeforeCapture(event))
    return;
  const cudaStream_t on = c.at("wait").stream(stream);
  noteWork({"wait"});
  noteEvent(c.event(event));
  c.heldReceives().releaseUntil(c.event(event));
  c.check(cudaStreamWaitEvent(on, c.event(event), 0), file, line);
}

void detail::loadInput(Context &c, int stream, const ActionName &name, int index,
                       ByteRange target) {
  launchUntyped<1>(
      c, stream, name, {}, {&target, 1},
      [&](void *const *to, WorkStream on) {
        return cudaMemcpyAsync(*to, c.staged(index), target.bytes, cudaMemcpyHostToDevice, on);
      },
      Work{"load_input"});
}

template <class T>
static void copyOut(Context &c, int stream, ActionName name, T *to, ArenaSpan<T> value) {
  launch(
      c, stream, name, reads(value), writes(),
      [&](const T *from, WorkStream on) {
        const cudaError_t status = cudaMemcpyAsync(to, from, sizeof(T), cudaMemcpyDeviceToHost, on);
        return status == cudaSuccess ? c.noteOutput(on) : status;
      },
      Work{"output"});
}

void output(Context &c, int stream, ActionName name, int index, ArenaSpan<float> value) {
  copyOut(c, stream, name, c.output(index), value);
}
void output(Context &c, int stream, ActionName name, int index, ArenaSpan<double> sum,
            ArenaSpan<double> weight) {
  copyOut(c, stream, name, c.sum(index), sum);
  copyOut(c, stream, name, c.weight(index), weight);
}

} // namespace fsdp::rt
