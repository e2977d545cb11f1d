//===- Runs.cu - copies of equal runs of bytes ----------------------------===//
//
// Floor: the bytes of the target written, and those of the source, which are read.
//
//===----------------------------------------------------------------------===//

#include "runtime/kernels/cuda/Runs.h"

#include "runtime/device/cuda/KernelLaunch.h"
#include "runtime/kernels/cuda/Kernels.h"

namespace fsdp::rt {

namespace device {

namespace {

constexpr unsigned kThreads = 256;

template <class Unit>
__global__ void __launch_bounds__(kThreads) copy(Runs runs, const Unit *from, Unit *to) {
  const std::size_t all = runs.units();
  for (std::size_t n = blockIdx.x * std::size_t(kThreads) + threadIdx.x; n < all;
       n += std::size_t(gridDim.x) * kThreads) {
    const Runs::Move move = runs.move(n);
    if (move.from != Runs::kNowhere)
      to[move.to] = from[move.from];
    else if (!runs.leave)
      to[move.to] = Unit{};
  }
}

template <class Unit>
cudaError_t launch(const Runs &bytes, const void *from, void *to, cudaStream_t stream) {
  const Runs runs = bytes.inUnitsOf(sizeof(Unit));
  return launchKernel(copy<Unit>, dim3(stridingBlocks(runs.units(), kThreads)), kThreads, 0, stream,
                      runs, static_cast<const Unit *>(from), static_cast<Unit *>(to));
}

} // namespace

cudaError_t copyRuns(const Runs &bytes, const void *from, void *to, cudaStream_t stream) {
  if (bytes.units() == 0)
    return cudaSuccess;
  switch (bytes.widest(from, to)) {
  case 16:
    return launch<uint4>(bytes, from, to, stream);
  case 8:
    return launch<std::uint64_t>(bytes, from, to, stream);
  case 4:
    return launch<std::uint32_t>(bytes, from, to, stream);
  case 2:
    return launch<std::uint16_t>(bytes, from, to, stream);
  default:
    return launch<std::uint8_t>(bytes, from, to, stream);
  }
}

/// As a separate launch, whose trace shows how many bytes a thread moves at once.
static cudaError_t copyNoted(const Runs &bytes, const void *from, void *to, cudaStream_t stream) {
  switch (bytes.units() == 0 ? 0 : bytes.widest(from, to)) {
  case 0:
    break;
  case 16:
    noteVariant("16 bytes");
    break;
  case 8:
    noteVariant("8 bytes");
    break;
  case 4:
    noteVariant("4 bytes");
    break;
  case 2:
    noteVariant("2 bytes");
    break;
  default:
    noteVariant("1 byte");
  }
  return copyRuns(bytes, from, to, stream);
}

cudaError_t pad(Part part, std::size_t elementBytes, const void *piece, void *whole,
                cudaStream_t stream) {
  return copyNoted(Runs::pad(part, elementBytes), piece, whole, stream);
}
cudaError_t slice(Part part, std::size_t elementBytes, const void *whole, void *piece,
                  cudaStream_t stream) {
  return copyNoted(Runs::slice(part, elementBytes), whole, piece, stream);
}
cudaError_t insert(Part part, std::size_t elementBytes, const void *piece, void *whole,
                   cudaStream_t stream) {
  return copyNoted(Runs::insert(part, elementBytes), piece,
                   static_cast<char *>(whole) + part.start * elementBytes, stream);
}

} // namespace device

cudaError_t slice_piece(ShardLayout tile, std::size_t rank, std::size_t elementBytes,
                        const void *whole, void *piece, cudaStream_t stream) {
  return device::copyRuns(device::Runs::slicePiece(tile, rank, elementBytes),
                          static_cast<const char *>(whole) +
                              rank * tile.local * tile.inner * elementBytes,
                          piece, stream);
}

cudaError_t pack_pieces(ShardLayout tile, std::size_t ranks, std::size_t elementBytes,
                        const void *whole, void *pieces, cudaStream_t stream) {
  return device::copyRuns(device::Runs::packPieces(tile, ranks, elementBytes), whole, pieces,
                          stream);
}

cudaError_t unpack_pieces(ShardLayout tile, std::size_t ranks, std::size_t elementBytes,
                          const void *pieces, void *whole, cudaStream_t stream) {
  return device::copyRuns(device::Runs::unpackPieces(tile, ranks, elementBytes), pieces, whole,
                          stream);
}

} // namespace fsdp::rt
