//===- TcpMeeting.h - ranks of several machines find each other -------------===//
//
// Rank 0 listens at a port that all know; the others come to it and say who they are. When all have
// come, each is told of all. What comes and is no rank of this job is sent away and changes nothing.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TCPMEETING_H
#define FSDP_RUNTIME_TCPMEETING_H

#include "runtime/Error.h"
#include "runtime/Socket.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Where rank 0 is to be found.
struct MeetingPlace {
  std::string host;
  int port = 0;
  std::string portFrom; ///< which variables the port is from, for messages

  /// "node0:29501 (MASTER_PORT)"
  std::string describe() const;
};

/// What a rank says of itself.
struct Introduction {
  int rank = 0, size = 1;
  /// The same for ranks that can share memory, and for no others.
  std::string machine;
  /// The same on all ranks of a job; other programs and meshes have another.
  std::uint64_t identity = 0;
  std::string program;
};

/// What all know of a rank. Plain data, as it is sent.
struct Member {
  std::int32_t machine = 0; ///< ranks that can share memory have the same
  std::int32_t port = 0;
  Address address;     ///< where it listens
  char host[64] = {};  ///< name of its machine, for messages
};

/// A rank's side of a meeting to which all have come.
struct Meeting {
  int rank = 0;
  std::vector<Member> members;
  /// No other job has the same.
  std::uint64_t nonce = 0;
  Socket listener;
  /// Rank 0: to every other rank, by rank. The others: to rank 0, the only one.
  std::vector<Socket> lines;
};

/// A meeting that did not come about.
class Unmet : public Error {
public:
  enum Teller { ThisRank, FirstOfMachine, FirstRank };
  Unmet(const std::string &message, Teller teller) : Error(message), teller_(teller) {}
  /// Who is to print it.
  Teller teller() const { return teller_; }

private:
  Teller teller_;
};

/// Returns when all ranks have come. Throws Unmet after `seconds` with the ranks that are missing,
/// or at once when this rank is none of the job's.
Meeting meet(const MeetingPlace &place, const Introduction &self, double seconds);

/// The same text on ranks that can share memory: this boot of this kernel, its /dev/shm, process
/// ids and user. FSDP_MACHINE in its place where that is set.
std::string machineIdentity();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_TCPMEETING_H
