//===- Emulator.h - settings and findings of the CUDA emulator ------------------===//
//
// The interface of tests to the emulator besides CUDA's functions. README.md lists its checks.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMULATOR_EMULATOR_H
#define FSDP_EMULATOR_EMULATOR_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace emulator {

/// Of each device.
constexpr int kMultiprocessors = 132;

/// Read from FSDP_EMULATOR at the first use: words with commas between them, such as
/// "deferred,shuffle,seed=7,devices=2". A word that is none of these ends the process.
struct Settings {
  bool deferred = false; ///< streams run late, in a random order that events allow
  bool shuffle = false;  ///< threads of a block run in a random order between barriers
  bool races = false;    ///< accesses that nothing orders are failures, see Shadow.h
  bool guard = false;    ///< the host may not touch the device's memory
  bool leaks = false; ///< of the environment only: memory that is not freed at the end is a failure
  std::uint64_t seed = 0;
  int devices = 1;                           ///< 0: as on a machine without a driver
  std::size_t memory = std::size_t(8) << 30; ///< bytes of each device
  std::size_t used = 0;                      ///< of them, by other programs
  double deadlock = 20; ///< seconds without progress until waiting for a stream fails
  int compute = 90;     ///< compute capability of every device, as in sm_90
  bool images = true;   ///< false: the program holds no kernels that the devices can run
  bool split = false;   ///< products add parts of k up, as many as their sizes say
  std::uint64_t noAlgorithm =
      0;              ///< number, from 1, of the request for an algorithm that finds none
  int algorithms = 4; ///< that a request for as many or more finds
  int fastest = -1;   ///< of them, the one that takes less time than the others; -1: as it is
  int queues =
      0; ///< hardware queues that the streams of a device share; 0: each has one of its own
  int driver = 13000;   ///< version of the driver, as cudaDriverGetVersion gives it
  int nccl = 22809;     ///< version of NCCL, as ncclGetVersion gives it
  int windowFault = -1; ///< rank of the first communicator whose registrations of windows fail
  std::size_t communicator = std::size_t(300)
                             << 20; ///< bytes that each communicator takes of its device
  double call = 0;          ///< seconds that the host is in each call of a collective of NCCL
  bool connections = false; ///< the first call says how many CUDA_DEVICE_MAX_CONNECTIONS asks for
  bool graphs = false;      ///< of the environment only: the end says how many graphs were launched
  std::string launches;     ///< see launchesFile
  std::string calls;        ///< of the environment only: see Recording.h
  std::string ptx;          ///< folder of the modules that launches run; "": kernels as C++
};

Settings &settings();
/// Those of FSDP_EMULATOR. A word that is unknown ends the process.
Settings settingsOfEnvironment();
/// Applies words as FSDP_EMULATOR has them. Throws std::invalid_argument.
void configure(const std::string &words);

/// The file that gets a line for each kernel when the process ends (name, most threads, most
/// dynamic shared bytes), as the environment has it: what tests set meanwhile is nothing to it. ""
/// for none.
const std::string &launchesFile();

/// What went wrong first, or "". From then on every call of CUDA returns its error.
std::string failure();
/// Waits for all streams and forgets the failure.
void reset();

/// Counts since the start of the process.
struct Statistics {
  std::uint64_t launches = 0, blocks = 0, threads = 0, switches = 0, copies = 0, products = 0,
                algorithms = 0, attributes = 0, ///< these two: requests
      graphLaunches = 0;
};
Statistics statistics();

} // namespace emulator

#endif // FSDP_EMULATOR_EMULATOR_H
