#include "base/AtomicFile.h"
#include "base/Error.h"
#include "base/MappedFile.h"
#include "test/unit/base/PowerLossFileSystem.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <thread>
#include <vector>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

class AtomicFileTest : public testing::Test {
protected:
  void TearDown() override { fs::remove_all(file.folder); }

  std::string at(const std::string &name) const { return file.folder + "/" + name; }
  std::string textOf(const std::string &name) const {
    std::ifstream in(at(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  mode_t modeOf(const std::string &name) const {
    struct stat status;
    return stat(at(name).c_str(), &status) == 0 ? status.st_mode : 0;
  }
  /// Names in the folder.
  std::size_t names() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(file.folder), fs::directory_iterator()));
  }
  void replace(const std::string &name, const std::string &text) const {
    AtomicFile out(at(name));
    out.write(text.data(), text.size());
    out.commit();
  }
  void refused(const std::string &path, const std::string &why) const {
    const std::string message = messageOf([&] { OutputPath output(path); });
    EXPECT_NE(message.find("'" + path + "': " + why), std::string::npos) << message;
  }

  TemporaryFile file{"out"};
};

TEST_F(AtomicFileTest, AppearsWholeOrNotAtAll) {
  file.write("old");
  {
    AtomicFile out(file.path);
    out.write("new", 3);
    EXPECT_EQ(file.read(), "old");
    EXPECT_EQ(names(), 2u);
  }
  EXPECT_EQ(file.read(), "old") << "it was not committed";
  EXPECT_EQ(names(), 1u);
  replace("out", "new");
  EXPECT_EQ(file.read(), "new");
  EXPECT_EQ(names(), 1u);
}

// A file system in memory that records its calls.
TEST_F(AtomicFileTest, TakesTheRoomBeforeItWrites) {
  PowerLossFileSystem disk(file.folder);
  const std::string text(5000, 'x');
  const auto write = [&] {
    AtomicFile out(file.path, disk);
    out.reserve(text.size());
    out.write(text.data(), text.size());
    out.commit();
  };
  write();
  EXPECT_EQ(disk.tree().at("").at("out"), text);
  disk.failingCall = disk.calls + 1; // behind the opening
  disk.failure = ENOSPC;
  const int before = disk.calls;
  EXPECT_NE(messageOf(write).find("No space left on device; free some space"), std::string::npos);
  EXPECT_EQ(disk.calls - before, 4)
      << "opened, refused the room, closed, removed: nothing was written";
  EXPECT_EQ(disk.tree().at("").size(), 1u);
  EXPECT_EQ(disk.tree().at("").at("out"), text);
  AtomicFile stream("/dev/full");
  EXPECT_EQ(messageOf([&] { stream.reserve(10); }), "no error")
      << "a stream has no room of its own";
}

TEST_F(AtomicFileTest, ItsBeginMayBeWrittenAtTheEnd) {
  PowerLossFileSystem disk(file.folder);
  const auto write = [&] {
    AtomicFile out(file.path, disk);
    out.write("0000 content", 12);
    out.writeAtBegin("head", 4);
    out.write(", more", 6);
    out.commit();
  };
  write();
  EXPECT_EQ(disk.tree().at("").at("out"), "head content, more");
  disk.failingCall = disk.calls + 2; // behind the opening and the first bytes
  disk.failure = ENOSPC;
  EXPECT_NE(messageOf(write).find("No space left on device; free some space"), std::string::npos);
  EXPECT_EQ(disk.tree().at("").at("out"), "head content, more");
}

TEST_F(AtomicFileTest, KeepsTheModeAndOwnerOfTheReplacedFile) {
  file.write("old");
  ASSERT_EQ(chmod(file.path.c_str(), 0604), 0);
  const bool root = geteuid() == 0;
  if (root)
    ASSERT_EQ(chown(file.path.c_str(), 12345, 12346), 0);
  replace("out", "new");
  EXPECT_EQ(modeOf("out") & 07777, 0604u);
  struct stat status;
  ASSERT_EQ(stat(file.path.c_str(), &status), 0);
  EXPECT_TRUE(!root || (status.st_uid == 12345 && status.st_gid == 12346));
  const mode_t before = umask(027);
  replace("other", "new");
  umask(before);
  EXPECT_EQ(modeOf("other") & 07777, 0640u) << "a new file follows the umask";
}

TEST_F(AtomicFileTest, ALinkStaysAndItsTargetIsReplaced) {
  fs::create_directory(at("far"));
  fs::create_symlink("far/second", at("first"));
  fs::create_symlink("target", at("far/second"));
  replace("first", "new"); // which leads to nothing yet
  EXPECT_EQ(textOf("far/target"), "new");
  replace("first", "newer");
  EXPECT_EQ(textOf("far/target"), "newer");
  EXPECT_TRUE(fs::is_symlink(at("first")) && fs::is_symlink(at("far/second")));
  fs::create_symlink("loop", at("loop"));
  refused(at("loop"), "Too many levels of symbolic links");
}

TEST_F(AtomicFileTest, ADeviceIsWrittenToAndStays) {
  EXPECT_NE(messageOf([] {
              AtomicFile full("/dev/full");
              full.write("new", 3);
            }).find("cannot write '/dev/full': No space left on device; free some space"),
            std::string::npos);
  // Not /dev/null: where this fails, it is replaced.
  if (mknod(at("null").c_str(), S_IFCHR | 0666, makedev(1, 3)) != 0)
    GTEST_SKIP() << "devices cannot be made here";
  replace("null", "new");
  EXPECT_TRUE(S_ISCHR(modeOf("null")));
  EXPECT_EQ(names(), 1u);
}

TEST_F(AtomicFileTest, AFifoIsWrittenToItsReader) {
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  refused(at("fifo"), "no process reads this FIFO; start its reader first");
  const int reader = open(at("fifo").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  {
    const OutputPath output(at("fifo"));
    AtomicFile out(output);
    out.write("new", 3);
    out.commit();
    char text[8];
    EXPECT_EQ(read(reader, text, sizeof(text)), 3);
    EXPECT_EQ(read(reader, text, sizeof(text)), -1) << "the path keeps the FIFO open";
  }
  close(reader);
  EXPECT_TRUE(S_ISFIFO(modeOf("fifo")));
}

TEST_F(AtomicFileTest, AnOpenDescriptorIsWrittenTo) {
  file.write("old");
  const int descriptor = open(file.path.c_str(), O_WRONLY | O_APPEND);
  const std::string number = std::to_string(descriptor);
  for (const std::string &name : {"/dev/fd/" + number, "/proc/self/fd/" + number}) {
    AtomicFile out(name);
    out.write("+", 1);
    out.commit();
  }
  EXPECT_EQ(file.read(), "old++");
  EXPECT_EQ(names(), 1u);
  close(descriptor);
  refused("/dev/fd/" + number, "Bad file descriptor");
  const int input = open(file.path.c_str(), O_RDONLY);
  refused("/dev/fd/" + std::to_string(input), "it is open for reading only");
  close(input);
}

TEST_F(AtomicFileTest, RefusesInvalidDestinations) {
  fs::create_directory(at("folder"));
  refused(at("folder"), "it is a folder, expected a file or nothing");
  refused(at("new") + "/", "it names a folder, expected a file");
  refused("/nowhere/out", "there is no folder '/nowhere'; create it first");
  ASSERT_EQ(mknod(at("socket").c_str(), S_IFSOCK | 0600, 0), 0);
  refused(at("socket"), "it is a socket, expected a file, a FIFO, a character device or nothing");
}

/// Another run that begins at the same time renames its old log.
TEST_F(AtomicFileTest, ADestinationMayBeRenamedMeanwhile) {
  file.write("old");
  std::atomic<bool> isDone = false;
  std::thread other([&] {
    while (!isDone) {
      fs::rename(file.path, at("aside"));
      fs::rename(at("aside"), file.path);
    }
  });
  for (int i = 0; i < 20000; ++i)
    EXPECT_EQ(messageOf([&] { OutputPath output(file.path); }), "no error");
  isDone = true;
  other.join();
}

TEST_F(AtomicFileTest, ASignalLeavesNothingBehind) {
  file.write("old");
  for (int number : {SIGHUP, SIGINT, SIGTERM})
    EXPECT_EXIT(
        {
          std::signal(number, SIG_DFL); // this test may have been started with it ignored
          AtomicFile out(file.path);
          out.write("new", 3);
          std::raise(number);
        },
        testing::KilledBySignal(number), "");
  EXPECT_EXIT(
      {
        AtomicFile out(file.path);
        removeTemporaryFiles();
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_EQ(file.read(), "old");
  EXPECT_EQ(names(), 1u);
  // A signal that was ignored before stays so.
  EXPECT_EXIT(
      {
        std::signal(SIGHUP, SIG_IGN);
        AtomicFile out(file.path);
        std::raise(SIGHUP);
        _exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(AtomicFileTest, WhoMayReadAProgramMayStartIt) {
  AtomicFileOptions options;
  options.executable = true;
  options.flushed = false;
  const mode_t mask = umask(0027);
  for (const char *name : {"new", "old"}) {
    if (*name == 'o') {
      replace(name, "a text");
      ASSERT_EQ(chmod(at(name).c_str(), 0604), 0);
    }
    AtomicFile out(at(name), FileSystem::real(), options);
    out.write("a program", 9);
    out.commit();
  }
  umask(mask);
  EXPECT_EQ(modeOf("new") & 07777, 0750u);
  EXPECT_EQ(modeOf("old") & 07777, 0705u);
}

std::vector<std::string> &toldOf() {
  static std::vector<std::string> told;
  return told;
}

TEST_F(AtomicFileTest, AnOwnerIsNotifiedOfTemporaryFiles) {
  EXPECT_EXIT(
      {
        setTemporaryFileOwner(
            {[](const std::string &path) { toldOf().push_back("added " + path); },
             [](const std::string &path) { toldOf().push_back("removed " + path); }});
        replace("new", "text");
        const std::string temporary = at("new") + ".tmp." + std::to_string(getpid());
        _exit(toldOf() == std::vector<std::string>{"added " + temporary, "removed " + temporary}
                  ? 0
                  : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(AtomicFileTest, TwoNamesOfOneFileAreOneFile) {
  file.write("old");
  ASSERT_EQ(link(file.path.c_str(), at("hard").c_str()), 0);
  fs::create_symlink("out", at("soft"));
  fs::create_symlink(".", at("here"));
  fs::create_symlink("new", at("dangling"));
  const auto same = [&](const std::string &a, const std::string &b) {
    return identityOf(at(a)) == identityOf(at(b));
  };
  for (const char *name : {"hard", "soft", "here/out", "here/../out"})
    EXPECT_EQ(same("out", name), std::string(name) != "here/../out") << name;
  for (const char *name : {"dangling", "here/new", "here/dangling"})
    EXPECT_TRUE(same("new", name)) << name;
  EXPECT_FALSE(same("new", "newer"));
  EXPECT_FALSE(same("nowhere/a", "nowhere/a")) << "there can be no such file";
  EXPECT_FALSE(identityOf("/dev/null") == identityOf("/dev/null")) << "everybody may have it";

  const OutputPath output(at("here/out"));
  const std::string message = messageOf([&] {
    checkDistinct({NamedFile::input("--init", at("hard")), NamedFile::output("--export", output)});
  });
  EXPECT_EQ(message, "got one file for --init '" + at("hard") + "' and --export '" +
                         at("here/out") + "', expected a separate file for each output");
  EXPECT_EQ(messageOf([&] {
              checkDistinct({NamedFile::input("--data", at("hard")),
                             NamedFile::input("--val-data", at("out"))});
            }),
            "no error");
}

TEST_F(AtomicFileTest, InputsThatAreNoFilesAreRefusedAtOnce) {
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  fs::create_directory(at("folder"));
  for (const auto &[path, kind] : {std::pair<std::string, std::string>{at("fifo"), "FIFO"},
                                   {at("folder"), "folder"},
                                   {"/dev/zero", "character device"}})
    EXPECT_EQ(messageOf([&, path = path] { MappedFile input(path); }),
              "cannot read '" + path + "': got a " + kind +
                  ", expected a regular file, because it is read at any position; write its "
                  "content to a file first");
}

} // namespace
