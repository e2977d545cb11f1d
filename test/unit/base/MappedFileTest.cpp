// Files that change, or whose disk fails, while they are mapped.
#include "base/MappedFile.h"
#include "base/AtomicFile.h"
#include "base/FileSystem.h"
#include "test/unit/base/TemporaryFile.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <sys/syscall.h>
#include <unistd.h>

using namespace base;
using namespace fsdp::rt;
namespace fs = std::filesystem;

namespace {

class MappedFileTest : public testing::Test {
protected:
  void SetUp() override { file.write(std::string(3 * 4096, 'x')); }
  void TearDown() override { fs::remove_all(file.folder); }
  TemporaryFile file{"data"};
};

/// As the system reports that it cannot read a page.
void losePage(const char *address) {
  siginfo_t info{};
  info.si_signo = SIGBUS;
  info.si_code = BUS_ADRERR;
  info.si_addr = const_cast<char *>(address);
  syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info);
}

TEST_F(MappedFileTest, ATruncationIsAnError) {
  const MappedFile mapped(file.path);
  EXPECT_EQ(messageOf([&] { mapped.requireWhole(); }), "no error");
  fs::resize_file(file.path, 5000);
  EXPECT_EQ(messageOf([&] { mapped.requireWhole(); }),
            "'" + file.path +
                "': got 5000 bytes, expected 12288: it was truncated while it was read; do not "
                "change the files of a run before it ends");
  // Its content is the old one's where another file takes its name.
  file.write(std::string(3 * 4096, 'x'));
  const MappedFile whole(file.path);
  std::ofstream(file.path + ".new") << "short";
  fs::rename(file.path + ".new", file.path);
  EXPECT_EQ(messageOf([&] { whole.requireWhole(); }), "no error");
  EXPECT_EQ(whole.data()[2 * 4096], 'x');
}

TEST_F(MappedFileTest, APageThatIsGoneEndsTheProcessByName) {
  EXPECT_EXIT(
      {
        const MappedFile other(file.path);
        const MappedFile mapped(file.path);
        fs::resize_file(file.path, 100);
        volatile char read = mapped.data()[2 * 4096];
        _exit(read);
      },
      testing::ExitedWithCode(1),
      "error: '.*data': got 100 bytes, expected 12288: it was truncated while it was read");
}

TEST_F(MappedFileTest, APageThatTheDiskDoesNotGiveEndsTheProcessByName) {
  EXPECT_EXIT(
      {
        const MappedFile mapped(file.path);
        const LostPageHandler handler(
            [](const Error &error) { std::fprintf(stderr, "handled: %s\n", error.what()); });
        losePage(mapped.data() + 3 * 4096 - 1);
        _exit(0);
      },
      testing::ExitedWithCode(1),
      "handled: '.*data': the system can no longer read it: an error of the disk or of the file "
      "server");
}

TEST_F(MappedFileTest, OtherBusErrorsAreNotItsOwn) {
  EXPECT_EXIT(
      {
        const MappedFile mapped(file.path);
        losePage(mapped.data() + 4 * 4096); // is passed over, as the instruction behind it is fine
        std::raise(SIGBUS);
        _exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(MappedFileTest, OnlyMissingFilesAreNotUnreadable) {
  EXPECT_THROW(MappedFile("/nowhere/file"), Error);
  try {
    MappedFile("/nowhere/file");
  } catch (const UnreadableFile &) {
    FAIL() << "there is none";
  } catch (const Error &) {
  }
  EXPECT_THROW(MappedFile(file.folder + "/" + std::string(300, 'x')), UnreadableFile);
}

TEST_F(MappedFileTest, EndingsCutLongNames) {
  EXPECT_EQ(withEnding("/tmp/a", ".tmp.1"), "/tmp/a.tmp.1");
  EXPECT_EQ(withEnding("a", ".tmp.1"), "a.tmp.1");
  EXPECT_EQ(withEnding("/tmp/" + std::string(249, 'a'), ".tmp.1"),
            "/tmp/" + std::string(249, 'a') + ".tmp.1");
  EXPECT_EQ(withEnding("/tmp/" + std::string(250, 'a'), ".tmp.1"),
            "/tmp/" + std::string(249, 'a') + ".tmp.1");
  std::string accents;
  for (int i = 0; i < 127; ++i)
    accents += "é";
  EXPECT_EQ(withEnding("/tmp/" + accents, ".tmp.1"), "/tmp/" + accents.substr(0, 248) + ".tmp.1")
      << "not half a character";
  for (const std::size_t length : {244, 255}) {
    const std::string path = file.folder + "/" + std::string(length, 'n');
    AtomicFile out{OutputPath(path)};
    out.write("new", 3);
    out.commit();
    EXPECT_EQ(fs::file_size(path), 3u);
  }
  EXPECT_NE(messageOf([&] {
              OutputPath(file.folder + "/" + std::string(256, 'n'));
            }).find("File name too long"),
            std::string::npos);
}

} // namespace
