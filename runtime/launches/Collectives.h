//===- Collectives.h - collectives as launches ------------------------------===//
#ifndef FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H
#define FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/ShardRuns.h"
#include "runtime/execution/Launch.h"

namespace fsdp::rt {

/// Every rank's `piece` into `whole`; see Communicator::allGather.
template <class T>
void all_gather(Context &c, int stream, const char *name, int over, ArenaSpan<T> piece,
                ArenaSpan<T> whole, ShardLayout tile) {
  launchCollective(
      c, stream, name, "all_gather", over, reads(piece), writes(whole),
      [tile](Communicator &comm, const T *from, T *to) { comm.allGather(from, to, tile); });
}

/// Sum of every rank's `whole`, this rank's part of it into `piece`; see
/// Communicator::reduceScatter.
template <class T>
void reduce_scatter(Context &c, int stream, const char *name, int over, ArenaSpan<T> whole,
                    ArenaSpan<T> piece, ShardLayout tile, ReduceOp op = ReduceOp::Sum) {
  launchCollective(c, stream, name, "reduce_scatter", over, reads(whole), writes(piece),
                   [tile, op](Communicator &comm, const T *from, T *to) {
                     comm.reduceScatter(from, to, tile, op);
                   });
}

/// Sum or max over the ranks; `source` may be `target`.
template <class T>
void all_reduce(Context &c, int stream, const char *name, int over, ArenaSpan<T> source,
                ArenaSpan<T> target, ReduceOp op = ReduceOp::Sum) {
  launchCollective(c, stream, name, "all_reduce", over, reads(source), writes(target),
                   [count = source.count, op](Communicator &comm, const T *from, T *to) {
                     comm.allReduce(from, to, count, op);
                   });
}

/// The part of `whole` that the rank of index `index` keeps, into `piece`, zeros in its padding;
/// meets nobody.
template <class T>
void all_slice(Context &c, int stream, const char *name, int index, ArenaSpan<T> whole,
               ArenaSpan<T> piece, ShardLayout tile) {
  launch(
      c, stream, name, reads(whole), writes(piece),
      [tile, index](const T *from, T *to) {
        clearPadding(tile, static_cast<std::size_t>(index), to, sizeof(T));
        forEachRun(tile, static_cast<std::size_t>(index),
                   [&](std::size_t inPiece, std::size_t inWhole, std::size_t count) {
                     std::copy_n(from + inWhole, count, to + inPiece);
                   });
      },
      Work{"all_slice"});
}

/// `source` of group rank `root` into `target` of every rank; they may be one.
template <class T>
void broadcast(Context &c, int stream, const char *name, int over, ArenaSpan<T> source,
               ArenaSpan<T> target, int root) {
  launchCollective(c, stream, name, "broadcast", over, reads(source), writes(target),
                   [bytes = source.bytes(), root](Communicator &comm, const T *from, T *to) {
                     comm.broadcast(from, to, bytes, root);
                   });
}

/// `buffer` of group rank `root` to every rank.
template <class T>
void broadcast(Context &c, int stream, const char *name, int over, ArenaSpan<T> buffer, int root) {
  launchCollective(c, stream, name, "broadcast", over, reads(buffer), writes(buffer),
                   [bytes = buffer.bytes(), root](Communicator &comm, const T *, T *to) {
                     comm.broadcast(to, bytes, root);
                   });
}

/// The split of a value from one dimension to another; see Communicator::allToAll.
template <class T>
void all_to_all(Context &c, int stream, const char *name, int over, ArenaSpan<T> source,
                ArenaSpan<T> target, AllToAllLayout layout) {
  launchCollective(
      c, stream, name, "all_to_all", over, reads(source), writes(target),
      [layout](Communicator &comm, const T *from, T *to) { comm.allToAll(from, to, layout); });
}
/// Parts of another size; see Communicator::repartition.
template <class T>
void all_to_all(Context &c, int stream, const char *name, int over, ArenaSpan<T> source,
                ArenaSpan<T> target, RecutLayout layout) {
  launchCollective(
      c, stream, name, "all_to_all", over, reads(source), writes(target),
      [layout](Communicator &comm, const T *from, T *to) { comm.repartition(from, to, layout); });
}

/// `source` of another rank; see Communicator::permute.
template <class T, int... From>
void collective_permute(Context &c, int stream, const char *name, int over, ArenaSpan<T> source,
                        ArenaSpan<T> target, SourceRanks<From...>) {
  launchCollective(c, stream, name, "collective_permute", over, reads(source), writes(target),
                   [count = source.count](Communicator &comm, const T *from, T *to) {
                     comm.permute(from, to, count, SourceRanks<From...>::table);
                   });
}

/// `source` to the rank `offset` further in the group; nothing where there is none. See
/// Communicator::send.
template <class T>
void send(Context &c, int stream, const char *name, int over, ArenaSpan<T> source, int offset) {
  launchCollective(c, stream, name, "send", over, reads(source), writes(),
                   [count = source.count, offset](Communicator &comm, const T *from) {
                     if (const int peer = comm.rank() + offset; peer >= 0 && peer < comm.size())
                       comm.send(from, count, peer);
                   });
}

/// What the rank `offset` further in the group sends; zeros where there is none. See
/// Communicator::receive.
template <class T>
void receive(Context &c, int stream, const char *name, int over, ArenaSpan<T> target, int offset) {
  launchCollective(c, stream, name, "receive", over, reads(), writes(target),
                   [count = target.count, offset](Communicator &comm, T *to) {
                     if (const int peer = comm.rank() + offset; peer >= 0 && peer < comm.size())
                       comm.receive(to, count, peer);
                     else
                       std::fill_n(to, count, T());
                   });
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCHES_COLLECTIVES_H
