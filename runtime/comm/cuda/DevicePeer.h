//===- DevicePeer.h - the rank that collectives of a device serve -----------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_DEVICEPEER_H
#define FSDP_RUNTIME_COMM_CUDA_DEVICEPEER_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/PeerContext.h"
#include "runtime/program/Mesh.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <atomic>
#include <memory>

namespace fsdp::rt {

/// What the collectives of a rank's device know of that rank, and how its calls to CUDA and NCCL
/// fail. Everything is called from the rank's host thread, unless said otherwise.
class DevicePeer {
public:
  DevicePeer(const PeerContext &peer, const Mesh &mesh, Table<CommunicatorSpec> communicators,
             std::unique_ptr<Communicator> world)
      : peer_(peer), mesh_(mesh), communicators_(communicators), world_(std::move(world)) {}
  DevicePeer(const DevicePeer &) = delete;
  DevicePeer &operator=(const DevicePeer &) = delete;

  int rank() const { return peer_.rank; }
  int worldSize() const { return mesh_.size(); }
  const Mesh &mesh() const { return mesh_; }
  /// This rank's coordinate on a mesh axis.
  int coordinate(int axis) const { return mesh_.coordinate(rank(), axis); }
  /// Those of the program.
  Table<CommunicatorSpec> communicators() const { return communicators_; }
  /// This rank's index and the number of ranks in communicator `index`.
  int rankIn(int index) const;
  int sizeOf(int index) const;
  /// Over all ranks, for memory of the host.
  Communicator &world() const { return *world_; }
  /// Where the job's first error is kept.
  base::Failure &failure() const { return *peer_.failure; }
  FlightTrack *hostFlight() const { return peer_.flight; }
  /// Longest wait for other ranks, in seconds.
  double timeoutSeconds() const { return peer_.timeoutSeconds; }

  /// The action under way, for errors; any thread may ask.
  const char *action() const { return action_.load(std::memory_order_relaxed); }
  /// Throws what a call gave, as an error of the action under way.
  void check(cudaError_t status, const char *file, int line) const {
    if (__builtin_expect(status != cudaSuccess, 0))
      fail(status, file, line);
  }
  void check(ncclResult_t status, const char *file, int line) const {
    if (__builtin_expect(status != ncclSuccess, 0))
      fail(status, file, line);
  }

protected:
  [[noreturn]] void fail(cudaError_t status, const char *file, int line) const;
  [[noreturn]] void fail(ncclResult_t status, const char *file, int line) const;

  std::atomic<const char *> action_{"start"};

private:
  const PeerContext &peer_;
  const Mesh &mesh_;
  Table<CommunicatorSpec> communicators_;
  std::unique_ptr<Communicator> world_;
};

/// Throws what a call of CUDA or NCCL gave, as an error of the action under way.
#define FSDP_CHECK(peer, call) (peer).check((call), __FILE__, __LINE__)

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_DEVICEPEER_H
