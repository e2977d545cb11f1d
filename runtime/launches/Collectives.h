//===- Collectives.h - collectives as launches ------------------------------===//
//
// For each row of Collectives.def `name(c, stream, "action", over, Request{...}, source, target)`.
// As runtime/launches/Kernels.h for all targets.
//
//===----------------------------------------------------------------------===//

#ifndef FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H
#define FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H

#include "runtime/program/CollectiveRequest.h"

namespace fsdp::rt {

#define FSDP_COLLECTIVE(name, Kind, Request)                                                       \
  template <class T>                                                                               \
  void name(Context &c, int stream, ActionName action, int over, Request request,                  \
            ArenaSpan<T> source, ArenaSpan<T> target) {                                            \
    launchCollective(c, stream, action, #name, over, reads(source), writes(target),                \
                     [request, count = source.count](auto &&comm, auto... p) {                     \
                       return perform(comm, CollectiveKind::Kind, request, count, p...);           \
                     });                                                                           \
  }
#define FSDP_TRANSFER(name, Request, read, written)                                                \
  template <class T>                                                                               \
  void name(Context &c, int stream, ActionName action, int over, Request request,                  \
            ArenaSpan<T> buffer) {                                                                 \
    launchCollective(c, stream, action, #name, over, read, written,                                \
                     [request, count = buffer.count](auto &&comm, auto... p) {                     \
                       return name(comm, request, count, p...);                                    \
                     });                                                                           \
  }
#define FSDP_SEND(name, Kind, Request) FSDP_TRANSFER(name, Request, reads(buffer), writes())
#define FSDP_RECEIVE(name, Kind, Request) FSDP_TRANSFER(name, Request, reads(), writes(buffer))
#include "runtime/program/Collectives.def"
#undef FSDP_TRANSFER

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H
