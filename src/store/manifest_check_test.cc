// Which manifests pass, in particular where RocksDB's file numbers get a seventh digit.
#include "store/manifest_check.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <tuple>

#include "os/sim_disk.h"
#include "store/rocks_store.h"
#include "store/store_testing.h"

namespace stanchion::store {
namespace {

constexpr std::uint64_t kFirstNumber = 999'990;
constexpr std::uint64_t kLastNumber = 1'000'020;

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
  }
  return ~crc;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string current_manifest(const Scratch& scratch) {
  const std::string name = read_file(scratch.store() + "/CURRENT");
  return name.substr(0, name.find('\n'));
}

std::uint64_t manifest_number(const Scratch& scratch) {
  return std::stoull(current_manifest(scratch).substr(std::string("MANIFEST-").size()));
}

// Appends a record to the manifest that says which file number comes next, as RocksDB writes it.
void set_next_file_number(const Scratch& scratch, std::uint64_t number) {
  std::string edit(1, '\x03');  // The tag of the next file number.
  for (; number >= 0x80; number >>= 7) edit.push_back(static_cast<char>(number | 0x80));
  edit.push_back(static_cast<char>(number));
  const std::string type_and_edit = '\x01' + edit;  // The whole record is in one piece.
  const std::uint32_t crc = crc32c(type_and_edit);
  const std::uint32_t masked = (crc >> 15 | crc << 17) + 0xA282EAD8u;
  const auto length = static_cast<std::uint16_t>(edit.size());
  std::ofstream file(scratch.store() + "/" + current_manifest(scratch),
                     std::ios::binary | std::ios::app);
  file.write(reinterpret_cast<const char*>(&masked), sizeof masked);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << type_and_edit;
  ASSERT_TRUE(file.flush().good());
}

TEST(ManifestCheck, AStoreOpensAlsoWhenItsFileNumbersPassAMillion) {
  const Scratch scratch;
  {
    const auto store = RocksStore::open(scratch.store());
    ASSERT_TRUE(store) << store.error().message;
    must_commit(**store, messages(1, 0, 1));
  }
  set_next_file_number(scratch, kFirstNumber);
  std::uint64_t committed = 1;
  for (std::uint64_t number = 0; number < kLastNumber; number = manifest_number(scratch)) {
    // Each start makes a new manifest, and only a commit notes it: here that of the first start.
    for (int start = 0; start < 3; ++start) {
      const auto store = RocksStore::open(scratch.store());
      ASSERT_TRUE(store) << store.error().message;
      ASSERT_GE(manifest_number(scratch), kFirstNumber);
      ASSERT_EQ(held(**store).size(), committed);
      const auto again = RocksStore::open_read_only(scratch.store());
      ASSERT_TRUE(again) << again.error().message;
      if (start == 0) must_commit(**store, messages(1, committed++, 1));
    }
  }
}

TEST(ManifestCheck, AnOlderManifestIsRefusedAlsoIfItsNumberIsShorter) {
  os::SimDisk disk;
  const auto root = disk.root();
  for (const auto& [noted, current, passes] :
       {std::tuple("MANIFEST-1000005", "MANIFEST-999999", false),
        std::tuple("MANIFEST-1000005", "MANIFEST-1000004", false),
        std::tuple("MANIFEST-000007", "MANIFEST-000005", false),
        std::tuple("MANIFEST-000007", "MANIFEST-", false),
        std::tuple("MANIFEST-000007", "MANIFEST-00000x", false),
        std::tuple("MANIFEST-000007", "ZEBRA-000009", false),
        std::tuple("MANIFEST-999998", "MANIFEST-1000003", true),
        std::tuple("MANIFEST-000007", "MANIFEST-000012", true)}) {
    ASSERT_TRUE(note_manifest(*root, noted, 100));
    disk.put("CURRENT", std::string(current) + "\n");
    disk.put(current, "");
    EXPECT_EQ(check_manifest(*root).has_value(), passes) << noted << ", then " << current;
  }
}

}  // namespace
}  // namespace stanchion::store
