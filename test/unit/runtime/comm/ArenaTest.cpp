// The memory of an arena is available before the first step, or an error reports that it is not.
#include "runtime/comm/SharedSegment.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <vector>

using namespace base;
using namespace fsdp::rt;

namespace {

constexpr std::size_t kPage = 4096, kPages = 64;

TEST(Arena, PopulatedPagesAreResidentAndKeepTheirContents) {
  Mapping mapping = Mapping::anonymous(kPages * kPage);
  const auto resident = [&] {
    std::vector<unsigned char> pages(kPages);
    EXPECT_EQ(mincore(mapping.data(), mapping.bytes(), pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
  };
  mapping.data()[7 * kPage + 3] = std::byte(5);
  EXPECT_EQ(resident(), 1);
  // From the middle of page 2 to the first byte of page 10: both are wanted.
  populate(mapping.data() + 2 * kPage + 64, 8 * kPage - 63, "", "");
  EXPECT_EQ(resident(), 9);
  EXPECT_EQ(mapping.data()[7 * kPage + 3], std::byte(5));
  EXPECT_EQ(mapping.data()[2 * kPage], std::byte(0));
  populate(mapping.data(), 0, "", "");
  EXPECT_EQ(resident(), 9);
}

TEST(Arena, ReportsMissingMemory) {
  Mapping mapping = Mapping::anonymous(2 * kPage);
  ASSERT_EQ(munmap(mapping.data() + kPage, kPage), 0);
  try {
    populate(mapping.data(), 2 * kPage, "the arena", "(--report prints the memory of a rank)");
    FAIL() << "expected an error";
  } catch (const Error &error) {
    EXPECT_STREQ(error.what(), "cannot allocate 8192 bytes for the arena: Cannot allocate memory; "
                               "each rank needs that much "
                               "free memory (--report prints the memory of a rank)");
  }
}

} // namespace
