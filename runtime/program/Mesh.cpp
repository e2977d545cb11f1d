#include "runtime/program/Mesh.h"
#include "base/Error.h"

#include <algorithm>

namespace fsdp::rt {

using namespace base;

Mesh::Mesh(Table<MeshAxis> axes, Table<int> order) {
  int ranks = 1;
  for (const MeshAxis &axis : axes) {
    if (axis.size < 1)
      throw Error(format("mesh axis '%s' got size %d, expected at least 1", axis.name, axis.size));
    if (axisNamed(axis.name) >= 0)
      throw Error(format("mesh axis '%s' is named twice, expected distinct names", axis.name));
    names_.push_back(axis.name);
    sizes_.push_back(axis.size);
    ranks *= axis.size;
  }
  if (!order.empty() && order.size() != static_cast<std::size_t>(ranks))
    throw Error(format("device order got %zu ranks, expected %d", order.size(), ranks));
  position_.assign(ranks, -1);
  for (int p = 0; p < ranks; ++p) {
    int rank = order.empty() ? p : order[p];
    if (rank < 0 || rank >= ranks || position_[rank] >= 0)
      throw Error(format("device order got rank %d at position %d, expected each of 0..%d once",
                         rank, p, ranks - 1));
    order_.push_back(rank);
    position_[rank] = p;
  }
}

int Mesh::axisNamed(const std::string &name) const {
  for (std::size_t a = 0; a < names_.size(); ++a)
    if (names_[a] == name)
      return static_cast<int>(a);
  return -1;
}

int Mesh::coordinate(int rank, int axis) const {
  int stride = 1;
  for (int a = dimensions() - 1; a > axis; --a)
    stride *= sizes_[a];
  return position_[rank] / stride % sizes_[axis];
}

std::vector<int> Mesh::coordinates(int rank) const {
  std::vector<int> result(dimensions());
  for (int a = 0; a < dimensions(); ++a)
    result[a] = coordinate(rank, a);
  return result;
}

int Mesh::rankAt(const std::vector<int> &coordinates) const {
  int position = 0;
  for (int a = 0; a < dimensions(); ++a)
    position = position * sizes_[a] + coordinates[a];
  return order_[position];
}

std::vector<int> Mesh::group(int rank, const AxisList &axes) const {
  std::vector<bool> seen(dimensions(), false);
  int ranks = 1;
  for (int axis : axes) {
    if (axis < 0 || axis >= dimensions() || seen[axis])
      throw Error(format("communicator got axis %d, expected distinct axes of the mesh '%s'", axis,
                         describe().c_str()));
    seen[axis] = true;
    ranks *= sizes_[axis];
  }
  std::vector<int> at = coordinates(rank), result;
  for (int i = 0; i < ranks; ++i) {
    int rest = i;
    for (int k = axes.count - 1; k >= 0; --k) {
      at[axes.axis[k]] = rest % sizes_[axes.axis[k]];
      rest /= sizes_[axes.axis[k]];
    }
    result.push_back(rankAt(at));
  }
  return result;
}

std::vector<int> Mesh::ranksOf(const CommunicatorSpec &spec, int rank) const {
  const std::vector<int> ranks = group(rank, spec.axes);
  if (!spec.isTransfer())
    return ranks;
  const int size = static_cast<int>(ranks.size());
  const int own = static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  int peer = own + spec.offset;
  if (spec.inRing)
    peer = (peer + size) % size;
  if (peer < 0 || peer >= size)
    return {rank};
  const int other = ranks[static_cast<std::size_t>(peer)];
  return spec.sends ? std::vector<int>{rank, other} : std::vector<int>{other, rank};
}

int counterpartOf(Table<CommunicatorSpec> communicators, int index) {
  const CommunicatorSpec &spec = communicators[static_cast<std::size_t>(index)];
  for (std::size_t other = 0; other < communicators.size(); ++other) {
    const CommunicatorSpec &peer = communicators[other];
    if (peer.offset == -spec.offset && peer.inRing == spec.inRing && peer.sends != spec.sends &&
        std::equal(peer.axes.begin(), peer.axes.end(), spec.axes.begin(), spec.axes.end()))
      return static_cast<int>(other);
  }
  throw Error(format("communicator '%s' %s the rank at offset %d, expected another communicator "
                     "of the program that %s",
                     spec.name, spec.sends ? "sends to" : "receives from", spec.offset,
                     spec.sends ? "receives" : "sends"));
}

std::string Mesh::describe() const {
  // Where the compiler has cut an axis, `tensor:(1)2` and `tensor:(2)2` follow one another: people
  // gave it `tensor=4`.
  std::vector<std::pair<std::string, int>> whole;
  for (int a = 0; a < dimensions(); ++a) {
    const std::string own = names_[a].substr(0, names_[a].find(':'));
    if (!whole.empty() && whole.back().first == own)
      whole.back().second *= sizes_[a];
    else
      whole.emplace_back(own, sizes_[a]);
  }
  std::string text;
  for (const auto &[name, size] : whole)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(size);
  return text;
}

} // namespace fsdp::rt
