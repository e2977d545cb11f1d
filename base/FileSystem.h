//===- FileSystem.h - the system calls that write files ---------*- C++ -*-===//
//
// Files that must survive a crash are written through this interface, so that a test can replace
// the system: it records the calls and computes the files that a power failure may leave after each
// (test/unit/base/PowerLossFileSystem.h), or makes each of them fail in turn.
//
//===----------------------------------------------------------------------===//

#ifndef BASE_FILESYSTEM_H
#define BASE_FILESYSTEM_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace base {

/// The calls by which files are written. Each returns the error number of the system, or 0.
class FileSystem {
public:
  virtual ~FileSystem() = default;

  enum class Open {
    CreateNew, ///< the file must not exist (EEXIST)
    Create,    ///< the file is created if it does not exist; its content is kept
    Existing,  ///< the file must exist (ENOENT)
    Direct,    ///< as Existing; writes bypass the page cache (EINVAL where that is not supported)
  };
  /// Alignment of memory, length and offset of writes to a file that is opened as Direct.
  static constexpr std::size_t kDirectAlignment = 4096;
  /// Opens a file for writing, closed on exec; mode 0666 less the umask. `file` is its descriptor.
  virtual int open(const std::string &path, Open how, int &file) = 0;
  /// Writes all `bytes` bytes at byte `offset` of the file.
  virtual int write(int file, const void *data, std::size_t bytes, std::uint64_t offset) = 0;
  /// Sets the size of the file to `bytes`; new bytes are zero. Allocates space on the device where
  /// the file system supports that, so that a full disk is detected now (ENOSPC) and writes of
  /// several ranks are not serialized.
  virtual int resize(int file, std::uint64_t bytes) = 0;
  /// Returns when the content of the file and its size are on the device. Its name may not be there
  /// yet.
  virtual int sync(int file) = 0;
  virtual int close(int file) = 0;
  /// Replaces the file at `to`.
  virtual int rename(const std::string &from, const std::string &to) = 0;
  virtual int makeFolder(const std::string &path) = 0;
  virtual int removeFile(const std::string &path) = 0;
  /// The folder must be empty.
  virtual int removeFolder(const std::string &path) = 0;
  /// Returns when the names in the folder are on the device.
  virtual int syncFolder(const std::string &path) = 0;
  /// Whether `path` is a symbolic link; false if nothing is there.
  virtual bool isLink(const std::string &path) = 0;
  /// The names in the folder, sorted, without `.` and `..`.
  virtual int list(const std::string &path, std::vector<std::string> &names) = 0;

  /// The system calls themselves.
  static FileSystem &real();
};

/// The folder that holds `path`: "." where it has no slash.
std::string folderOf(const std::string &path);

/// The name of `path` in its folder.
std::string nameIn(const std::string &path);

/// Whether something has this path; symbolic links are followed.
bool fileExists(const std::string &path);

/// `path` with `ending` appended. The last name is cut at a character boundary where the result
/// would exceed the limit of the folder for names.
std::string withEnding(const std::string &path, const std::string &ending);

} // namespace base

#endif // BASE_FILESYSTEM_H
