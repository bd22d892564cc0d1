#include "store/manifest_check.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/digest.h"
#include "base/text.h"

namespace stanchion::store {
namespace {

constexpr std::size_t kNoteSize = 80;
constexpr std::size_t kDigitsOfChecksum = 16;
// More than the note, and than CURRENT, can have.
constexpr std::size_t kSmallSizeMax = 4096;
constexpr std::string_view kManifestPrefix = "MANIFEST-";

// RocksDB's log format: blocks of 32 KiB; records of masked CRC-32C (4), length (2), type (1) and
// the bytes; a block's last bytes are unused if no header fits.
constexpr std::size_t kBlockSize = std::size_t{32} << 10;
constexpr std::size_t kHeaderSize = 7;

constexpr std::array<std::uint32_t, 256> crc32c_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0x82F63B78 : value >> 1;
    table[i] = value;
  }
  return table;
}

std::uint32_t masked_crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc32c_table();
  std::uint32_t crc = ~0u;
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xFF];
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

// The size of the complete record at the front of `block`, or 0.
std::size_t record_size(std::string_view block) {
  if (block.size() < kHeaderSize) return 0;
  std::uint32_t crc = 0;
  std::uint16_t length = 0;
  std::memcpy(&crc, block.data(), sizeof crc);
  std::memcpy(&length, block.data() + 4, sizeof length);
  if (block.size() - kHeaderSize < length) return 0;
  const bool right = masked_crc32c(block.substr(6, 1 + std::size_t{length})) == crc;
  return right ? kHeaderSize + length : 0;
}

// The length of the readable prefix of one block.
std::size_t whole_size(std::string_view block) {
  std::size_t offset = 0;
  while (block.size() - offset >= kHeaderSize) {
    const std::size_t size = record_size(block.substr(offset));
    if (size == 0) return offset;
    offset += size;
  }
  // A tail in which no header fits is unused if the block ends there, and else a torn record.
  return block.size() == kBlockSize ? block.size() : offset;
}

// How far the manifest is readable, as far as `wanted` or a little further.
Result<std::uint64_t> readable_size(os::File& manifest, std::uint64_t wanted) {
  std::string block;
  std::uint64_t offset = 0;
  while (offset < wanted) {
    block.resize(kBlockSize);
    const auto read = manifest.read_at(offset, block);
    if (!read) return std::unexpected(read.error());
    block.resize(*read);
    const std::size_t whole = whole_size(block);
    offset += whole;
    if (whole < kBlockSize) break;
  }
  return offset;
}

// The first bytes of a small file, at most kSmallSizeMax.
Result<std::string> read_small(os::Directory& directory, std::string_view name) {
  auto file = directory.open_file(name, os::OpenMode::kReadOnly);
  if (!file) return std::unexpected(std::move(file).error());
  std::string bytes(kSmallSizeMax, '\0');
  auto read = (*file)->read_at(0, bytes);
  if (!read) return std::unexpected(std::move(read).error());
  bytes.resize(*read);
  return bytes;
}

// The number in "MANIFEST-000005"; nullopt for any other name. RocksDB writes at least six digits:
// from a million on the names grow, and their order as text is not that of the numbers.
std::optional<std::uint64_t> number_of(std::string_view manifest) {
  if (!manifest.starts_with(kManifestPrefix)) return std::nullopt;
  return parse_decimal(manifest.substr(kManifestPrefix.size()));
}

struct Note {
  std::string manifest;
  std::uint64_t size = 0;
};

std::string checksum_of(std::string_view text) {
  const std::uint64_t sum = xxh3_64(text);
  return to_hex({reinterpret_cast<const char*>(&sum), sizeof sum});
}

std::optional<Note> parse_note(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  if (text.size() < kDigitsOfChecksum) return std::nullopt;
  const std::string_view front = text.substr(0, text.size() - kDigitsOfChecksum);
  const std::size_t space = front.find(' ');
  if (checksum_of(front) != text.substr(front.size()) || space == front.npos) return std::nullopt;
  const auto size = parse_decimal(front.substr(space + 1, front.size() - space - 2));
  if (!size) return std::nullopt;
  return Note{std::string(front.substr(0, space)), *size};
}

}  // namespace

Status note_manifest(os::Directory& directory, const std::string& manifest, std::uint64_t size) {
  std::string text = manifest + " " + std::to_string(size) + " ";
  text += checksum_of(text) + "\n";
  text.resize(kNoteSize, ' ');
  bool created = false;
  auto file = directory.open_file(kNoteName, os::OpenMode::kReadWrite);
  if (!file) {
    file = directory.open_file(kNoteName, os::OpenMode::kCreateNew);
    created = true;
  }
  if (!file) return std::unexpected(std::move(file).error());
  RETURN_IF_FAILED((*file)->write_at(0, text));
  RETURN_IF_FAILED((*file)->sync_data());
  return created ? directory.sync() : Status();
}

Status check_manifest(os::Directory& directory) {
  auto text = read_small(directory, kNoteName);
  if (!text) return text.error().os_error == ENOENT ? Status() : std::unexpected(text.error());
  const std::optional<Note> note = parse_note(*text);
  if (!note) return {};
  auto current = read_small(directory, "CURRENT");
  if (!current && current.error().os_error != ENOENT)
    return std::unexpected(std::move(current).error());
  const std::string name = current ? current->substr(0, current->find('\n')) : "";
  const auto number = number_of(name);
  const auto noted = number_of(note->manifest);
  auto manifest = os::is_plain_name(name) ? directory.open_file(name, os::OpenMode::kReadOnly)
                                          : fail("CURRENT names no file");
  if (!manifest || !number || number < noted) {
    return fail("the store " + directory.path() + " is damaged: " + directory.path() +
                "/CURRENT should name " + note->manifest + " or a later one; restore a backup");
  }
  // A later manifest repeats what the earlier ones held, and is complete before CURRENT names it.
  if (number > noted) return {};
  const auto whole = readable_size(**manifest, note->size);
  if (!whole) return std::unexpected(whole.error());
  if (*whole >= note->size) return {};
  return fail("the store " + directory.path() + " is damaged: " + directory.path() + "/" +
              note->manifest + " is readable up to byte " + std::to_string(*whole) + " only, but " +
              std::to_string(note->size) +
              " bytes of it were committed; see with stanchion inspect what is readable, then "
              "restore a backup");
}

}  // namespace stanchion::store
