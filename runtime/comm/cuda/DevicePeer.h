//===- DevicePeer.h - the rank of a device --------------------------------===//
#ifndef FSDP_RUNTIME_COMM_CUDA_DEVICEPEER_H
#define FSDP_RUNTIME_COMM_CUDA_DEVICEPEER_H

#include "runtime/comm/Communicator.h"
#include "runtime/comm/PeerContext.h"
#include "runtime/comm/cuda/HeldReceives.h"
#include "runtime/program/Mesh.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <atomic>
#include <memory>

namespace fsdp::rt {

/// The rank of a device's collectives, and the error handling of its calls to CUDA and NCCL.
/// Functions are called from the rank's host thread unless documented otherwise.
class DevicePeer {
public:
  /// `roleAxes`: on which ranks run different programs.
  DevicePeer(const PeerContext &peer, const Mesh &mesh, Table<CommunicatorSpec> communicators,
             AxisList roleAxes, std::unique_ptr<Communicator> world)
      : peer_(peer), mesh_(mesh), communicators_(communicators), roleAxes_(roleAxes),
        world_(std::move(world)) {}
  DevicePeer(const DevicePeer &) = delete;
  DevicePeer &operator=(const DevicePeer &) = delete;

  int rank() const { return peer_.rank; }
  int worldSize() const { return mesh_.size(); }
  const Mesh &mesh() const { return mesh_; }
  /// This rank's coordinate on a mesh axis.
  int coordinate(int axis) const { return mesh_.coordinate(rank(), axis); }
  /// The communicators of the program.
  Table<CommunicatorSpec> communicators() const { return communicators_; }
  bool hasRoles() const { return roleAxes_.count > 0; }
  /// Whether ranks that run different programs, with arenas of other sizes, are in a communicator.
  bool joinsRoles(const CommunicatorSpec &spec) const;
  HeldReceives &heldReceives() { return heldReceives_; }
  /// This rank's index and the number of ranks in communicator `index`.
  int rankIn(int index) const;
  int sizeOf(int index) const;
  /// Over all ranks, for memory of the host.
  Communicator &world() const { return *world_; }
  /// The job's first error.
  base::Failure &failure() const { return *peer_.failure; }
  FlightTrack *hostFlight() const { return peer_.flight; }
  /// Longest wait for other ranks, in seconds.
  double timeoutSeconds() const { return peer_.timeoutSeconds; }

  /// The current action, for errors; may be called by any thread.
  const char *action() const { return action_.load(std::memory_order_relaxed); }
  /// Throws an error of the current action if the status of a call is not success.
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
  AxisList roleAxes_;
  std::unique_ptr<Communicator> world_;
  HeldReceives heldReceives_{action_};
};

/// Throws an error of the current action if a call of CUDA or NCCL fails.
#define FSDP_CHECK(peer, call) (peer).check((call), __FILE__, __LINE__)

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_COMM_CUDA_DEVICEPEER_H
